// Link's uploads and downloads.
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "client/link/link.h"

namespace tt::client {

void Link::recover_transfer(const absl::Status& status, TransferRetry* retry) {
  if (retry->record(status) == TransferRetry::Cause::kNoRoom) {
    flush();  // queued instructions may end the transfers that occupy the engine's table
  } else {
    {  // An empty frame's round trip shows whether the connection works, and resumes the session otherwise.
      CallLock lock(*this);
      window_.building().count_bytes(1);
    }
    synchronize();
    retry->throw_if_final(status);
  }
  if (retry->timer.is_due()) {
    MutexLock lock(mutex_);
    if (check_interrupt()) throw Interrupted();
  }
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

void Link::upload(uint64_t transfer, Device device, absl::Span<const char> bytes) {
  for (TransferRetry retry("upload", bytes.size());;) {
    absl::Status status =
        recording_interrupts([&] { return transport_->upload(transfer, device, bytes, &retry.progress); });
    if (status.ok()) return;
    recover_transfer(status, &retry);
  }
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
    recover_transfer(status, &retry);
  }
}

}  // namespace tt::client
