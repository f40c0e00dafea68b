// Inflight: bytes of requests in progress and of answers that have not been sent, counted while the object exists.
//
// InflightBytes counts all of them, and those of each caller as well: a request keeps its memory while it waits, and an
// answer until its client has read it, so that without a share one caller would leave none to others. Inflight may
// outlive the server: gRPC destroys those of answers. InflightBytes is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace tt::server {

class InflightBytes;

// What the bytes belong to. A caller has one share for its requests and one for its answers.
enum class InflightUse : uint8_t { kRequest, kAnswer };

class Inflight {
 public:
  Inflight() = default;
  Inflight(Inflight&& other) noexcept
      : all_(std::move(other.all_)), bytes_(other.bytes_), caller_(std::move(other.caller_)), use_(other.use_) {}
  Inflight& operator=(Inflight&& other) noexcept;
  ~Inflight() { release(); }

  // Counts at most this many bytes from now on.
  void shrink(uint64_t bytes);

 private:
  friend class InflightBytes;
  Inflight(std::shared_ptr<InflightBytes> all, uint64_t bytes, std::string caller, InflightUse use)
      : all_(std::move(all)), bytes_(bytes), caller_(std::move(caller)), use_(use) {}
  void release();

  std::shared_ptr<InflightBytes> all_;
  uint64_t bytes_ = 0;
  std::string caller_;  // empty: counts for none
  InflightUse use_ = InflightUse::kAnswer;
};

class InflightBytes : public std::enable_shared_from_this<InflightBytes> {
 public:
  explicit InflightBytes(uint64_t limit) : limit_(limit) {}

  // OUT_OF_RANGE if the bytes alone are more than the limit, so that trying again is useless. RESOURCE_EXHAUSTED if all
  // together would have more, the requests or the answers of `caller` more than half of it, or both together more than
  // three quarters. A caller may always have one request and one answer, and one of more than half of the limit beside
  // others that have less. Without a caller only the limit of all holds.
  absl::StatusOr<Inflight> begin(uint64_t bytes, absl::string_view caller = "", InflightUse use = InflightUse::kAnswer);
  uint64_t limit() const { return limit_; }

 private:
  friend class Inflight;
  struct Held {
    uint64_t requests = 0, answers = 0;
    uint64_t& of(InflightUse use) { return use == InflightUse::kRequest ? requests : answers; }
  };
  // Counts the bytes for a caller, if its share has room for them.
  absl::Status begin_own(uint64_t bytes, const std::string& caller, InflightUse use);
  void release(uint64_t bytes, const std::string& caller, InflightUse use);

  const uint64_t limit_;
  std::atomic<uint64_t> all_{0};
  Mutex mutex_;
  absl::flat_hash_map<std::string, Held> held_ ABSL_GUARDED_BY(mutex_);  // by caller
};

}  // namespace tt::server
