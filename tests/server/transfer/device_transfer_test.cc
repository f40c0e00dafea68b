// Transfers between a client's memory and a (simulated) GPU: direct device access to the ring, and its order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/device/devices.h"
#include "proto/ring_copy.h"
#include "server/transfer/device_reader.h"
#include "server/transfer/shared_segment.h"
#include "tests/cuda/simulated/engine.h"

namespace tt::server {
namespace {

using shared_ring::kChunkBytes;
using shared_ring::kChunks;
using shared_ring::Outcome;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kAlways = [] { return true; };
constexpr size_t kRing = kChunks * kChunkBytes;
// The first sizes are staged; the rest are around multiples of chunks, direct copies, and the ring.
constexpr size_t kSizes[] = {1,         kChunkBytes, 4 * kChunkBytes - 1, 4 * kChunkBytes,  4 * kChunkBytes + 1,
                             kRing - 1, kRing,       kRing + 1,           3 * kRing + 12345};

class DeviceTransferTest : public ::testing::Test {
 protected:
  DeviceTransferTest() { connect(); }

  void connect() {
    client_.reset();
    engine_ = SharedSegment::create();
    const v1::SharedMemory offer = engine_->describe();
    client_ = shared_ring::Segment::open(offer.pid(), offer.file_descriptor(), offer.bytes(), offer.nonce());
    runtime().forget_calls();
  }
  shared_ring::LaneEnd producer() {
    return shared_ring::LaneEnd::producer(client_->header().upload, client_->upload_chunks());
  }
  shared_ring::LaneEnd consumer() {
    return shared_ring::LaneEnd::consumer(client_->header().download, client_->download_chunks());
  }
  cuda::SimulatedRuntime& runtime() { return simulated_.runtime(); }
  Allocator& pool(Device device) { return Devices::instance().allocator(device); }

  static std::vector<char> pattern(size_t bytes) {
    std::vector<char> data(bytes);
    for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 31 + i / 4096 + bytes);
    return data;
  }

  // Uploads through the ring to the device, with `threads` client threads.
  Tensor upload(shared_ring::LaneEnd& up, const std::vector<char>& sent, unsigned threads) {
    std::thread client([&] {
      auto copy = [&](char* chunk, size_t at, size_t size) { std::memcpy(chunk, sent.data() + at, size); };
      EXPECT_EQ(shared_ring::RingCopy(up, sent.size(), copy, kAlways).run(threads), Outcome::kReady);
    });
    auto upload = transfers_->begin(++transfer_, sent.size(), gpu_);
    EXPECT_TRUE(upload.ok());
    EXPECT_TRUE(engine_->receive(**upload, kAlways).ok());
    client.join();
    Transfers::CompletedUpload completed = transfers_->take(transfer_, sent.size(), gpu_);
    completed.copied->synchronize();
    TensorMeta meta = empty({static_cast<int64_t>(sent.size())}, DType::kUInt8, Device{DeviceType::kMeta}).meta();
    meta.device = gpu_;
    return Tensor(new TensorImpl(std::move(meta), std::move(completed.storage)));
  }
  std::vector<char> download(shared_ring::LaneEnd& down, const Tensor& tensor, unsigned threads) {
    std::vector<char> got(static_cast<size_t>(tensor.numel()));
    std::thread client([&] {
      auto copy = [&](const char* chunk, size_t at, size_t size) { std::memcpy(got.data() + at, chunk, size); };
      EXPECT_EQ(shared_ring::RingCopy(down, got.size(), copy, kAlways).run(threads), Outcome::kReady);
    });
    DeviceReader source(downloads_, tensor);
    EXPECT_TRUE(engine_->send(source, kAlways).ok());
    client.join();
    return got;
  }
  void there_and_back() {
    auto up = producer();
    auto down = consumer();
    for (unsigned threads : {1, 3}) {
      for (size_t bytes : kSizes) {
        const std::vector<char> sent = pattern(bytes);
        const Tensor there = upload(up, sent, threads);
        std::vector<char> held(bytes);
        Stream& stream = Devices::instance().backend(gpu_).stream();
        stream.copy(held.data(), there.data(), bytes);
        stream.synchronize();
        EXPECT_TRUE(held == sent) << bytes << " by " << threads;
        EXPECT_TRUE(download(down, there, threads) == sent) << bytes << " by " << threads;
      }
    }
  }

  cuda::SimulatedEngine simulated_;
  const Device gpu_ = simulated_.gpu();
  std::shared_ptr<Account> account_ = std::make_shared<Account>("test");
  std::shared_ptr<Transfers> transfers_ = std::make_shared<Transfers>(account_, 8, Transfers::Timeouts());
  std::shared_ptr<CopyStream> downloads_ = std::make_shared<CopyStream>(account_);
  uint64_t transfer_ = 0;
  std::shared_ptr<SharedSegment> engine_;
  std::unique_ptr<shared_ring::Segment> client_;
};

TEST_F(DeviceTransferTest, DeviceAccessesRingDirectly) {
  there_and_back();
  size_t read = 0, written = 0, longest = 0;
  int pinned = 0;
  for (const std::string& call : runtime().calls()) {
    size_t bytes = 0;
    if (std::sscanf(call.c_str(), "cudaMemcpyAsync from registered %zu", &bytes) == 1) read += bytes;
    longest = std::max(longest, bytes);
    if (std::sscanf(call.c_str(), "cudaMemcpyAsync to registered %zu", &bytes) == 1) written += bytes;
    pinned += call.starts_with("cudaHostRegister ");
  }
  size_t large = 0;
  for (size_t bytes : kSizes) large += bytes < (size_t{1} << 20) ? 0 : 2 * bytes;
  EXPECT_EQ(read, large);
  EXPECT_EQ(written, large);
  EXPECT_LE(longest, kRing / 8);  // so that copies overlap
  EXPECT_EQ(pinned, 2);           // each lane is pinned once
  client_.reset();
  engine_.reset();
  EXPECT_THAT(runtime().calls(), Contains("cudaHostUnregister").Times(2));
}

TEST_F(DeviceTransferTest, SmallTransfersPinNothing) {
  auto up = producer();
  upload(up, pattern(kChunkBytes), 1);
  EXPECT_THAT(runtime().calls(), Not(Contains(HasSubstr("egister"))));
}

TEST_F(DeviceTransferTest, StagesBytesIfPinningFails) {
  runtime().refuse_pinning(true);
  there_and_back();
  runtime().refuse_pinning(false);
  EXPECT_THAT(runtime().calls(), Contains(HasSubstr("cudaHostRegister ")).Times(2));  // not retried
  EXPECT_THAT(runtime().calls(), Not(Contains(HasSubstr("registered"))));
  engine_.reset();
  EXPECT_THAT(runtime().calls(), Not(Contains("cudaHostUnregister")));
}

// The simulated runtime aborts if memory is unpinned while a copy uses it.
TEST_F(DeviceTransferTest, KilledClientLeavesNoMemory) {
  const uint64_t before = account_->held();
  {
    auto up = producer();
    for (uint32_t i = 0; i < kChunks / 2 + 1; ++i) up.pass(1);  // the client stops here
    auto upload = transfers_->begin(++transfer_, 3 * kRing, gpu_);
    ASSERT_TRUE(upload.ok());
    int asked = 0;
    EXPECT_EQ(engine_->receive(**upload, [&] { return ++asked < 2; }).code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(engine_->receive(**upload, kAlways).code(), absl::StatusCode::kFailedPrecondition);
  }
  {
    const Tensor t = empty({static_cast<int64_t>(3 * kRing)}, DType::kUInt8, gpu_);
    DeviceReader source(downloads_, t);
    int asked = 0;
    EXPECT_EQ(engine_->send(source, [&] { return ++asked < 2; }).code(), absl::StatusCode::kCancelled);
  }
  transfers_->close();  // the client might have continued the upload
  EXPECT_EQ(account_->held(), before);
  EXPECT_THAT(runtime().calls(), Contains(HasSubstr("from registered")));
  EXPECT_THAT(runtime().calls(), Contains(HasSubstr("to registered")));
  engine_.reset();
  EXPECT_THAT(runtime().calls(), Contains("cudaHostUnregister").Times(2));
}

TEST_F(DeviceTransferTest, EndedSessionLeavesNoMemory) {
  auto up = producer();
  for (uint32_t i = 0; i < kChunks; ++i) up.pass(1);
  auto upload = transfers_->begin(++transfer_, kRing, gpu_);
  ASSERT_TRUE(upload.ok());
  transfers_->close();
  EXPECT_EQ(engine_->receive(**upload, kAlways).code(), absl::StatusCode::kCancelled);
  engine_.reset();  // aborts if the first copy is still in progress
}

// Uploads that break, either staged from a call's chunks or read by the device from the ring. Another call sends the
// remaining bytes.
TEST_F(DeviceTransferTest, BrokenTransfersContinue) {
  for (const bool through_ring : {false, true}) {
    const size_t bytes = 12 * kChunkBytes + 345;
    const std::vector<char> sent = pattern(bytes);
    const absl::Span<const char> all(sent);
    size_t first = 5 * kChunkBytes;
    connect();
    {
      auto upload = transfers_->begin(++transfer_, bytes, gpu_);
      ASSERT_TRUE(upload.ok());
      if (through_ring) {
        auto up = producer();
        for (uint32_t i = 0; i < 5; ++i) std::memcpy(up.chunk(i), sent.data() + i * kChunkBytes, kChunkBytes);
        up.pass(5);
        int asked = 0;
        EXPECT_FALSE(engine_->receive(**upload, [&] { return ++asked < 2; }).ok());
      } else {
        first += 7;
        ASSERT_TRUE((*upload)->append(all.first(first)).ok());
      }
    }
    auto rest = transfers_->begin(transfer_, bytes, gpu_, /*resume=*/true);
    ASSERT_TRUE(rest.ok());
    ASSERT_EQ((*rest)->received(), first);
    ASSERT_TRUE((*rest)->append(all.subspan(first)).ok());
    Transfers::CompletedUpload completed = transfers_->take(transfer_, bytes, gpu_);
    completed.copied->synchronize();
    TensorMeta meta = empty({static_cast<int64_t>(bytes)}, DType::kUInt8, Device{DeviceType::kMeta}).meta();
    meta.device = gpu_;
    const Tensor there(new TensorImpl(std::move(meta), std::move(completed.storage)));
    DeviceReader source(downloads_, there);
    source.skip(1234567);
    std::vector<char> got(source.left());
    EXPECT_EQ(source.read(got.data(), got.size()), got.size());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin() + 1234567, sent.end()));
    DeviceReader whole(downloads_, there);
    got.resize(bytes);
    whole.read(got.data(), bytes);
    EXPECT_TRUE(got == sent) << through_ring;
  }
}

// Fails on the third chunk, when two are in progress.
class FailingReader final : public ByteSource {
 public:
  explicit FailingReader(DeviceReader& reader) : reader_(reader) {}
  size_t bytes() const override { return reader_.bytes(); }
  size_t left() const override { return reader_.left(); }
  size_t read(char* into, size_t size) override { return reader_.read(into, size); }
  void skip(size_t size) override { reader_.skip(size); }
  std::optional<Device> device() const override { return reader_.device(); }
  std::unique_ptr<Event> fetch(char* into, size_t size) override {
    if (++fetched_ == 3) fail(ErrorKind::kRuntime, "no more");
    return reader_.fetch(into, size);
  }

 private:
  DeviceReader& reader_;
  int fetched_ = 0;
};

TEST_F(DeviceTransferTest, FailureWaitsForInflightCopies) {
  const Tensor t = empty({static_cast<int64_t>(kRing)}, DType::kUInt8, gpu_);
  DeviceReader reader(downloads_, t);
  FailingReader source(reader);
  EXPECT_THROW(engine_->send(source, kAlways).IgnoreError(), Error);
  engine_.reset();  // aborts if a copy is still in progress
  EXPECT_THAT(runtime().calls(), Contains("cudaHostUnregister"));
}

TEST_F(DeviceTransferTest, RejectsInvalidCounters) {
  auto upload = transfers_->begin(++transfer_, 3 * kRing, gpu_);
  ASSERT_TRUE(upload.ok());
  client_->header().upload.produced = kChunks + 1;
  EXPECT_EQ(engine_->receive(**upload, kAlways).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DeviceTransferTest, LostDeviceFailsTransfer) {
  const Device other = simulated_.gpu(1);
  auto up = producer();
  for (uint32_t i = 0; i < kChunks / 2; ++i) up.pass(1);
  auto upload = transfers_->begin(++transfer_, kRing, other);
  ASSERT_TRUE(upload.ok());
  auto lost_meanwhile = [&] {
    runtime().lose(other.index, "the device fell off the bus");
    for (uint32_t i = 0; i < kChunks / 2; ++i) up.pass(1);
    return true;
  };
  const absl::Status status = engine_->receive(**upload, lost_meanwhile);
  EXPECT_THAT(std::string(status.message()), HasSubstr("fell off the bus"));
  EXPECT_THROW(transfers_->take(transfer_, kRing, other), Error);
  engine_.reset();
}

}  // namespace
}  // namespace tt::server
