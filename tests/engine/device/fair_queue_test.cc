// Turns go to the share that had the least time for its weight; none waits for ever.
#include "engine/device/fair_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"

namespace tt {
namespace {

using std::chrono::milliseconds;
using Priority = Share::Priority;

void wait_for_waiting(const FairQueue& queue, size_t threads) {
  while (queue.waiting() != threads) std::this_thread::yield();
}

TEST(FairQueueTest, TurnsWithoutWaitersAreFree) {
  FairQueue queue(2);
  Share share("alice");
  Flow flow;
  {
    Turn first(&queue, &share, &flow);
    EXPECT_EQ(Turn::current(), &first);
    std::thread([&] {
      EXPECT_EQ(Turn::current(), nullptr);
      Flow other;
      Turn second(&queue, &share, &other);
      second.add(milliseconds(5));
      EXPECT_FALSE(second.may_widen());  // both cores have a turn
      EXPECT_EQ(second.waited().count(), 0);
    }).join();
    first.offer();
    EXPECT_TRUE(first.may_widen());
  }
  EXPECT_EQ(Turn::current(), nullptr);
  EXPECT_GE(share.used(), milliseconds(5));
  const Turn none(nullptr, nullptr, nullptr);
  EXPECT_EQ(Turn::current(), nullptr);
}

TEST(FairQueueTest, DividesTimeByWeight) {
  FairQueue queue(1);
  constexpr std::array<uint32_t, 3> kWeights{1, 2, 4};
  constexpr int kThreads = 3, kTurns = 1400;
  std::deque<Share> shares;
  std::array<std::atomic<int>, 3> counts{};
  std::atomic<int> turns{0};
  std::vector<std::thread> threads;
  {
    Share starter("starter");
    Flow flow;
    const Turn held(&queue, &starter, &flow);  // until all threads wait
    for (size_t s = 0; s < kWeights.size(); ++s) {
      shares.emplace_back("share").set(kWeights[s], Priority::kInteractive);
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, s] {
          Flow flow;
          while (turns < kTurns) {
            Turn turn(&queue, &shares[s], &flow);
            turn.add(milliseconds(50));  // much longer than the turn takes
            while (turns < kTurns && queue.waiting() + 1 < kThreads * kWeights.size()) std::this_thread::yield();
            if (turns++ < kTurns) ++counts[s];
          }
        });
      }
    }
    wait_for_waiting(queue, threads.size());
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t s = 0; s < kWeights.size(); ++s) {
    EXPECT_NEAR(counts[s].load() / (kTurns / 7.0 * kWeights[s]), 1, 0.05) << "weight " << kWeights[s];
  }
}

TEST(FairQueueTest, IdleTimeEarnsNoCredit) {
  FairQueue queue(1);
  Share busy("busy"), late("late");
  Flow flow;
  for (int i = 0; i < 100; ++i) {
    Turn turn(&queue, &busy, &flow);
    turn.add(milliseconds(100));
  }
  // Both wait now: `late` may not have all of the next ten seconds.
  std::atomic<int> turns{0}, of_late{0};
  std::vector<std::thread> threads;
  {
    const Turn held(&queue, &busy, &flow);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        Flow flow;
        while (turns < 40) {
          Turn turn(&queue, t % 2 == 0 ? &late : &busy, &flow);
          turn.add(milliseconds(100));
          while (turns < 40 && queue.waiting() + 1 < 4) std::this_thread::yield();
          if (turns++ < 40 && t % 2 == 0) ++of_late;
        }
      });
    }
    wait_for_waiting(queue, threads.size());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NEAR(of_late, 20, 3);
}

TEST(FairQueueTest, InteractiveSharesPrecedeBatchShares) {
  FairQueue queue(1);
  Share batch("batch"), interactive("interactive"), holder("holder");
  Flow flow, batch_flow, interactive_flow;
  batch.set(1000, Priority::kBatch);
  std::string order;
  std::vector<std::thread> threads;
  {
    const Turn held(&queue, &holder, &flow);
    threads.emplace_back([&] {
      const Turn turn(&queue, &batch, &batch_flow);
      order += 'b';  // by the holder of the only turn
    });
    wait_for_waiting(queue, 1);
    threads.emplace_back([&] {
      const Turn turn(&queue, &interactive, &interactive_flow);
      order += 'i';
    });
    wait_for_waiting(queue, 2);
    EXPECT_EQ(queue.position(interactive_flow), 0);
    EXPECT_EQ(queue.position(batch_flow), 1);
    EXPECT_EQ(queue.position(flow), -1);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, "ib");
}

TEST(FairQueueTest, BatchSharesDoNotStarve) {
  FairQueue queue(1);
  Share batch("batch"), interactive("interactive");
  batch.set(1, Priority::kBatch);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      Flow flow;
      while (!done) {
        Turn turn(&queue, &interactive, &flow);
        for (const auto end = FairQueue::Clock::now() + milliseconds(3); FairQueue::Clock::now() < end;) turn.offer();
      }
    });
  }
  {
    Flow flow;
    const Turn turn(&queue, &batch, &flow);  // is not reached if it waits for ever
    done = true;
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(FairQueueTest, LongWorkOffersItsTurn) {
  FairQueue queue(1);
  Share busy("busy"), small("small");
  Flow flow, other_flow;
  std::atomic<bool> done{false};
  std::thread other;
  {
    Turn turn(&queue, &busy, &flow);
    other = std::thread([&] {
      const Turn its(&queue, &small, &other_flow);
      EXPECT_GT(its.waited().count(), 0);
      done = true;
    });
    while (!done) check_cancelled();  // does not end if the turn is not offered
    EXPECT_EQ(Turn::current(), &turn);
  }
  other.join();
}

TEST(FairQueueTest, TurnsInTheBackgroundLeaveACore) {
  FairQueue queue(2);
  Share share("warm-up"), other("other");
  Flow flow, second_flow, other_flow;
  std::atomic<bool> done{false};
  std::thread second;
  {
    Turn first(&queue, &share, &flow, /*in_background=*/true);
    EXPECT_FALSE(first.may_widen());
    second = std::thread([&] {
      const Turn its(&queue, &share, &second_flow, /*in_background=*/true);
      done = true;
    });
    wait_for_waiting(queue, 1);
    std::thread([&] {
      const Turn its(&queue, &other, &other_flow);  // is not reached if it waits for the background
      EXPECT_FALSE(done);
    }).join();
    while (!done) check_cancelled();  // does not end if the turn is not offered to the second one
  }
  second.join();
  FairQueue single(1);
  const Turn alone(&single, &share, &flow, /*in_background=*/true);
}

TEST(FairQueueTest, SessionsOfAShareTakeTurns) {
  FairQueue queue(1);
  Share share("alice");
  Flow flow;
  std::atomic<int> done{0};
  std::vector<std::thread> others;
  {
    const Turn turn(&queue, &share, &flow);
    for (int t = 0; t < 2; ++t) {
      others.emplace_back([&] {
        Flow other_flow;
        const Turn its(&queue, &share, &other_flow);
        ++done;
      });
    }
    while (done != 2) check_cancelled();  // does not end if the turn is not offered
  }
  for (std::thread& other : others) other.join();
}

TEST(FairQueueTest, LoopsOfferTurnsBetweenBlocks) {
  FairQueue queue(1);
  Share busy("busy"), small("small");
  Flow flow, other_flow;
  Cancellation cancellation;
  std::atomic<bool> done{false};
  const Turn turn(&queue, &busy, &flow);
  std::thread other([&] {
    const Turn its(&queue, &small, &other_flow);
    done = true;
    cancellation.request(CancelReason::kClient);
  });
  const CancellationScope scope(&cancellation);
  const int limit = set_thread_limit(1);  // without the pool, whose holder does not offer its turn
  const auto body = [](int64_t begin, int64_t end) {
    std::this_thread::sleep_for(std::chrono::microseconds(end - begin));
  };
  EXPECT_THROW(parallel_for(int64_t{1} << 60, 1, body), Cancelled);
  set_thread_limit(limit);
  EXPECT_TRUE(done);
  other.join();
}

TEST(FairQueueTest, WaitsWithinAPauseAreNoTimeOfTheFrame) {
  FairQueue queue(1);
  Share a("a"), b("b");
  Flow flow, other_flow;
  Cancellation cancellation(std::chrono::seconds(1));
  const CancellationScope scope(&cancellation);
  cancellation.reset();
  Turn turn(&queue, &a, &flow);
  std::thread other;
  {
    const Cancellation::Pause suspended;
    const Turn::Pause without_turn(turn);
    std::atomic<bool> has_turn{false};
    other = std::thread([&] {
      const Turn its(&queue, &b, &other_flow);
      has_turn = true;
      while (queue.waiting() == 0) std::this_thread::yield();
    });
    while (!has_turn) std::this_thread::yield();
  }
  EXPECT_GE(cancellation.running().count(), 0);
  other.join();
}

TEST(FairQueueTest, PausedTurnsAreFree) {
  FairQueue queue(1);
  Share a("a"), b("b");
  Flow flow, other_flow;
  Turn turn(&queue, &a, &flow);
  {
    const Turn::Pause pause(turn);
    EXPECT_EQ(Turn::current(), nullptr);
    std::thread([&] { const Turn other(&queue, &b, &other_flow); }).join();
  }
  EXPECT_EQ(Turn::current(), &turn);
}

TEST(FairQueueTest, CancelledWorkDoesNotWait) {
  FairQueue queue(1);
  Share a("a"), b("b");
  Flow flow, other_flow;
  {
    const Turn held(&queue, &a, &flow);
    std::thread([&] {
      Cancellation cancellation;
      cancellation.request(CancelReason::kEnded);
      const CancellationScope scope(&cancellation);
      const Turn none(&queue, &b, &other_flow);
    }).join();
    EXPECT_EQ(queue.waiting(), 0u);
  }
  // It returned no turn that it did not have.
  const Turn held(&queue, &a, &flow);
  std::thread waiting([&] { const Turn other(&queue, &b, &other_flow); });
  wait_for_waiting(queue, 1);
  EXPECT_EQ(queue.position(other_flow), 0);
  while (queue.waiting() != 0) Turn::current()->offer();
  waiting.join();
}

// Sessions whose clients are gone may have hours of queued work. One that computes a little waits for one of them at
// most.
TEST(FairQueueTest, FlowsThatHadLessPrecedeOthersOfTheirShare) {
  FairQueue queue(1);
  Share share("alice");
  Flow held_flow, small_flow;
  std::deque<Flow> flows(5);
  std::string order;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    for (Flow& flow : flows) Turn(&queue, &share, &flow).add(milliseconds(100));
  }
  Turn(&queue, &share, &small_flow).add(milliseconds(20));
  {
    const Turn held(&queue, &share, &held_flow);
    for (Flow& flow : flows) {
      threads.emplace_back([&] {
        const Turn turn(&queue, &share, &flow);
        order += 'l';  // by the holder of the only turn
      });
    }
    wait_for_waiting(queue, flows.size());
    threads.emplace_back([&] {
      const Turn turn(&queue, &share, &small_flow);
      order += 's';
    });
    wait_for_waiting(queue, flows.size() + 1);
    EXPECT_EQ(queue.position(small_flow), 0);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, "slllll");
}

// Otherwise the end of a session would send flows that had little behind all others.
TEST(FairQueueTest, CancelledWorkDoesNotAdvanceVirtualTime) {
  FairQueue queue(1);
  Share share("alice");
  Flow held_flow, ahead, behind, small;
  Turn(&queue, &share, &ahead).add(std::chrono::seconds(10));
  Turn(&queue, &share, &behind).add(milliseconds(100));
  std::vector<std::thread> threads;
  {
    const Turn held(&queue, &share, &held_flow);
    std::thread([&] {
      Cancellation cancellation;
      cancellation.request(CancelReason::kEnded);
      const CancellationScope scope(&cancellation);
      const Turn none(&queue, &share, &ahead);
    }).join();
    for (Flow* const flow : {&behind, &small}) {
      threads.emplace_back([&, flow] { const Turn turn(&queue, &share, flow); });
      wait_for_waiting(queue, threads.size());
    }
    EXPECT_EQ(queue.position(small), 0);
    EXPECT_EQ(queue.position(behind), 1);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tt
