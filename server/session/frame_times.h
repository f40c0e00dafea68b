// FrameTimes: histograms of the times that frames wait and take, and counts of errors and transfers, over all sessions.
//
// Buckets grow by a factor of four from 1 us, so that one array of counters serves a read of 3 us and a training step
// of seconds. Thread-safe: relaxed counters, so a reader may see a frame in one histogram and not yet in the other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace tt::server {

class FrameTimes {
 public:
  static constexpr size_t kErrorKinds = 13;
  static constexpr size_t kBounds = 13;  // 1 us to 16.8 s; the last bucket has no bound
  static constexpr double bound_seconds(size_t i) { return 1e-6 * static_cast<double>(uint64_t{1} << (2 * i)); }

  struct Histogram {
    std::array<std::atomic<uint64_t>, kBounds + 1> counts{};
    std::atomic<uint64_t> nanoseconds{0};  // sum

    void add(uint64_t elapsed) {
      size_t bucket = 0;
      while (bucket < kBounds && elapsed > uint64_t{1000} << (2 * bucket)) ++bucket;
      counts[bucket].fetch_add(1, std::memory_order_relaxed);
      nanoseconds.fetch_add(elapsed, std::memory_order_relaxed);
    }
  };

  // Of tensors' bytes on calls of their own, or through shared memory.
  struct Transfers {
    std::atomic<uint64_t> complete{0}, broken{0}, bytes{0};

    void add(bool is_complete, uint64_t moved) {
      (is_complete ? complete : broken).fetch_add(1, std::memory_order_relaxed);
      bytes.fetch_add(moved, std::memory_order_relaxed);
    }
  };

  void add_error(int kind) {
    errors[static_cast<size_t>(kind) < kErrorKinds ? static_cast<size_t>(kind) : 0].fetch_add(
        1, std::memory_order_relaxed);
  }

  Histogram waiting;                                        // from the receipt of a frame to its execution
  Histogram executing;                                      // of a frame, its reply included
  std::array<std::atomic<uint64_t>, kErrorKinds> errors{};  // that were sent to clients, by v1::ErrorKind; 0: others
  Transfers uploads, downloads;
};

}  // namespace tt::server
