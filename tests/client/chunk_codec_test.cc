// Compression of chunks, and the measurement of a link's rate.
#include "proto/chunk_codec.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "proto/link_rate.h"

namespace tt {
namespace {

constexpr double kSlow = 1e4;     // so slow that the time to compress does not matter
constexpr double kFast = 1.25e9;  // 10 Gbit/s

std::string random_bytes(size_t size) {
  std::mt19937_64 random(1);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

template <typename T, typename F>
std::string items(size_t count, F value) {
  std::string bytes(count * sizeof(T), '\0');
  for (size_t i = 0; i < count; ++i) {
    const T item = value(i);
    std::memcpy(&bytes[i * sizeof(T)], &item, sizeof(T));
  }
  return bytes;
}

std::string normal_floats(size_t count) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  return items<float>(count, [&](size_t) { return normal(random); });
}

struct Compressed {
  bool done = false;
  std::string data;
  v1::ChunkCompression how;
};

Compressed compress(const std::string& bytes, double rate, CompressionMode mode = CompressionMode::kAuto) {
  Compressed result;
  result.done = ChunkCompressor(mode).compress(bytes, rate, &result.data, &result.how);
  return result;
}

TEST(ChunkCodec, RestoresBytes) {
  ChunkDecompressor decompressor;
  std::string text;
  for (int i = 0; text.size() < 300'000; ++i) text += std::to_string(i * 977);
  for (const std::string& bytes :
       {text, text.substr(0, 100'001), normal_floats(100'000), normal_floats(100'000).substr(0, 399'997),
        items<int64_t>(50'000, [](size_t i) { return static_cast<int64_t>(i * 7919 % 1000); }),
        items<int16_t>(50'001, [](size_t i) { return static_cast<int16_t>(i % 300); }), std::string(8192, 'x')}) {
    const Compressed compressed = compress(bytes, 0, CompressionMode::kAlways);
    ASSERT_TRUE(compressed.done) << bytes.size();
    EXPECT_LT(compressed.data.size(), bytes.size());
    EXPECT_EQ(compressed.how.bytes(), bytes.size());
    std::string restored(bytes.size(), '\0');
    EXPECT_TRUE(decompressor.decompress(compressed.data, compressed.how, absl::MakeSpan(restored)).ok());
    EXPECT_TRUE(restored == bytes) << bytes.size();
  }
}

TEST(ChunkCodec, ShufflesItemsWhereItHelps) {
  EXPECT_EQ(compress(normal_floats(1 << 18), kSlow).how.item_bytes(), 4u);
  EXPECT_EQ(compress(std::string(1 << 20, 'x'), kSlow).how.item_bytes(), 0u);
}

TEST(ChunkCodec, CompressesOnlyIfItPays) {
  const std::string labels = items<int64_t>(1 << 17, [](size_t i) { return static_cast<int64_t>(i * 7919 % 1000); });
  EXPECT_TRUE(compress(labels, kSlow).done);
  EXPECT_FALSE(compress(labels, kFast).done);
  EXPECT_FALSE(compress(labels, 0).done) << "the rate is unknown";
  EXPECT_FALSE(compress(labels, kSlow, CompressionMode::kNone).done);
  EXPECT_TRUE(compress(labels, kFast, CompressionMode::kAlways).done);
  for (CompressionMode mode : {CompressionMode::kAuto, CompressionMode::kAlways}) {
    EXPECT_FALSE(compress(random_bytes(1 << 20), kSlow, mode).done);
  }
}

TEST(ChunkCodec, TriesAgainWhenDataChanges) {
  ChunkCompressor compressor(CompressionMode::kAuto);
  const std::string random = random_bytes(1 << 17), zeros(1 << 17, '\0');
  std::string data;
  v1::ChunkCompression how;
  EXPECT_FALSE(compressor.compress(random, kSlow, &data, &how));
  int chunks = 1;
  while (chunks < 100 && !compressor.compress(zeros, kSlow, &data, &how)) ++chunks;
  EXPECT_LE(chunks, 16);
  EXPECT_FALSE(compressor.compress(random, kSlow, &data, &how)) << "a chunk that would grow is sent as it is";
}

TEST(ChunkCodec, RejectsInvalidData) {
  const std::string bytes(100'000, 'x');
  const Compressed valid = compress(bytes, 0, CompressionMode::kAlways);
  ASSERT_TRUE(valid.done);
  std::string into(bytes.size(), '\0');
  ChunkDecompressor decompressor;
  const auto status = [&](const std::string& data, const v1::ChunkCompression& how, size_t size) {
    return decompressor.decompress(data, how, absl::MakeSpan(into).first(size));
  };
  EXPECT_TRUE(absl::IsInvalidArgument(status(valid.data, valid.how, bytes.size() - 1)));  // larger than announced
  into.resize(bytes.size() + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(status(valid.data, valid.how, bytes.size() + 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(status(valid.data.substr(0, valid.data.size() - 1), valid.how, bytes.size())));
  EXPECT_TRUE(absl::IsInvalidArgument(status("", valid.how, bytes.size())));
  EXPECT_TRUE(absl::IsInvalidArgument(status("not a frame", valid.how, bytes.size())));
  for (uint32_t item : {1u, 3u, 16u, UINT32_MAX}) {
    v1::ChunkCompression how = valid.how;
    how.set_item_bytes(item);
    EXPECT_TRUE(absl::IsInvalidArgument(status(valid.data, how, bytes.size()))) << item;
  }
  v1::ChunkCompression how = valid.how;
  how.set_codec(static_cast<v1::Codec>(7));
  EXPECT_TRUE(absl::IsInvalidArgument(status(valid.data, how, bytes.size())));
  EXPECT_TRUE(status(valid.data, valid.how, bytes.size()).ok());
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {  // must not crash or write outside (sanitizers)
    std::string data = valid.data;
    v1::ChunkCompression mutated = valid.how;
    mutated.set_item_bytes(std::array{0u, 2u, 4u, 8u}[random() % 4]);
    for (unsigned n = random() % 4; n-- > 0;) data[random() % data.size()] ^= static_cast<char>(random());
    status(data, mutated, random() % into.size()).IgnoreError();
  }
}

using std::chrono::milliseconds;

TEST(LinkRateTest, MeasuresConsecutiveChunks) {
  LinkRate rate;
  LinkRate::Clock::time_point now{};
  EXPECT_EQ(rate.current(now), 0);
  for (int i = 0; i < 20; ++i) {
    rate.begin(now);
    rate.end(1 << 20, now += milliseconds(100));
  }
  EXPECT_NEAR(rate.current(now), 10 << 20, 1 << 16);
  EXPECT_NEAR(rate.last(), 10 << 20, 1 << 16);
  EXPECT_EQ(rate.current(now + std::chrono::seconds(11)), 0) << "too old";
}

// The first chunks fill the link's buffers.
TEST(LinkRateTest, ForgetsInitialBurst) {
  LinkRate rate;
  LinkRate::Clock::time_point now{};
  rate.begin(now);
  rate.end(4 << 20, now += milliseconds(20));
  EXPECT_GT(rate.current(now), 100 << 20);
  rate.begin(now);
  rate.end(1 << 20, now += milliseconds(200));
  EXPECT_NEAR(rate.current(now), 5 << 20, 1 << 16);
}

TEST(LinkRateTest, DoesNotCountTimeBetweenTransfers) {
  LinkRate rate;
  LinkRate::Clock::time_point now{};
  for (int i = 0; i < 5; ++i) {
    rate.begin(now);
    rate.begin(now += milliseconds(10));  // a second transfer at the same time
    rate.end(1 << 19, now += milliseconds(20));
    rate.end(1 << 19, now += milliseconds(20));
    now += std::chrono::seconds(1);
  }
  EXPECT_NEAR(rate.last(), 20 << 20, 1 << 20);
}

TEST(LinkRateTest, IgnoresDroppedIntervals) {
  LinkRate rate;
  LinkRate::Clock::time_point now{};
  rate.begin(now);
  rate.end(1 << 20, now += milliseconds(10));
  rate.begin(now);
  rate.drop(now += milliseconds(500));
  rate.begin(now);
  rate.end(1 << 20, now += milliseconds(50));
  EXPECT_NEAR(rate.last(), 20 << 20, 1 << 16);
}

}  // namespace
}  // namespace tt
