// DownloadQueue, with a function in place of the network.
#include "client/link/download_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/schema/error.h"

namespace tt::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr auto kForever = std::chrono::milliseconds::max();

// Receives downloads: the value is filled with the handle. Holds each until let_through() was called for it, and fails
// those of odd handles after fail_odd(), and all after end().
class Network {
 public:
  void receive(uint64_t handle, absl::Span<char> into) {
    std::unique_lock lock(mutex_);
    begun_.push_back(handle);
    changed_.notify_all();
    changed_.wait(lock, [&] { return allowed_ > 0 || ended_; });
    if (ended_) fail(ErrorKind::kConnection, "the link has ended");
    --allowed_;
    if (fails_odd_ && handle % 2 == 1) fail(ErrorKind::kIndex, "handle ", handle, " failed");
    std::fill(into.begin(), into.end(), static_cast<char>(handle));
  }
  void let_through(int count) {
    std::lock_guard lock(mutex_);
    allowed_ += count;
    changed_.notify_all();
  }
  void end() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  void fail_odd() {
    std::lock_guard lock(mutex_);
    fails_odd_ = true;
  }
  std::vector<uint64_t> wait_for_begun(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= count; });
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int allowed_ = 0;
  bool ended_ = false;
  bool fails_odd_ = false;
  std::vector<uint64_t> begun_;
};

class DownloadQueueTest : public testing::Test {
 protected:
  void TearDown() override {
    network_.end();
    queue_.stop();
  }
  static std::string bytes_of(const BackgroundDownload& download) {
    EXPECT_TRUE(download.wait_for(kForever));
    const absl::Span<char> bytes = download.bytes();
    return {bytes.data(), bytes.size()};
  }

  Network network_;
  DownloadQueue queue_{[this](uint64_t handle, absl::Span<char> into) { network_.receive(handle, into); }};
};

TEST_F(DownloadQueueTest, ReceivesBytes) {
  const auto download = queue_.add(5, 3), empty = queue_.add(6, 0);
  network_.wait_for_begun(1);
  EXPECT_FALSE(download->done());
  EXPECT_FALSE(download->wait_for(std::chrono::milliseconds(0)));
  network_.let_through(2);
  EXPECT_EQ(bytes_of(*download), std::string(3, '\5'));
  EXPECT_TRUE(download->done());
  EXPECT_EQ(bytes_of(*empty), "");
  download->bytes()[1] = 'x';  // the caller may change them
  EXPECT_EQ(bytes_of(*download), std::string("\5x\5"));
}

TEST_F(DownloadQueueTest, ReceivesFourAtATimeOldestFirst) {
  std::vector<std::shared_ptr<BackgroundDownload>> downloads;
  for (uint64_t handle = 1; handle <= 7; ++handle) downloads.push_back(queue_.add(handle, 1));
  EXPECT_THAT(network_.wait_for_begun(4), UnorderedElementsAre(1, 2, 3, 4));
  network_.let_through(1);
  const std::vector<uint64_t> five = network_.wait_for_begun(5);
  EXPECT_EQ(five.size(), 5u);
  EXPECT_EQ(five[4], 5u);
  network_.let_through(6);
  for (uint64_t handle = 1; handle <= 7; ++handle) {
    EXPECT_EQ(bytes_of(*downloads[handle - 1]), std::string(1, static_cast<char>(handle)));
  }
}

TEST_F(DownloadQueueTest, SkipsDroppedDownloadsThatHaveNotBegun) {
  std::vector<std::shared_ptr<BackgroundDownload>> downloads;
  for (uint64_t handle = 1; handle <= 8; ++handle) downloads.push_back(queue_.add(handle, 1));
  network_.wait_for_begun(4);
  downloads[0] = downloads[4] = downloads[5] = nullptr;  // the first has begun
  network_.let_through(100);
  EXPECT_EQ(bytes_of(*downloads[6]), "\7");
  EXPECT_EQ(bytes_of(*downloads[7]), "\10");
  EXPECT_THAT(network_.wait_for_begun(6), UnorderedElementsAre(1, 2, 3, 4, 7, 8));
}

TEST_F(DownloadQueueTest, FailureIsThatDownloadsError) {
  network_.fail_odd();
  const auto one = queue_.add(1, 1), two = queue_.add(2, 1);
  network_.let_through(2);
  EXPECT_TRUE(one->wait_for(kForever));
  for (int i = 0; i < 2; ++i) {
    try {
      one->bytes();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIndex);
      EXPECT_THAT(error.message(), HasSubstr("handle 1 failed"));
    }
  }
  EXPECT_EQ(bytes_of(*two), "\2");
}

// Waiting callers return when the link has ended, whether their downloads have begun or not.
TEST_F(DownloadQueueTest, StopEndsDownloadsWithErrors) {
  std::vector<std::shared_ptr<BackgroundDownload>> downloads;
  for (uint64_t handle = 1; handle <= 6; ++handle) downloads.push_back(queue_.add(handle, 1));
  network_.wait_for_begun(4);
  std::thread waits([&] { EXPECT_TRUE(downloads[5]->wait_for(kForever)); });
  network_.end();
  queue_.stop();
  waits.join();
  for (const auto& download : downloads) {
    EXPECT_TRUE(download->done());
    EXPECT_THROW(download->bytes(), Error);
  }
  EXPECT_THROW(queue_.add(7, 1), Error);
}

TEST_F(DownloadQueueTest, StopWithoutDownloads) {
  queue_.stop();
  EXPECT_THAT(network_.wait_for_begun(0), ElementsAre());
}

}  // namespace
}  // namespace tt::client
