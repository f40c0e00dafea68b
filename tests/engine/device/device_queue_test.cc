// A GPU's time goes to the share that had the least for its weight, although kernels run after their launch.
#include "engine/device/device_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/device/cancellation.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = FairQueue::Clock;

// Of threads that wait for a processor for a smaller part of the time, the processors are free.
constexpr double kCalm = 0.3;

// A GPU that executes the kernels of all streams in the order of their launch. Each kernel takes a given time,
// whether or not a thread waits for it.
class Gpu {
 public:
  // Returns when the kernel will have been executed.
  Clock::time_point launch(microseconds time) {
    MutexLock lock(mutex_);
    free_at_ = std::max(free_at_, Clock::now()) + time;
    return free_at_;
  }
  // Time until what was launched will have been executed.
  Clock::duration backlog() {
    MutexLock lock(mutex_);
    return free_at_ - Clock::now();
  }

 private:
  Mutex mutex_;
  Clock::time_point free_at_ ABSL_GUARDED_BY(mutex_);
};

class GpuStream final : public Stream {
 public:
  explicit GpuStream(Gpu& gpu) : gpu_(gpu) {}
  void launch(microseconds time) {
    const auto end = gpu_.launch(time);
    MutexLock lock(mutex_);
    end_ = end;
  }
  // The stream's work never ends, until it is called again.
  void block(bool blocked) { blocked_ = blocked; }
  void lose() { lost_ = true; }

  Device device() const override { return {DeviceType::kCUDA, 0}; }
  std::unique_ptr<Event> record() override {
    if (lost_) fail(ErrorKind::kRuntime, "the device is lost");
    ++records;
    MutexLock lock(mutex_);
    return std::make_unique<End>(end_, blocked_);
  }
  void wait(const Event&) override {}
  void synchronize() override {}
  void copy(void*, const void*, size_t) override {}
  void zero(void*, size_t) override {}
  std::atomic<int> records{0};

 private:
  class End final : public Event {
   public:
    End(Clock::time_point time, const std::atomic<bool>& blocked) : time_(time), blocked_(blocked) {}
    bool done() const override { return Clock::now() >= time_ && !blocked_; }
    void synchronize() override {}

   private:
    const Clock::time_point time_;
    const std::atomic<bool>& blocked_;
  };
  Gpu& gpu_;
  std::atomic<bool> blocked_{false}, lost_{false};
  Mutex mutex_;
  Clock::time_point end_ ABSL_GUARDED_BY(mutex_);
};

// A session of a share, which launches kernels.
struct Session {
  Session(DeviceQueue& queue, Gpu& gpu, uint32_t weight = 1, Share::Priority priority = Share::Priority::kInteractive)
      : stream(gpu), turn(queue, share, flow, stream) {
    share.set(weight, priority);
  }
  void launch(microseconds time = microseconds(0)) {
    turn.before_launch();
    stream.launch(time);
  }
  Share share{"share"};
  Flow flow;
  GpuStream stream;
  DeviceTurn turn;
};

// Time for which the calling thread could run and other threads had the processors.
std::chrono::nanoseconds run_delay() {
  std::ifstream file("/proc/thread-self/schedstat");
  int64_t ran = 0, delayed = 0;
  file >> ran >> delayed;
  return std::chrono::nanoseconds(delayed);
}

// How a GPU was divided.
struct Division {
  std::vector<double> shares;  // by session
  double delay = 0;            // the part of the time for which threads waited for a processor
};

// The shares of a GPU that is modelled in real time are right only if its sessions' threads run when they could.
// Divides until the shares are right; they must not be wrong twice while the processors are free.
void expect_division(const std::function<Division()>& divide, const std::function<bool(const Division&)>& is_right) {
  int failures = 0;
  for (int i = 0; i < 6; ++i) {
    const Division found = divide();
    if (is_right(found)) return;
    if (found.delay < kCalm && ++failures == 2) FAIL() << ::testing::PrintToString(found.shares);
  }
  GTEST_SKIP() << "other threads keep the processors busy";
}

void wait_for_waiting(const DeviceQueue& queue, size_t threads) {
  while (queue.waiting() != threads) std::this_thread::yield();
}

TEST(DeviceQueueTest, AloneATurnIsKeptWithoutEvents) {
  Gpu gpu;
  DeviceQueue queue(1);
  Session alice(queue, gpu);
  for (int i = 0; i < 1000; ++i) {
    alice.launch(microseconds(100));
    if (i % 10 == 0) alice.turn.rest();
  }
  EXPECT_EQ(alice.stream.records, 0);
}

TEST(DeviceQueueTest, ATurnOfARestingSessionIsTakenOnceItsWorkIsDone) {
  Gpu gpu;
  DeviceQueue queue(1);
  Session alice(queue, gpu), bob(queue, gpu);
  alice.launch(milliseconds(20));
  alice.turn.rest();
  const auto end = gpu.launch(microseconds(0));  // of Alice's work
  bob.launch();
  EXPECT_GE(Clock::now(), end);
  EXPECT_GE(bob.turn.take_waited(), milliseconds(1));
  EXPECT_EQ(bob.turn.take_waited().count(), 0);
  bob.turn.rest();
  alice.launch();  // Bob's is done
  EXPECT_LE(alice.stream.records, 2);
  EXPECT_LE(bob.stream.records, 2);
}

// Such as one whose frame has a long call on the processors.
TEST(DeviceQueueTest, ATurnIsTakenFromASessionThatLaunchesNothing) {
  Gpu gpu;
  DeviceQueue queue(1);
  Session alice(queue, gpu), bob(queue, gpu);
  alice.launch();
  bob.launch();
  EXPECT_EQ(alice.stream.records, 1);
}

// The stream waits for work of another session, which may wait for the turn.
TEST(DeviceQueueTest, WorkThatDoesNotEndIsNotWaitedFor) {
  Gpu gpu;
  DeviceQueue queue(1);
  Session alice(queue, gpu), bob(queue, gpu);
  alice.stream.block(true);
  alice.launch();
  alice.turn.rest();
  bob.launch();
  EXPECT_GE(bob.turn.take_waited(), DeviceQueue::kLongestWait);
  bob.turn.rest();
  alice.launch();
  alice.stream.block(false);
}

TEST(DeviceQueueTest, TurnsOfLostDevicesAndOfEndedSessionsAreFree) {
  Gpu gpu;
  DeviceQueue queue(1);
  Session bob(queue, gpu);
  {
    Session alice(queue, gpu);
    alice.launch(milliseconds(100));
  }
  bob.launch();  // the turn was given away
  EXPECT_LT(bob.turn.take_waited(), DeviceQueue::kLongestWait);
  bob.stream.lose();
  bob.turn.rest();
  Session carol(queue, gpu);
  carol.launch();
  SUCCEED();
}

// Launches kernels of these lengths, ahead of the GPU, in frames with pauses between them.
Division divide(const std::vector<uint32_t>& weights, const std::vector<microseconds>& kernels, bool leaves) {
  Gpu gpu;
  DeviceQueue queue(1);
  std::vector<double> used(weights.size());
  std::vector<std::thread> threads;
  std::atomic<bool> ended{false};
  std::atomic<int64_t> delayed{0};
  constexpr milliseconds kLasts{1000};
  for (size_t i = 0; i < weights.size(); ++i) {
    threads.emplace_back([&, i] {
      Session session(queue, gpu, weights[i]);
      while (!ended) {
        for (int k = 0; k < 8 && !ended; ++k) {
          session.launch(kernels[i]);
          used[i] += static_cast<double>(kernels[i].count());
          while (gpu.backlog() > milliseconds(200) && !ended) std::this_thread::sleep_for(microseconds(100));
          if (leaves && i == 0) session.turn.leave();
        }
        session.turn.rest();
        std::this_thread::sleep_for(microseconds(10));  // the next frame
      }
      delayed += run_delay().count();
    });
  }
  std::this_thread::sleep_for(kLasts);
  ended = true;
  for (std::thread& thread : threads) thread.join();
  const double all = std::accumulate(used.begin(), used.end(), 0.0);
  for (double& each : used) each /= all;
  return {used, static_cast<double>(delayed) / static_cast<double>(std::chrono::nanoseconds(kLasts).count())};
}

TEST(DeviceQueueTest, DividesTimeByWeight) {
  const auto by_weight = [] {
    return divide({1, 2, 4}, {microseconds(400), microseconds(50), microseconds(150)}, /*leaves=*/false);
  };
  expect_division(by_weight, [](const Division& found) {
    const std::vector<double>& s = found.shares;
    return std::abs(s[0] - 1 / 7.0) < 0.1 && std::abs(s[1] - 2 / 7.0) < 0.1 && std::abs(s[2] - 4 / 7.0) < 0.1;
  });
}

// So that kernels of a model's instances overlap.
TEST(DeviceQueueTest, SessionsOfAShareHaveTheTurnTogether) {
  Gpu gpu;
  DeviceQueue queue(1);
  Session alice(queue, gpu), bob(queue, gpu);
  Flow other_flow;
  GpuStream other_stream(gpu);
  DeviceTurn other(queue, alice.share, other_flow, other_stream);
  alice.launch(milliseconds(5));
  other.before_launch();  // does not wait
  EXPECT_EQ(other.take_waited().count(), 0);
  for (int i = 0; i < 100; ++i) alice.launch();
  EXPECT_EQ(alice.stream.records, 0);  // nobody waits
  other_stream.launch(milliseconds(20));
  const auto end = gpu.launch(microseconds(0));
  alice.turn.leave();
  EXPECT_EQ(alice.stream.records, 1);
  bob.launch();  // after the other one's work
  EXPECT_GE(Clock::now(), end);
  bob.turn.rest();
  // Both threads of the share wait for one turn.
  bob.stream.block(true);
  bob.launch();
  std::array<std::thread, 2> both{std::thread([&] { alice.launch(); }), std::thread([&] { other.before_launch(); })};
  wait_for_waiting(queue, 2);
  bob.stream.block(false);
  bob.turn.rest();
  for (std::thread& each : both) each.join();
  EXPECT_GT(alice.turn.take_waited().count(), 0);
  EXPECT_GT(other.take_waited().count(), 0);
}

// Work beyond the longest wait is charged to its owner.
TEST(DeviceQueueTest, LongKernelsTakeTheirShare) {
  expect_division(
      [] {
        return divide({1, 1}, {milliseconds(130), milliseconds(1)}, /*leaves=*/false);
      },
      [](const Division& found) { return found.shares[1] > 0.2 && found.shares[1] < 0.7; });
}

// As before the capture of a graph.
TEST(DeviceQueueTest, SessionsThatLeaveTakeTheirShare) {
  expect_division(
      [] {
        return divide({1, 1}, {milliseconds(10), milliseconds(1)}, /*leaves=*/true);
      },
      [](const Division& found) { return found.shares[1] > 0.25 && found.shares[1] < 0.75; });
}

TEST(DeviceQueueTest, InteractiveSharesPrecedeBatchShares) {
  Gpu gpu;
  DeviceQueue queue(1);
  Session holder(queue, gpu), batch(queue, gpu, 1, Share::Priority::kBatch), interactive(queue, gpu);
  holder.stream.block(true);
  holder.launch();
  holder.turn.rest();
  std::atomic<int> turns{0};
  int of_batch = 0, of_interactive = 0;
  std::thread first([&] {
    batch.launch();
    of_batch = ++turns;
    batch.turn.rest();
  });
  wait_for_waiting(queue, 1);
  std::thread second([&] {
    interactive.launch();
    of_interactive = ++turns;
    interactive.turn.rest();
  });
  wait_for_waiting(queue, 2);
  holder.stream.block(false);
  first.join();
  second.join();
  EXPECT_EQ(of_interactive, 1);
  EXPECT_EQ(of_batch, 2);
}

TEST(DeviceQueueTest, CancelledWorkDoesNotWait) {
  Gpu gpu;
  DeviceQueue queue(1);
  Session alice(queue, gpu), bob(queue, gpu);
  std::atomic<bool> ended{false};
  std::thread busy([&] {
    while (!ended) alice.launch(milliseconds(1));
  });
  Cancellation cancellation;
  const CancellationScope scope(&cancellation);
  cancellation.request(CancelReason::kClient);
  bob.launch();  // returns
  EXPECT_EQ(queue.waiting(), 0);
  ended = true;
  busy.join();
}

// Processors are free for others while a session waits for a GPU.
TEST(DeviceQueueTest, AWaitHasNoTurnOfTheProcessors) {
  Gpu gpu;
  FairQueues queues(1, 1);
  Session alice(*queues.gpus[0], gpu), bob(*queues.gpus[0], gpu);
  alice.stream.block(true);
  alice.launch();
  std::thread waits([&] {
    const Turn turn(&queues.processors, &bob.share, &bob.flow);
    bob.launch();
  });
  wait_for_waiting(*queues.gpus[0], 1);
  EXPECT_EQ(queues.position(bob.flow), 0);
  { const Turn turn(&queues.processors, &alice.share, &alice.flow); }
  alice.stream.block(false);
  alice.turn.rest();
  waits.join();
  EXPECT_EQ(queues.position(bob.flow), -1);
  EXPECT_EQ(queues.of({DeviceType::kCUDA, 0}), queues.gpus[0].get());
  EXPECT_EQ(queues.of({DeviceType::kCUDA, 1}), nullptr);
  EXPECT_EQ(queues.of({DeviceType::kCPU, 0}), nullptr);
}

}  // namespace
}  // namespace tt
