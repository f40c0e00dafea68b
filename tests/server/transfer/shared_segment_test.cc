// SharedSegment: transfers through shared memory, with corrupt headers and killed clients.
#include "server/transfer/shared_segment.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "proto/ring_copy.h"
#include "server/transfer/host_reader.h"
#include "tests/server/engine_memory.h"

namespace tt::server {
namespace {

using shared_ring::kChunkBytes;
using shared_ring::kChunks;
using shared_ring::Outcome;

constexpr auto kAlways = [] { return true; };

class SharedSegmentTest : public ::testing::Test {
 protected:
  SharedSegmentTest() {
    testing::start_engine();
    engine_ = SharedSegment::create();
    v1::SharedMemory offer = engine_->describe();
    client_ = shared_ring::Segment::open(offer.pid(), offer.file_descriptor(), offer.bytes(), offer.nonce());
    transfers_ = std::make_shared<Transfers>(std::make_shared<Account>("test"), 8, Transfers::Timeouts());
  }
  shared_ring::LaneEnd producer() {
    return shared_ring::LaneEnd::producer(client_->header().upload, client_->upload_chunks());
  }
  shared_ring::LaneEnd consumer() {
    return shared_ring::LaneEnd::consumer(client_->header().download, client_->download_chunks());
  }

  static std::vector<char> pattern(size_t bytes) {
    std::vector<char> data(bytes);
    for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 31 + i / 4096);
    return data;
  }

  std::shared_ptr<SharedSegment> engine_;
  std::unique_ptr<shared_ring::Segment> client_;
  std::shared_ptr<Transfers> transfers_;
};

// Sizes around those of chunks and of the ring, and several times the ring.
constexpr size_t kRing = kChunks * kChunkBytes;
constexpr size_t kSizes[] = {0,         1,     kChunkBytes - 1, kChunkBytes,      kChunkBytes + 1, 3 * kChunkBytes + 5,
                             kRing - 1, kRing, kRing + 1,       3 * kRing + 12345};

TEST_F(SharedSegmentTest, UploadsAllSizesFromManyThreads) {
  ASSERT_NE(client_, nullptr);
  auto up = producer();
  uint64_t transfer = 0;
  for (unsigned threads : {1, 2, 5}) {
    for (size_t bytes : kSizes) {
      std::vector<char> sent = pattern(bytes);
      std::thread client([&] {
        auto copy = [&](char* chunk, size_t at, size_t size) { std::memcpy(chunk, sent.data() + at, size); };
        EXPECT_EQ(shared_ring::RingCopy(up, bytes, copy, kAlways).run(threads), Outcome::kReady);
      });
      auto upload = transfers_->begin(++transfer, bytes);
      ASSERT_TRUE(upload.ok());
      EXPECT_TRUE(engine_->receive(**upload, kAlways).ok());
      client.join();
      Ref<Storage> storage = transfers_->take(transfer, bytes, Device{}).storage;
      EXPECT_EQ(bytes == 0 ? 0 : std::memcmp(storage->data(), sent.data(), bytes), 0) << bytes << " by " << threads;
    }
  }
}

TEST_F(SharedSegmentTest, DownloadsAllSizesToManyThreads) {
  auto down = consumer();
  for (unsigned threads : {1, 2, 5}) {
    for (size_t bytes : kSizes) {
      Tensor t = empty({static_cast<int64_t>(bytes)}, DType::kUInt8, Device{});
      std::vector<char> expected = pattern(bytes), got(bytes);
      if (bytes > 0) std::memcpy(t.data(), expected.data(), bytes);
      std::thread client([&] {
        auto copy = [&](const char* chunk, size_t at, size_t size) { std::memcpy(got.data() + at, chunk, size); };
        EXPECT_EQ(shared_ring::RingCopy(down, bytes, copy, kAlways).run(threads), Outcome::kReady);
      });
      HostReader source(t);
      EXPECT_TRUE(engine_->send(source, kAlways).ok());
      client.join();
      EXPECT_EQ(got, expected) << bytes << " by " << threads;
    }
  }
}

TEST_F(SharedSegmentTest, AbandonedTransferEndsAllThreads) {
  auto up = producer();
  std::atomic<int> copied = 0;
  auto copy = [&](char*, size_t, size_t) { ++copied; };
  int asked = 0;
  auto twice = [&] { return ++asked < 3; };
  EXPECT_EQ(shared_ring::RingCopy(up, 3 * kRing, copy, twice).run(4), Outcome::kStopped);  // no consumer
  EXPECT_EQ(copied, static_cast<int>(kChunks));
  client_->header().upload.consumed = kChunks + 7;  // more than the kChunks that were sent
  EXPECT_EQ(shared_ring::RingCopy(up, kRing, copy, kAlways).run(4), Outcome::kCorrupt);
}

TEST_F(SharedSegmentTest, DeadClientBlocksNoOtherSession) {
  auto upload = transfers_->begin(1, 100);
  int asked = 0;
  auto twice = [&] { return ++asked < 3; };
  EXPECT_EQ(engine_->receive(**upload, twice).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(engine_->receive(**upload, kAlways).code(), absl::StatusCode::kFailedPrecondition);
  Tensor t = empty({static_cast<int64_t>((kChunks + 1) * kChunkBytes)}, DType::kUInt8, Device{});
  HostReader bytes(t);
  asked = 0;
  EXPECT_EQ(engine_->send(bytes, twice).code(), absl::StatusCode::kCancelled);
}

TEST_F(SharedSegmentTest, RejectsInvalidCounters) {
  auto upload = transfers_->begin(1, 10 * kChunkBytes);
  client_->header().upload.produced = kChunks + 1;
  EXPECT_EQ(engine_->receive(**upload, kAlways).code(), absl::StatusCode::kInvalidArgument);
  client_->header().download.consumed = 7;  // nothing was sent
  Tensor t = empty({4}, DType::kUInt8, Device{});
  HostReader bytes(t);
  EXPECT_EQ(engine_->send(bytes, kAlways).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SharedSegmentTest, WrongNonceIsRejected) {
  v1::SharedMemory offer = engine_->describe();
  int fd = offer.file_descriptor();
  EXPECT_EQ(shared_ring::Segment::open(offer.pid(), fd, offer.bytes(), offer.nonce() + 1), nullptr);
  EXPECT_EQ(shared_ring::Segment::open(offer.pid(), fd, offer.bytes() + 1, offer.nonce()), nullptr);
  EXPECT_EQ(shared_ring::Segment::open(offer.pid(), 0, offer.bytes(), offer.nonce()), nullptr);
}

TEST_F(SharedSegmentTest, SegmentCannotShrink) {
  EXPECT_NE(ftruncate(client_->descriptor(), 0), 0);
  EXPECT_NE(ftruncate(client_->descriptor(), 1 << 30), 0);
}

TEST_F(SharedSegmentTest, DetectsExitedClient) {
  EXPECT_FALSE(engine_->client_exited());
  client_.reset();
  EXPECT_TRUE(engine_->client_exited());
}

TEST_F(SharedSegmentTest, UnseenClientIsNotExited) {
  auto unopened = SharedSegment::create();
  EXPECT_FALSE(unopened->client_exited());
}

// ---- Pipes

constexpr auto kSoon = [] { return std::optional<std::chrono::nanoseconds>(std::chrono::milliseconds(1)); };
constexpr auto kNever = [] { return std::optional<std::chrono::nanoseconds>(); };

class PipeTest : public SharedSegmentTest {
 protected:
  shared_ring::PipeWriter writer() { return {client_->header().frames, client_->frame_bytes()}; }
  std::string next(shared_ring::PipeReader& reader) {
    uint32_t size = 0;
    EXPECT_EQ(reader.await(&size, true, kSoon), Outcome::kReady);
    std::string message(size, '\0');
    EXPECT_EQ(reader.read(message.data(), size, kSoon), Outcome::kReady);
    return message;
  }
};

TEST_F(PipeTest, MessagesOfAllSizesArriveInOrder) {
  constexpr size_t kPipe = shared_ring::kPipeBytes;
  const size_t sizes[] = {0, 1, 3, 1000, kPipe - 9, kPipe - 4, kPipe - 1, kPipe, kPipe + 1, 5 * kPipe + 7, 0, 17};
  auto pipes = engine_->claim_pipes();
  ASSERT_NE(pipes, nullptr);
  EXPECT_EQ(engine_->claim_pipes(), nullptr) << "of a second stream";
  auto out = writer();
  std::thread writes([&] {
    for (int round = 0; round < 20; ++round) {
      for (const size_t size : sizes) {
        const std::vector<char> bytes = pattern(size);
        ASSERT_EQ(out.write({bytes.data(), size}, kSoon), Outcome::kReady);
      }
    }
  });
  for (int round = 0; round < 20; ++round) {
    for (const size_t size : sizes) {
      const std::vector<char> expected = pattern(size);
      ASSERT_TRUE(next(pipes->frames) == std::string(expected.begin(), expected.end())) << size;
    }
  }
  writes.join();
}

TEST_F(PipeTest, WaitsEndWhenTheyShould) {
  auto pipes = engine_->claim_pipes();
  auto out = writer();
  uint32_t size = 0;
  EXPECT_EQ(pipes->frames.await(&size, true, kNever), Outcome::kStopped);
  const std::string half(shared_ring::kPipeBytes / 2, 'x');
  EXPECT_EQ(out.write(half, kNever), Outcome::kReady);
  EXPECT_EQ(out.await_room(shared_ring::kPipeBytes / 2, kNever), Outcome::kStopped);
  EXPECT_EQ(next(pipes->frames), half);
  EXPECT_EQ(out.await_room(shared_ring::kPipeBytes / 2, kNever), Outcome::kReady);
}

TEST_F(PipeTest, PositionsOfTheOtherSideAreChecked) {
  auto pipes = engine_->claim_pipes();
  uint32_t size = 0;
  client_->header().frames.written = shared_ring::kPipeBytes + 1;
  EXPECT_EQ(pipes->frames.await(&size, true, kSoon), Outcome::kCorrupt);
  client_->header().replies.read = 1;  // more than was written
  EXPECT_EQ(pipes->replies.await_room(8, kSoon), Outcome::kCorrupt);
  const std::string message(2 * shared_ring::kPipeBytes, 'x');
  EXPECT_EQ(pipes->replies.write(message, kSoon), Outcome::kCorrupt);
}

}  // namespace
}  // namespace tt::server
