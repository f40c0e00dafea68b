// ModelStatistics: what a version of a model has done, for the statistics call and for metrics. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "inference/grpc_service.pb.h"
#include "server/session/frame_times.h"

namespace tt::server {

// Times of one batch.
struct BatchTimes {
  std::chrono::nanoseconds input{}, infer{}, output{};
};

class ModelStatistics {
 public:
  // A request has ended. `total` is its time, `queued` the part of it before its batch began.
  void request(bool succeeded, std::chrono::nanoseconds total, std::chrono::nanoseconds queued, uint64_t rows,
               const BatchTimes& times);
  void batch(uint64_t rows, const BatchTimes& times);

  // All fields but the names and the memory.
  void describe(inference::ModelStatistics* wire) const;
  struct Totals {
    uint64_t succeeded = 0, failed = 0, batches = 0, rows = 0;
  };
  Totals totals() const;
  // Of requests that succeeded: the time in the queue, the time of their batches' runs, and the whole time.
  const FrameTimes::Histogram& queue_times() const { return queue_times_; }
  const FrameTimes::Histogram& compute_times() const { return compute_times_; }
  const FrameTimes::Histogram& request_times() const { return request_times_; }
  std::map<uint64_t, uint64_t> batch_sizes() const;  // numbers of batches by rows

 private:
  struct Duration {
    uint64_t count = 0, ns = 0;
    void add(std::chrono::nanoseconds time) {
      ++count;
      ns += static_cast<uint64_t>(time.count());
    }
    void describe(inference::StatisticDuration* wire) const {
      wire->set_count(count);
      wire->set_ns(ns);
    }
  };
  struct OfBatches {
    Duration input, infer, output;
  };

  mutable Mutex mutex_;
  Duration success_ ABSL_GUARDED_BY(mutex_), fail_ ABSL_GUARDED_BY(mutex_), queue_ ABSL_GUARDED_BY(mutex_),
      input_ ABSL_GUARDED_BY(mutex_), infer_ ABSL_GUARDED_BY(mutex_), output_ ABSL_GUARDED_BY(mutex_);
  uint64_t rows_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_ms_ ABSL_GUARDED_BY(mutex_) = 0;                   // when the last request ended, since 1970
  std::map<uint64_t, OfBatches> batches_ ABSL_GUARDED_BY(mutex_);  // by rows, of which max_batch_size limits the number
  FrameTimes::Histogram queue_times_, compute_times_, request_times_;
};

}  // namespace tt::server
