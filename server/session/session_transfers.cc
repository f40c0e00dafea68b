// Session: uploads, downloads, and the memory segment that is shared with the client.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/convert.h"
#include "server/session/session.h"
#include "server/session/values.h"
#include "server/transfer/device_reader.h"
#include "server/transfer/host_reader.h"

namespace tt::server {
namespace {

// How often a waiting download calls `should_continue`.
constexpr std::chrono::milliseconds kPollInterval{50};

// A segment may use at most 1 / kSegmentShare of the session's memory limit.
constexpr uint64_t kSegmentShare = 8;

}  // namespace

MemoryWait Session::wait_for_frames(std::chrono::steady_clock::time_point* idle_since,
                                    absl::FunctionRef<bool()> should_continue) {
  // The end of a frame wakes this wait. Memory that is released during a frame or by another thread, and the end of the
  // call, are polled: an event for each refund of an account would slow down every tensor that is freed, and gRPC's
  // synchronous calls report their end only to IsCancelled().
  const std::chrono::milliseconds idle = options_.transfer_timeouts.memory;
  const std::chrono::milliseconds poll = std::min(std::chrono::milliseconds(20), idle);
  constexpr int kMaxPolls = 25;  // other sessions may release memory too
  const uint64_t before = executed(), held = account_->held();
  for (int i = 0; i < kMaxPolls; ++i) {
    {
      MutexLock lock(progress_mutex_);
      ++waiting_;
      progress_.wait_for(progress_mutex_, poll);
      --waiting_;
    }
    const auto now = std::chrono::steady_clock::now();
    const bool has_executed = executed() != before;
    if (busy() || has_executed) *idle_since = now;
    if (!should_continue()) return MemoryWait::kCancelled;
    if (has_ended() || now - *idle_since >= idle) return MemoryWait::kNoMore;
    // An attempt that cannot succeed would return the pool's unused memory to the system.
    if (has_executed || account_->held() < held) break;
  }
  return MemoryWait::kRetry;
}

absl::StatusOr<std::unique_ptr<TransferMonitor::Call>> Session::begin_call(TransferMonitor::Direction direction,
                                                                           std::function<void()> cancel) {
  return monitor_->begin(options_.id, direction, std::move(cancel), options_.quota);
}

absl::StatusOr<std::unique_ptr<Upload>> Session::begin_upload(uint64_t transfer, uint64_t bytes, Device device,
                                                              bool resume, const TransferMonitor::Call* call,
                                                              const std::string& digest,
                                                              absl::FunctionRef<bool()> should_continue) {
  auto idle_since = std::chrono::steady_clock::now();
  auto upload = transfers_->begin(transfer, bytes, device, resume, digest,
                                  [&] { return wait_for_frames(&idle_since, should_continue); });
  if (absl::IsAlreadyExists(upload.status())) monitor_->cancel_upload(options_.id, transfer, call);
  if (!upload.ok() || digest.empty() || (*upload)->received() != 0) return upload;
  if (Ref<Storage> source = content_index_->find(digest, bytes)) {
    (*upload)->copy_from(*source);
    source = nullptr;
    content_index_->drop_unreferenced();
  }
  return upload;
}

absl::StatusOr<Download> Session::begin_download(uint64_t handle, uint64_t after,
                                                 absl::FunctionRef<bool()> should_continue,
                                                 const DownloadResume& resume) {
  {
    MutexLock lock(progress_mutex_);
    ++waiting_;
    while (executed() < after && !over() && should_continue()) progress_.wait_for(progress_mutex_, kPollInterval);
    --waiting_;
  }
  MutexLock lock(mutex_);
  if (over()) return absl::NotFoundError("the session has ended");
  if (executed() < after) return absl::CancelledError("the download was cancelled");
  note_use();
  if (is_offloaded()) [[unlikely]]
    bring_back();
  const SlotValue* value = slots_.find(handle);
  if (value == nullptr) return absl::InvalidArgumentError(absl::StrCat("handle ", handle, " is not in use"));
  Download download;
  download.error = error_of(*value, false);
  if (download.error) {
    acknowledge(value->poison);
    return download;
  }
  const Tensor tensor = value->tensor;
  download.tensor = to_wire(tensor.meta());
  if (resume.state != 0 && resume.offset <= byte_size(tensor) && resume.offset % item_size(tensor.dtype()) == 0 &&
      download_states_->matches(resume.state, tensor, executor_.stats())) {
    download.state = resume.state;
    download.offset = resume.offset;
  } else if (byte_size(tensor) > resume.keep_above) {
    download.state = download_states_->add(tensor, executor_.stats());
  }
  if (on_cpu(tensor)) {
    download.bytes = std::make_unique<HostReader>(tensor);
  } else {
    download_from_device(handle, tensor, &download);
  }
  if (download.bytes && download.offset != 0) download.bytes->skip(download.offset);
  return download;
}

// Releases the lock while the device computes, so that other frames need not wait.
void Session::download_from_device(uint64_t handle, Tensor tensor, Download* download) try {
  const PendingErrors pending_errors = tensor->storage->pending_errors;
  std::unique_ptr<Event> computed;
  {
    ContextScope scope(&context_);
    tensor = detach(packed(tensor));  // without history, because the copy may be destroyed on another thread
    computed = context_.stream(tensor.device()).record();
  }
  {
    MutexUnlock unlocked(mutex_);
    computed->synchronize();
  }
  download->error = poison_of(handle, pending_errors);
  if (!download->error) download->bytes = std::make_unique<DeviceReader>(downloads_, tensor);
} catch (const Error& error) {
  download->error = to_wire(error);
}

std::shared_ptr<SharedSegment> Session::segment() const {
  MutexLock lock(progress_mutex_);
  return segment_;
}

absl::StatusOr<std::shared_ptr<SharedSegment>> Session::segment_of(uint64_t nonce) const {
  std::shared_ptr<SharedSegment> current = segment();
  if (!current) return absl::FailedPreconditionError("the session has no shared memory");
  if (current->nonce() != nonce) return absl::FailedPreconditionError("the session's shared memory has been replaced");
  return current;
}

std::shared_ptr<SharedSegment> Session::offer_segment() {
  const uint64_t limit = account_->limit();
  const bool is_small = limit == 0 || shared_ring::kSegmentBytes <= limit / kSegmentShare;
  std::shared_ptr<SharedSegment> fresh;
  if (is_small && account_->has_host_room(shared_ring::kSegmentBytes)) fresh = SharedSegment::create(account_);
  std::shared_ptr<SharedSegment> replaced = fresh;
  MutexLock lock(progress_mutex_);
  segment_.swap(replaced);  // the old segment is destroyed after the lock is released, and may wait for a device
  return fresh;
}

}  // namespace tt::server
