// A thread that waits for its permission to call OpenBLAS leaves its turn to those that have the permission.
#include "kernels/cpu/blas/openblas_call.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "engine/device/cancellation.h"
#include "engine/device/fair_queue.h"

namespace tt::cpu {
namespace {

constexpr int kMaxCalls = 96;

TEST(OpenBlasCallTest, WaitsWithoutTurn) {
  std::vector<std::unique_ptr<OpenBlasCall>> calls;
  for (int i = 0; i < kMaxCalls; ++i) calls.push_back(std::make_unique<OpenBlasCall>());
  FairQueue queue(1);
  Share share("alice");
  Flow flow, holders_flow;
  std::atomic<bool> has_turn{false}, is_allowed{false};
  std::thread waiting([&] {
    const Turn turn(&queue, &share, &flow);
    has_turn = true;
    const OpenBlasCall call;
    EXPECT_TRUE(call);
    EXPECT_EQ(Turn::current(), &turn);
    is_allowed = true;
  });
  while (!has_turn) std::this_thread::yield();
  // A holder of a permission that needs the only turn for its next call.
  Cancellation cancellation;
  std::atomic<bool> got_turn{false};
  std::thread holder([&] {
    const CancellationScope scope(&cancellation);
    const Turn turn(&queue, &share, &holders_flow);
    got_turn = !cancel_requested();
  });
  for (int i = 0; i < 1000 && !got_turn; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  cancellation.request(CancelReason::kEnded);  // ends the wait of a holder without a turn
  holder.join();
  EXPECT_TRUE(got_turn);
  EXPECT_FALSE(is_allowed);
  calls.clear();
  waiting.join();
  EXPECT_TRUE(is_allowed);
}

}  // namespace
}  // namespace tt::cpu
