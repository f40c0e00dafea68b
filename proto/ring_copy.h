// RingCopy: one transfer between a lane and this process's memory, copied by one or several threads.
//
// One thread copies about 10 GB/s; memory, and a device at the other end, support several times that. Each thread takes
// the next chunk's number, waits for the chunk, and copies it. Chunks are passed to the other side in order: the thread
// that completes the earliest outstanding chunk also passes the completed chunks that follow it. The other side sees a
// single producer or consumer.
#pragma once

#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "proto/shared_ring.h"

namespace tt::shared_ring {

// `Copy` is called as copy(chunk, at, size), for the transfer's bytes from `at` on, by several threads at once; it must
// not throw. `ShouldContinue` is called as should_continue() by one waiting thread at a time. `Stop` is called as
// stop(), periodically, by the thread that called run().
struct NeverStop {
  bool operator()() const { return false; }
};

template <typename Copy, typename ShouldContinue, typename Stop = NeverStop>
class RingCopy {
 public:
  // Prepares a transfer of `bytes` bytes. Uses `end` exclusively until run() returns.
  RingCopy(LaneEnd& end, size_t bytes, Copy copy, ShouldContinue should_continue, Stop stop = {})
      : end_(end),
        first_(end.passed()),
        bytes_(bytes),
        copy_(std::move(copy)),
        stop_(std::move(stop)),
        should_continue_(std::move(should_continue)) {}

  // Copies all bytes on the calling thread and `threads` - 1 other threads, which have ended when run() returns. The
  // transfer is complete only if run() returns kReady. Calls stop() every few milliseconds.
  Outcome run(unsigned threads) {
    std::vector<std::jthread> others;
    try {
      while (others.size() + 1 < threads) {
        others.emplace_back([this] {
          while (copy_next()) continue;
          MutexLock lock(join_mutex_);
          ++ended_;
          one_ended_.notify_one();
        });
      }
    } catch (const std::system_error&) {  // no more threads available: continue with fewer
    }
    for (uint32_t copied = 1; copy_next(); ++copied) {
      if (copied % kChunksPerStopCheck == 0 && stop_()) fail(Outcome::kStopped);
    }
    const auto all_ended = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(join_mutex_) { return ended_ == others.size(); };
    for (MutexLock lock(join_mutex_); !one_ended_.wait_for(join_mutex_, kPollInterval, all_ended);) {
      lock.unlock();
      if (stop_()) fail(Outcome::kStopped);
      lock.lock();
    }
    others.clear();
    return outcome_;
  }

 private:
  static constexpr uint32_t kChunksPerStopCheck = 16;  // a few milliseconds of copying

  // Returns false if no chunk is left or the transfer has failed.
  bool copy_next() {
    if (outcome_.load(std::memory_order_relaxed) != Outcome::kReady) return false;
    const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed), at = index * kChunkBytes;
    if (at >= bytes_) return false;
    const uint32_t number = first_ + static_cast<uint32_t>(index);
    const Outcome outcome = end_.await(number, [this] { return continues(); });
    if (outcome != Outcome::kReady) return fail(outcome), false;
    copy_(end_.chunk(number), at, std::min<uint64_t>(kChunkBytes, bytes_ - at));
    complete(number);
    return true;
  }
  // Marks chunk `number` as copied. Passes the chunks that are complete to the other side, up to the first outstanding
  // one.
  void complete(uint32_t number) {
    MutexLock lock(pass_mutex_);
    copied_[number % kChunks] = true;
    uint32_t count = 0;
    for (; copied_[(end_.passed() + count) % kChunks]; ++count) copied_[(end_.passed() + count) % kChunks] = false;
    if (count != 0) end_.pass(count);
  }
  bool continues() {
    MutexLock lock(continue_mutex_);
    return outcome_ == Outcome::kReady && should_continue_();
  }
  void fail(Outcome outcome) {
    Outcome none = Outcome::kReady;
    outcome_.compare_exchange_strong(none, outcome);  // the first failure is reported
  }

  LaneEnd& end_;
  const uint32_t first_;
  const uint64_t bytes_;
  Copy copy_;
  Stop stop_;
  std::atomic<uint64_t> next_{0};
  std::atomic<Outcome> outcome_{Outcome::kReady};
  Mutex continue_mutex_;
  ShouldContinue should_continue_ ABSL_GUARDED_BY(continue_mutex_);
  Mutex join_mutex_;
  CondVar one_ended_;
  size_t ended_ ABSL_GUARDED_BY(join_mutex_) = 0;  // number of other threads that have ended
  Mutex pass_mutex_;
  // Chunks that are copied but not yet passed to the other side.
  bool copied_[kChunks] ABSL_GUARDED_BY(pass_mutex_) = {};
};

}  // namespace tt::shared_ring
