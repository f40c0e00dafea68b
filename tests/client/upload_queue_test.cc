// UploadQueue, with a function in place of the network.
#include "client/link/upload_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tt::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Records uploads and holds them until let_through() was called for them.
class Network {
 public:
  void send(uint64_t transfer, absl::Span<const char> bytes) {
    std::unique_lock lock(mutex_);
    begun_.push_back(transfer);
    changed_.notify_all();
    changed_.wait(lock, [&] { return allowed_ > 0; });
    --allowed_;
    sent_.emplace_back(bytes.begin(), bytes.end());
    changed_.notify_all();
  }
  void let_through(int count) {
    std::lock_guard lock(mutex_);
    allowed_ += count;
    changed_.notify_all();
  }
  std::vector<uint64_t> wait_for_begun(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= count; });
    return begun_;
  }
  std::vector<std::string> wait_for_sent(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return sent_.size() >= count; });
    return sent_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int allowed_ = 0;
  std::vector<uint64_t> begun_;
  std::vector<std::string> sent_;
};

class UploadQueueTest : public testing::Test {
 protected:
  void open(size_t max_bytes, int max_calls, size_t min_sending = 1 << 20) {
    queue_.emplace(BackgroundUploads{max_bytes, max_calls, min_sending},
                   [this](uint64_t transfer, Device, absl::Span<const char> bytes) { network_.send(transfer, bytes); });
  }
  bool add(uint64_t transfer, const std::string& bytes) { return queue_->try_add(transfer, Device(), bytes); }
  void TearDown() override {
    network_.let_through(1000);
    if (queue_) queue_->stop();
  }

  Network network_;
  std::optional<UploadQueue> queue_;
};

TEST_F(UploadQueueTest, SendsOldestFirstAndCopies) {
  open(100, 1);
  std::string bytes = "one";
  EXPECT_TRUE(add(1, bytes));
  bytes = "two";
  EXPECT_TRUE(add(2, bytes));
  bytes = "xxx";
  network_.let_through(2);
  EXPECT_THAT(network_.wait_for_sent(2), ElementsAre("one", "two"));
  EXPECT_THAT(network_.wait_for_begun(2), ElementsAre(1, 2));
}

TEST_F(UploadQueueTest, SendsAsManyAtATimeAsAllowed) {
  open(100, 3);
  for (uint64_t i = 1; i <= 5; ++i) EXPECT_TRUE(add(i, "x"));
  EXPECT_THAT(network_.wait_for_begun(3), UnorderedElementsAre(1, 2, 3));
  network_.let_through(5);
  network_.wait_for_sent(5);
  EXPECT_THAT(network_.wait_for_begun(5), UnorderedElementsAre(1, 2, 3, 4, 5));
}

TEST_F(UploadQueueTest, RefusesMoreBytesThanTheLimit) {
  open(10, 1);
  EXPECT_FALSE(add(1, std::string(11, 'x')));
  EXPECT_TRUE(add(2, std::string(6, 'x')));
  EXPECT_FALSE(add(3, std::string(5, 'x')));
  EXPECT_TRUE(add(4, std::string(4, 'x')));
  EXPECT_EQ(queue_->bytes(), 10u);
  network_.let_through(2);
  network_.wait_for_sent(2);
  while (queue_->bytes() > 0) std::this_thread::yield();
  EXPECT_TRUE(add(5, std::string(10, 'x')));
}

// Over a link with delay the bytes in flight follow what the link transports.
TEST_F(UploadQueueTest, SendsMoreWhereTheDelayIsTheLimit) {
  open(10, 8, 2);
  queue_->set_round_trip(std::chrono::hours(1));  // each upload ends within a round trip
  for (uint64_t i = 1; i <= 7; ++i) EXPECT_TRUE(add(i, "x"));
  EXPECT_THAT(network_.wait_for_begun(2), UnorderedElementsAre(1, 2));
  EXPECT_EQ(queue_->max_sending(), 2u);
  network_.let_through(3);  // the first may have begun alone; one of the two others did not
  network_.wait_for_begun(7);  // 3 that ended and 4
  network_.let_through(4);
  network_.wait_for_sent(7);
  queue_->set_round_trip(std::chrono::nanoseconds(1));  // each takes many
  while (queue_->bytes() > 0) std::this_thread::yield();
  EXPECT_TRUE(add(8, "x"));
  network_.let_through(1);
  network_.wait_for_sent(8);
  while (queue_->bytes() > 0) std::this_thread::yield();
  EXPECT_EQ(queue_->max_sending(), 2u);
}

TEST_F(UploadQueueTest, StopDropsUploadsThatHaveNotBegun) {
  open(size_t{1} << 30, 1);  // add() must fail because of stop() only
  EXPECT_TRUE(add(1, "one"));
  EXPECT_TRUE(add(2, "two"));
  network_.wait_for_begun(1);
  std::thread stops([&] { queue_->stop(); });
  while (add(3, "three")) std::this_thread::yield();
  network_.let_through(1000);
  stops.join();
  EXPECT_THAT(network_.wait_for_sent(1), ElementsAre("one"));
}

TEST_F(UploadQueueTest, StopWithoutUploads) {
  open(100, 4);
  queue_->stop();
  EXPECT_THAT(network_.wait_for_begun(0), IsEmpty());
}

}  // namespace
}  // namespace tt::client
