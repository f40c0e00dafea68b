// Inflight: bytes of requests in progress and of answers that have not been sent, counted while the object exists.
//
// InflightBytes counts all of them, and answers by their callers as well: an answer keeps its memory until its client
// has read it, so that without a share a client that reads nothing would leave none to others. Inflight may outlive the
// server: gRPC destroys those of answers. InflightBytes is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace tt::server {

class InflightBytes;

class Inflight {
 public:
  Inflight() = default;
  Inflight(Inflight&& other) noexcept
      : all_(std::move(other.all_)), bytes_(other.bytes_), caller_(std::move(other.caller_)) {}
  Inflight& operator=(Inflight&& other) noexcept;
  ~Inflight() { release(); }

  // Counts at most this many bytes from now on.
  void shrink(uint64_t bytes);

 private:
  friend class InflightBytes;
  Inflight(std::shared_ptr<InflightBytes> all, uint64_t bytes, std::string caller)
      : all_(std::move(all)), bytes_(bytes), caller_(std::move(caller)) {}
  void release();

  std::shared_ptr<InflightBytes> all_;
  uint64_t bytes_ = 0;
  std::string caller_;  // empty: of a request
};

class InflightBytes : public std::enable_shared_from_this<InflightBytes> {
 public:
  explicit InflightBytes(uint64_t limit) : limit_(limit) {}

  // RESOURCE_EXHAUSTED if all together would have more bytes than the limit, or the answers of `caller` more than half
  // of it. A caller may always have one answer. Without a caller the bytes are those of a request.
  absl::StatusOr<Inflight> begin(uint64_t bytes, absl::string_view caller = "");
  uint64_t limit() const { return limit_; }

 private:
  friend class Inflight;
  void release(uint64_t bytes, const std::string& caller);

  const uint64_t limit_;
  std::atomic<uint64_t> all_{0};
  Mutex mutex_;
  absl::flat_hash_map<std::string, uint64_t> answers_ ABSL_GUARDED_BY(mutex_);  // by caller
};

}  // namespace tt::server
