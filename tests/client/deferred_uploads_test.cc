#include "client/session/deferred_uploads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace tt::client {
namespace {

DeferredUpload upload(uint64_t handle) { return {handle, 100 + handle, {3}, DType::kFloat32, Device(), 7}; }

TEST(DeferredUploadsTest, StartsEmpty) {
  DeferredUploads uploads;
  EXPECT_FALSE(uploads.any());
  EXPECT_FALSE(uploads.contains(1));
  EXPECT_FALSE(uploads.take(1));
  EXPECT_FALSE(uploads.take_oldest());
}

TEST(DeferredUploadsTest, TakesAnEntryOnce) {
  DeferredUploads uploads;
  for (uint64_t handle : {2, 5, 9}) EXPECT_FALSE(uploads.add(upload(handle)));
  EXPECT_TRUE(uploads.any());
  EXPECT_TRUE(uploads.contains(5));
  for (uint64_t handle : {1, 3, 6, 10}) EXPECT_FALSE(uploads.contains(handle)) << handle;
  const std::optional<DeferredUpload> taken = uploads.take(5);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->handle, 5u);
  EXPECT_EQ(taken->transfer, 105u);
  EXPECT_EQ(taken->sizes, Sizes{3});
  EXPECT_EQ(taken->dtype, DType::kFloat32);
  EXPECT_EQ(taken->site, 7u);
  EXPECT_FALSE(uploads.contains(5));
  EXPECT_FALSE(uploads.take(5));
  EXPECT_TRUE(uploads.contains(2));
  EXPECT_TRUE(uploads.contains(9));
}

TEST(DeferredUploadsTest, TakesTheOldestFirst) {
  DeferredUploads uploads;
  for (uint64_t handle : {2, 5, 9}) uploads.add(upload(handle));
  uploads.take(2);
  EXPECT_EQ(uploads.take_oldest()->handle, 5u);
  EXPECT_EQ(uploads.take_oldest()->handle, 9u);
  EXPECT_FALSE(uploads.any());
}

TEST(DeferredUploadsTest, ReturnsTheOldestEntryBeyondTheLimit) {
  DeferredUploads uploads;
  for (uint64_t handle = 1; handle <= DeferredUploads::kMax; ++handle) EXPECT_FALSE(uploads.add(upload(handle)));
  const std::optional<DeferredUpload> oldest = uploads.add(upload(DeferredUploads::kMax + 1));
  ASSERT_TRUE(oldest);
  EXPECT_EQ(oldest->handle, 1u);
  EXPECT_FALSE(uploads.contains(1));
  EXPECT_TRUE(uploads.contains(DeferredUploads::kMax + 1));
}

// Exactly one of several threads takes each entry, whether by its handle or as the oldest entry.
TEST(DeferredUploadsTest, ThreadsTakeEachEntryOnce) {
  constexpr uint64_t kUploads = 20'000;
  DeferredUploads uploads;
  std::atomic<uint64_t> added{0};
  std::vector<std::atomic<int>> taken(kUploads + 1);
  const auto record = [&](const std::optional<DeferredUpload>& upload) {
    if (upload) ++taken[upload->handle];
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (uint64_t handle = 1; handle <= kUploads; ++handle) {
        while (added < handle) std::this_thread::yield();
        record(uploads.take(handle));
        if (handle % 3 == 0) record(uploads.take_oldest());
      }
    });
  }
  for (uint64_t handle = 1; handle <= kUploads; ++handle) {
    record(uploads.add(upload(handle)));
    added = handle;
  }
  for (std::thread& thread : threads) thread.join();
  while (const std::optional<DeferredUpload> left = uploads.take_oldest()) record(left);
  EXPECT_FALSE(uploads.any());
  for (uint64_t handle = 1; handle <= kUploads; ++handle) EXPECT_EQ(taken[handle], 1) << handle;
}

}  // namespace
}  // namespace tt::client
