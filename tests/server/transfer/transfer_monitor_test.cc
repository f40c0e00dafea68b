// TransferMonitor: the limit of calls, and which calls are cancelled.
#include "server/transfer/transfer_monitor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tt::server {
namespace {

using Call = TransferMonitor::Call;
using Direction = TransferMonitor::Direction;
using std::chrono::milliseconds;

constexpr auto kAlways = [] { return true; };

class TransferMonitorTest : public ::testing::Test {
 protected:
  void restart(TransferMonitor::Limits limits) { monitor_ = std::make_shared<TransferMonitor>(limits); }
  std::unique_ptr<Call> begin(uint64_t session, Direction direction = Direction::kDownload) {
    auto call = monitor_->begin(session, direction, [this] { ++cancelled_; });
    if (call.ok()) return *std::move(call);
    EXPECT_EQ(call.status().code(), absl::StatusCode::kAborted);
    return nullptr;
  }
  std::vector<std::unique_ptr<Call>> begin_all(uint64_t session) {
    std::vector<std::unique_ptr<Call>> calls;
    while (auto call = begin(session)) calls.push_back(std::move(call));
    return calls;
  }
  // Waits up to 10 s.
  bool is_cancelled(int times = 1) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (cancelled_ < times && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return cancelled_ >= times;
  }

  std::shared_ptr<TransferMonitor> monitor_ = std::make_shared<TransferMonitor>();
  std::atomic<int> cancelled_ = 0;
};

TEST_F(TransferMonitorTest, LimitsTransfersPerSessionAndDirection) {
  restart({.per_session = 3});
  auto downloads = begin_all(1);
  EXPECT_EQ(downloads.size(), 3u);
  EXPECT_NE(begin(1, Direction::kUpload), nullptr);
  EXPECT_NE(begin(2), nullptr);
  downloads.pop_back();
  EXPECT_NE(begin(1), nullptr);
}

TEST_F(TransferMonitorTest, ReservesTransfersForOtherSessions) {
  restart({.per_engine = 64, .per_session = 1000});
  std::vector<std::vector<std::unique_ptr<Call>>> all;
  for (uint64_t session = 1; session <= 5; ++session) {
    all.push_back(begin_all(session));
    EXPECT_GE(all.back().size(), 1u) << session;
  }
  EXPECT_EQ(all[0].size(), 32u);
  all[0].clear();
  EXPECT_GE(begin_all(6).size(), 16u);
}

TEST_F(TransferMonitorTest, LimitsTransfersThatHoldBuffers) {
  restart({.streaming = 2});
  auto first = begin(1), second = begin(1), third = begin(1), other = begin(2), upload = begin(1, Direction::kUpload);
  EXPECT_TRUE(first->acquire_buffers(kAlways));
  EXPECT_TRUE(second->acquire_buffers(kAlways));
  EXPECT_TRUE(other->acquire_buffers(kAlways));
  EXPECT_TRUE(upload->acquire_buffers(kAlways));
  int asked = 0;
  EXPECT_FALSE(third->acquire_buffers([&] { return ++asked < 2; }));
  std::thread ends([&] {
    std::this_thread::sleep_for(milliseconds(20));
    second.reset();
  });
  EXPECT_TRUE(third->acquire_buffers(kAlways));
  ends.join();
  third->release_buffers();
  second = begin(1);
  EXPECT_TRUE(second->acquire_buffers(kAlways));
}

TEST_F(TransferMonitorTest, CancelsStalledCall) {
  restart({.idle = milliseconds(50)});
  auto call = begin(1);
  Call::ClientWait wait(*call);
  EXPECT_TRUE(is_cancelled());
}

TEST_F(TransferMonitorTest, KeepsActiveCall) {
  restart({.idle = milliseconds(200)});
  auto works = begin(1), moves = begin(1);
  for (int i = 0; i < 60; ++i) {
    Call::ClientWait wait(*moves);
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(cancelled_, 0);
}

TEST_F(TransferMonitorTest, EndedSessionCancelsItsCalls) {
  auto one = begin(1), two = begin(1, Direction::kUpload), other = begin(2);
  monitor_->end_session(1);
  EXPECT_EQ(cancelled_, 2);
  one.reset();
  two.reset();
  monitor_->end_session(1);
  EXPECT_EQ(cancelled_, 2);
}

TEST_F(TransferMonitorTest, CancelsUploadByNumber) {
  auto one = begin(1, Direction::kUpload), two = begin(1, Direction::kUpload), other = begin(2, Direction::kUpload);
  one->carry(7);
  two->carry(8);
  other->carry(7);
  monitor_->cancel_upload(1, 7);
  EXPECT_EQ(cancelled_, 1);
}

TEST_F(TransferMonitorTest, CallsDropExpiredAtDeadline) {
  struct Thing final : Expirable {
    void drop_expired() override { expired = true; }
    std::atomic<bool> expired = false;
  };
  auto thing = std::make_shared<Thing>(), gone = std::make_shared<Thing>();
  monitor_->expire_at(TransferMonitor::Clock::now() + milliseconds(5), gone);
  monitor_->expire_at(TransferMonitor::Clock::now() + milliseconds(10), thing);
  gone.reset();
  for (int i = 0; i < 10'000 && !thing->expired; ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(thing->expired);
}

}  // namespace
}  // namespace tt::server
