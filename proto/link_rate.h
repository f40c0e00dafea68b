// LinkRate: measures how many bytes per second a link passes in one direction while transfers keep it busy.
//
// Only the time during which at least one transfer is in progress counts. The estimate is the largest of the last few
// samples, because a busy receiver makes a sample too small. An estimate is used for ten seconds and then unknown until
// the next sample. Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"

namespace tt {

// Size of chunks that are sent while the rate is unknown, so that it is known soon.
inline constexpr size_t kMeasuredChunkBytes = size_t{256} << 10;

class LinkRate {
 public:
  using Clock = std::chrono::steady_clock;

  // A part of a transfer, usually the write or the read of one chunk.
  class Interval {
   public:
    explicit Interval(LinkRate& rate) : rate_(rate) { rate_.begin(Clock::now()); }
    ~Interval() { dropped_ ? rate_.drop(Clock::now()) : rate_.end(bytes_, Clock::now()); }
    Interval(const Interval&) = delete;
    Interval& operator=(const Interval&) = delete;
    // Sets the number of bytes that have passed at the end of the interval; 0 by default.
    void passed(size_t bytes) { bytes_ = bytes; }
    // Discards the interval, because its length was not determined by the link.
    void drop() { dropped_ = true; }

   private:
    LinkRate& rate_;
    size_t bytes_ = 0;
    bool dropped_ = false;
  };

  // Returns bytes per second; 0 if unknown.
  double current(Clock::time_point now = Clock::now()) const {
    MutexLock lock(mutex_);
    double rate = 0;
    for (const Sample& sample : samples_) {
      if (sample.rate > 0 && now - sample.at < kValid) rate = std::max(rate, sample.rate);
    }
    return rate;
  }
  // Returns the last known rate, however old; 0 if there is none.
  double last() const {
    MutexLock lock(mutex_);
    double rate = 0;
    for (const Sample& sample : samples_) rate = std::max(rate, sample.rate);
    return rate;
  }

  // The steps of an Interval.
  void begin(Clock::time_point now) {
    MutexLock lock(mutex_);
    if (active_++ > 0) return;
    // Consecutive chunks of a transfer are one period.
    if (now - ended_ > kMaxGap) restart(now);
  }
  void end(size_t bytes, Clock::time_point now) {
    MutexLock lock(mutex_);
    bytes_ += bytes;
    --active_;
    ended_ = now;
    const auto time = now - since_;
    if ((bytes_ >= kManyBytes && time >= kShortTime) || (bytes_ >= kFewBytes && time >= kLongTime)) add_sample(now);
  }
  void drop(Clock::time_point now) {
    MutexLock lock(mutex_);
    --active_;
    ended_ = since_ = now;
    bytes_ = 0;
  }

 private:
  static constexpr size_t kManyBytes = size_t{1} << 20, kFewBytes = size_t{64} << 10;
  static constexpr std::chrono::milliseconds kShortTime{20}, kLongTime{50}, kMaxGap{1};
  static constexpr std::chrono::seconds kValid{10};
  struct Sample {
    double rate = 0;
    Clock::time_point at;
  };

  void restart(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (bytes_ >= kManyBytes && ended_ > since_) add_sample(ended_);
    since_ = now;
    bytes_ = 0;
    samples_of_period_ = 0;
  }
  void add_sample(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const double rate = static_cast<double>(bytes_) / std::chrono::duration<double>(now - since_).count();
    // The first sample of a period is too large if its bytes filled buffers: the second one replaces it.
    if (samples_of_period_++ == 1) --next_;
    samples_[next_++ % samples_.size()] = {rate, now};
    since_ = now;
    bytes_ = 0;
  }

  mutable Mutex mutex_;
  int active_ ABSL_GUARDED_BY(mutex_) = 0;           // intervals
  Clock::time_point since_ ABSL_GUARDED_BY(mutex_);  // start of the sample
  Clock::time_point ended_ ABSL_GUARDED_BY(mutex_);  // end of the last interval
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;       // since then
  size_t samples_of_period_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<Sample, 3> samples_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tt
