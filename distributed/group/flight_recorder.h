// FlightRecorder: the last collectives and messages of a rank, for reports about a failed group.
//
// Owned by a ProcessGroup. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "engine/schema/dtype.h"

namespace tt::distributed {

class FlightRecorder {
 public:
  static constexpr size_t kCapacity = 64;

  // Records a call; returns its number. `operation` is a static string, `site` is "train.py:12 in step".
  uint64_t add(std::string_view operation, DType dtype, size_t items, std::string_view site);
  // begin() records that the call has begun to exchange bytes; end() that it has ended, with an error unless `error` is
  // empty. Calls that are no longer recorded are ignored.
  void begin(uint64_t call);
  void end(uint64_t call, std::string_view error);

  // One line per call, oldest first: number, operation, dtype, items, state (queued, running, complete or failed),
  // seconds since it was called, begun and ended (empty if it has not), line and error, separated by tabs. At most
  // `max_bytes`, without the oldest calls that do not fit.
  std::string text(size_t max_bytes) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Record {
    uint64_t call;
    std::string_view operation;
    DType dtype;
    size_t items;
    std::string site;
    std::string error;
    Clock::time_point called, begun, ended;
  };
  Record* find(uint64_t call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Record> records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::distributed
