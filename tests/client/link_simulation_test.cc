// SendWindow and InFlightLimit on a simulated link, in virtual time: the engine is never idle while the client has
// work, and the bytes in flight are bounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "client/link/in_flight_limit.h"
#include "client/link/send_window.h"

namespace tt::client {
namespace {

using Clock = InFlightLimit::Clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

struct Workload {
  Clock::duration round_trip;
  Clock::duration jitter;     // at most, per frame
  Clock::duration issue;      // time in which the client issues an instruction
  Clock::duration execution;  // time in which the engine executes one
  size_t bytes = 40;          // of an instruction
};

struct Usage {
  Clock::duration idle{};  // of the engine, after the first half
  Clock::duration total{};
  size_t max_bytes = 0;  // in flight
  uint64_t max_frames = 0;
};

// A client that always has work, and an engine that executes frames in order.
class SimulatedLink {
 public:
  explicit SimulatedLink(const Workload& workload) : workload_(workload) { limit_.connected(workload.round_trip); }

  Usage run(Clock::duration duration) {
    constexpr microseconds kTick{20};
    const Clock::time_point end = now_ + duration;
    for (counted_from_ = now_ + duration / 2; now_ < end; now_ += kTick) {
      receive();
      issue();
      send();
    }
    return usage_;
  }

 private:
  struct Frame {
    uint64_t sequence;
    size_t bytes;
    Clock::time_point acknowledged;
  };

  void issue() {
    for (; issued_until_ <= now_ && !window_.is_full({workload_.bytes, 0}); issued_until_ += workload_.issue) {
      window_.building().count({workload_.bytes, 0});
      window_.add_instruction();
    }
    issued_until_ = std::max(issued_until_, now_);
  }

  void send() {
    while (window_.may_send() && !(window_.may_delay() && window_.sent_recently(now_))) {
      OutgoingFrame& frame = window_.begin_send(now_);
      window_.end_send(true);
      limit_.sent(frame.sequence(), now_);
      const Clock::duration jitter = workload_.jitter * static_cast<int>(random_() % 1024) / 1024;
      arrival_ = std::max(arrival_, now_ + workload_.round_trip / 2 + jitter);
      const Clock::time_point start = std::max(arrival_, engine_free_);
      if (start > counted_from_) {
        usage_.idle += start - std::max(engine_free_, counted_from_);
        usage_.total = start - counted_from_;
      }
      engine_free_ = start + workload_.execution * frame.instructions();
      in_flight_.push_back({frame.sequence(), frame.bytes(), engine_free_ + workload_.round_trip / 2});
      bytes_ += frame.bytes();
      usage_.max_bytes = std::max(usage_.max_bytes, bytes_);
      usage_.max_frames = std::max<uint64_t>(usage_.max_frames, in_flight_.size());
    }
  }

  void receive() {
    for (; !in_flight_.empty() && in_flight_.front().acknowledged <= now_; in_flight_.pop_front()) {
      window_.acknowledge(in_flight_.front().sequence);
      limit_.acknowledged(in_flight_.front().sequence, now_);
      bytes_ -= in_flight_.front().bytes;
    }
    window_.set_max_unacknowledged(limit_.frames());
    while (std::unique_ptr<OutgoingFrame> frame = window_.take_acknowledged()) {
      frame->clear();
      window_.recycle(std::move(frame));
    }
  }

  const Workload workload_;
  std::mt19937 random_{1};
  SendWindow window_;
  InFlightLimit limit_;
  Clock::time_point now_{seconds(1)};
  Clock::time_point issued_until_ = now_, arrival_ = now_, engine_free_ = now_, counted_from_;
  std::deque<Frame> in_flight_;
  size_t bytes_ = 0;
  Usage usage_;
};

TEST(LinkSimulationTest, EngineIsBusyWhileClientHasWork) {
  for (Clock::duration round_trip : {milliseconds(1), milliseconds(20), milliseconds(100), milliseconds(300)}) {
    for (Clock::duration jitter : {Clock::duration(), round_trip / 10}) {
      for (Clock::duration execution : {microseconds(5), microseconds(40), microseconds(2000)}) {
        SCOPED_TRACE(testing::Message() << round_trip / microseconds(1) << " us, jitter " << jitter / microseconds(1)
                                        << " us, " << execution / microseconds(1) << " us per instruction");
        const Workload workload{round_trip, jitter, microseconds(2), execution};
        const Usage usage = SimulatedLink(workload).run(seconds(8));
        EXPECT_GT(usage.total, Clock::duration());
        EXPECT_LE(usage.idle, usage.total / (jitter == Clock::duration() ? 100 : 50));
      }
    }
  }
}

// Instructions with inline data fill the byte limit before the frame limit.
TEST(LinkSimulationTest, BytesInFlightAreBounded) {
  for (size_t bytes : {size_t{40}, size_t{4} << 10, size_t{60} << 10}) {
    const Workload workload{milliseconds(100), milliseconds(10), microseconds(2), microseconds(5), bytes};
    const Usage usage = SimulatedLink(workload).run(seconds(3));
    EXPECT_LE(usage.max_bytes, SendWindow::kMaxInFlightBytes + SendWindow::kMaxBytes);
    EXPECT_LE(usage.max_frames, InFlightLimit::kMax);
  }
}

}  // namespace
}  // namespace tt::client
