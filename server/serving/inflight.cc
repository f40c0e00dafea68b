#include "server/serving/inflight.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

// Requests and answers of at most this part of the limit do not count for their callers: the number of calls limits
// them.
constexpr uint64_t kSmallParts = uint64_t{1} << 14;

}  // namespace

Inflight& Inflight::operator=(Inflight&& other) noexcept {
  if (this == &other) return *this;
  release();
  all_ = std::move(other.all_);
  bytes_ = other.bytes_;
  caller_ = std::move(other.caller_);
  use_ = other.use_;
  return *this;
}

void Inflight::release() {
  if (all_ != nullptr) all_->release(bytes_, caller_, use_);
  all_ = nullptr;
}

void Inflight::shrink(uint64_t bytes) {
  if (all_ == nullptr || bytes >= bytes_) return;
  all_->release(bytes_ - bytes, caller_, use_);
  bytes_ = bytes;
}

absl::StatusOr<Inflight> InflightBytes::begin(uint64_t bytes, absl::string_view caller, InflightUse use) {
  if (bytes > limit_) {
    const char* const what = use == InflightUse::kRequest ? "a request" : "an answer";
    return absl::OutOfRangeError(absl::StrCat("[ModelInfer] expected ", what, " that takes at most ", limit_,
                                              " bytes of memory, got one of ", bytes));
  }
  // The caller's share first, so that what it is refused never counts among the bytes of all.
  std::string charged;
  if (bytes > limit_ / kSmallParts) charged = std::string(caller);
  if (!charged.empty()) {
    if (absl::Status status = begin_own(bytes, charged, use); !status.ok()) return status;
  }
  Inflight inflight(shared_from_this(), bytes, std::move(charged), use);
  if (all_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit_) {
    return absl::ResourceExhaustedError(absl::StrCat("[ModelInfer] expected requests in progress of at most ", limit_,
                                                     " bytes together; try again later"));
  }
  return inflight;
}

absl::Status InflightBytes::begin_own(uint64_t bytes, const std::string& caller, InflightUse use) {
  const uint64_t half = limit_ / 2, most = limit_ - limit_ / 4;
  MutexLock lock(mutex_);
  Held& held = held_[caller];
  uint64_t& own = held.of(use);
  // What needs more than half waits only until the others have at most that, so that it does not wait forever.
  const bool fits_half = own <= half && (bytes > half || bytes <= half - own);
  const uint64_t together = held.requests + held.answers;
  const bool fits_both = bytes > half || (together <= most && bytes <= most - together);
  if (own != 0 && !(fits_half && fits_both)) {
    const char* const what = use == InflightUse::kRequest ? "requests" : "answers";
    return absl::ResourceExhaustedError(
        absl::StrCat("[ModelInfer] expected ", what, " of one caller that are in progress or not read of at most ",
                     half, " bytes together, got ", own, " and one of ", bytes, "; try again later"));
  }
  own += bytes;
  return absl::OkStatus();
}

void InflightBytes::release(uint64_t bytes, const std::string& caller, InflightUse use) {
  all_.fetch_sub(bytes, std::memory_order_relaxed);
  if (caller.empty() || bytes == 0) return;
  MutexLock lock(mutex_);
  const auto found = held_.find(caller);
  found->second.of(use) -= bytes;
  if (found->second.requests == 0 && found->second.answers == 0) held_.erase(found);
}

}  // namespace tt::server
