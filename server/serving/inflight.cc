#include "server/serving/inflight.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

// Answers of at most this part of the limit do not count for their callers: the number of calls limits them.
constexpr uint64_t kSmallParts = uint64_t{1} << 14;

}  // namespace

Inflight& Inflight::operator=(Inflight&& other) noexcept {
  if (this == &other) return *this;
  release();
  all_ = std::move(other.all_);
  bytes_ = other.bytes_;
  caller_ = std::move(other.caller_);
  return *this;
}

void Inflight::release() {
  if (all_ != nullptr) all_->release(bytes_, caller_);
  all_ = nullptr;
}

void Inflight::shrink(uint64_t bytes) {
  if (all_ == nullptr || bytes >= bytes_) return;
  all_->release(bytes_ - bytes, caller_);
  bytes_ = bytes;
}

absl::StatusOr<Inflight> InflightBytes::begin(uint64_t bytes, absl::string_view caller) {
  Inflight inflight(shared_from_this(), bytes, std::string());
  if (all_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit_) {
    return absl::ResourceExhaustedError(absl::StrCat("[ModelInfer] expected requests in progress of at most ", limit_,
                                                     " bytes together; try again later"));
  }
  if (caller.empty() || bytes <= limit_ / kSmallParts) return inflight;
  MutexLock lock(mutex_);
  uint64_t& own = answers_[std::string(caller)];
  if (own != 0 && bytes > limit_ / 2 - std::min(own, limit_ / 2)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[ModelInfer] expected answers that one caller has not read of at most ", limit_ / 2,
                     " bytes together, got ", own, " and one of ", bytes, "; try again later"));
  }
  own += bytes;
  inflight.caller_ = std::string(caller);
  return inflight;
}

void InflightBytes::release(uint64_t bytes, const std::string& caller) {
  all_.fetch_sub(bytes, std::memory_order_relaxed);
  if (caller.empty() || bytes == 0) return;
  MutexLock lock(mutex_);
  const auto found = answers_.find(caller);
  found->second -= bytes;
  if (found->second == 0) answers_.erase(found);
}

}  // namespace tt::server
