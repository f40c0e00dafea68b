// Link's uploads and downloads.
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "client/link/link.h"

namespace tt::client {

// The round trip of an empty frame shows whether the connection works, and resumes the session otherwise.
void Link::check_connection() {
  {
    CallLock lock(*this);
    window_.building().count({1, 0});
  }
  synchronize();
}

// Like check_connection(), but does not wait for frames, which may wait for the upload that failed: reads what has
// arrived, which shows whether the stream is broken, and waits while the sender thread resumes the session. Returns
// whether it was broken.
bool Link::check_stream() {
  CallLock lock(*this);
  if (!broken_ && !resuming_ && !reading_) read_one(std::chrono::milliseconds(0));
  role_is_free();
  bool waited = false;
  for (; (broken_ || resuming_) && !over_; waited = true) sleep(Transport::kForever);
  throw_if_over();
  return waited;
}

void Link::recover_transfer(const absl::Status& status, TransferRetry* retry, Mode mode) {
  const TransferRetry::Cause cause = retry->record(status);
  if (mode == Mode::kBackground) {
    if (check_stream()) retry->ignore_time_since_failure();
  } else if (cause == TransferRetry::Cause::kNoRoom) {
    flush();  // queued instructions may end the transfers that occupy the engine's table
  } else {
    check_connection();
    retry->ignore_time_since_failure();
  }
  if (cause == TransferRetry::Cause::kFailed) retry->throw_if_final(status);
  check_interrupt(&retry->timer);
  std::this_thread::sleep_for(retry->next_pause());
}

template <typename Transfer>
absl::Status Link::recording_interrupts(Transfer transfer) {
  try {
    return transfer();
  } catch (const Interrupted&) {
    MutexLock lock(mutex_);
    record_interrupt();
    throw;
  }
}

void Link::send_upload(uint64_t transfer, Device device, absl::Span<const char> bytes, Mode mode) {
  for (TransferRetry retry("upload", bytes.size());;) {
    absl::Status status =
        recording_interrupts([&] { return transport_->upload(transfer, device, bytes, &retry.progress); });
    if (status.ok()) break;
    recover_transfer(status, &retry, mode);
  }
  MutexLock lock(mutex_);
  if (window_.keeps_acknowledged()) [[unlikely]]
    kept_uploads_.sent(transfer);
}

bool Link::upload(uint64_t transfer, Device device, absl::Span<const char> bytes,
                  absl::FunctionRef<void()> before_waiting) {
  {
    CallLock lock(*this);  // throws if the link has ended
    if (window_.keeps_acknowledged()) [[unlikely]]
      kept_uploads_.add(transfer, device, bytes);
  }
  if (uploads_ && uploads_->try_add(transfer, device, bytes)) return false;
  before_waiting();
  send_upload(transfer, device, bytes, Mode::kCaller);
  return true;
}

void Link::watch_download(int change) {
  MutexLock lock(mutex_);
  downloads_ += change;
  role_is_free();
}

void Link::download(uint64_t handle, absl::Span<char> into) {
  uint64_t after = flush();
  watch_download(1);
  absl::Cleanup unwatch = [this] { watch_download(-1); };
  for (TransferRetry retry("download", into.size());;) {
    v1::Error error;
    absl::Status status =
        recording_interrupts([&] { return transport_->download(handle, after, into, &retry.progress, &error); });
    if (!error.message().empty()) throw remote_error(error);
    if (status.ok()) return;
    recover_transfer(status, &retry, Mode::kCaller);
  }
}

std::shared_ptr<BackgroundDownload> Link::download_in_background(uint64_t handle, size_t size) {
  { CallLock lock(*this); }  // throws if the link has ended
  return background_downloads_.add(handle, size);
}

}  // namespace tt::client
