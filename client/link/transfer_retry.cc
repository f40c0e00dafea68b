#include "client/link/transfer_retry.h"

#include <algorithm>
#include <utility>

#include "engine/schema/error.h"

namespace tt::client {

TransferRetry::Cause TransferRetry::record(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) fail(ErrorKind::kOutOfMemory, "[transfer] ", status.message());
  failed_at_ = Clock::now();
  if (absl::IsAborted(status)) {
    last_progress_ = failed_at_;
    progress.was_refused = true;
    return Cause::kNoRoom;
  }
  if (++progress.failures == 1) last_progress_ = failed_at_;  // the first call may have taken any time
  if (progress.bytes != std::exchange(bytes_then_, progress.bytes)) {
    last_progress_ = failed_at_;
    calls_since_ = 0;
  }
  return Cause::kFailed;
}

void TransferRetry::throw_if_final(const absl::Status& status) const {
  constexpr auto kTimeout = std::chrono::seconds(30);
  // ALREADY_EXISTS: the engine has not noticed yet that the previous call broke.
  const bool temporary = absl::IsUnavailable(status) || absl::IsCancelled(status) || absl::IsInternal(status) ||
                         absl::IsUnknown(status) || absl::IsAlreadyExists(status);
  if (absl::IsNotFound(status)) fail(ErrorKind::kConnection, "[transfer] failed: ", status.message());
  if (!temporary) fail(ErrorKind::kRuntime, "[transfer] failed: ", status.message());
  if (failed_at_ - last_progress_ >= kTimeout) {
    fail(ErrorKind::kConnection, "[transfer] ", name_, " stopped at ", progress.bytes, " of ", bytes_,
         " bytes: no progress for ", kTimeout.count(), " s; the last failure was: ", status.message());
  }
}

void TransferRetry::ignore_time_since_failure() { last_progress_ += Clock::now() - failed_at_; }

std::chrono::milliseconds TransferRetry::next_pause() {
  constexpr auto kPause = std::chrono::milliseconds(5);
  constexpr int kMaxPauses = 10;
  return kPause * std::min(calls_since_++, kMaxPauses);
}

}  // namespace tt::client
