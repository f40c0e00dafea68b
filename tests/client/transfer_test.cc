// Compressed, content-addressed and cancelled transfers between the client and a real teletensord, through gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "tests/client/daemon_session.h"

namespace tt::client::testing {
namespace {

using ::testing::HasSubstr;

Ref<Session> connect_with(const Daemon& daemon, const std::string& compression) {
  return connect(
      {.address = daemon.address(), .token = daemon.token(), .shared_memory = false, .compression = compression});
}

Tensor upload(Session& session, const std::string& bytes) {
  return session.upload(bytes, DType::kUInt8, {static_cast<int64_t>(bytes.size())}, Device());
}

std::string compressible(size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; i += 3) bytes[i] = static_cast<char>(random() % 5);
  return bytes;
}

std::string incompressible(size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// An upload is counted when its call has ended, which may be after its tensor was read.
TransferCounters counters_of(const Session& session) {
  while (session.counters().upload_bytes_in_flight > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return session.counters().transfers;
}

TEST(CompressedTransfer, RoundTrip) {
  Daemon daemon;
  Ref<Session> session = connect_with(daemon, "zstd");
  constexpr size_t kInline = 64 << 10, kChunk = 2 << 20;
  size_t total = 0;
  for (size_t size : {kInline + 1, size_t{100'003}, kChunk - 1, kChunk, kChunk + 1, 5 * kChunk + 5}) {
    for (const std::string& bytes : {compressible(size), incompressible(size), std::string(size, 'x')}) {
      EXPECT_TRUE(session->read(upload(*session, bytes)).bytes == bytes) << size;
      total += size;
    }
  }
  const TransferCounters counters = counters_of(*session);
  EXPECT_EQ(counters.upload_bytes, total);
  EXPECT_EQ(counters.download_bytes, total);
  EXPECT_LT(counters.upload_compressed_bytes, total * 2 / 3);
  EXPECT_LT(counters.download_compressed_bytes, total * 2 / 3);
}

TEST(CompressedTransfer, IsNotUsedUnlessBothSidesWant) {
  const std::string bytes = compressible(4 << 20);
  const auto transfer = [&](const Daemon& daemon, const std::string& compression) {
    Ref<Session> session = connect_with(daemon, compression);
    EXPECT_TRUE(session->read(upload(*session, bytes)).bytes == bytes);
    const TransferCounters counters = counters_of(*session);
    return counters.upload_compressed_bytes + counters.download_compressed_bytes;
  };
  Daemon daemon;
  EXPECT_EQ(transfer(daemon, "none"), 2 * bytes.size());
  EXPECT_LT(transfer(daemon, "zstd"), bytes.size());
  Daemon without({"--no-compression"});
  EXPECT_EQ(transfer(without, "zstd"), 2 * bytes.size());
}

TEST(CompressedTransfer, RejectsUnknownMode) {
  try {
    connect({.address = "unix:/tmp/nobody-listens-here.sock", .compression = "gzip"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kValue);
    EXPECT_THAT(error.message(), HasSubstr("expected compression to be auto, zstd or none, got gzip"));
  }
}

// Each chunk is independent, so a transfer continues at the last chunk that has arrived.
TEST(CompressedTransfer, ContinuesAfterBreaks) {
  Daemon daemon;
  relay::Relay relay({.listen = daemon.address() + ".relay", .target = daemon.address()});
  Ref<Session> session =
      connect({.address = relay.address(), .token = daemon.token(), .shared_memory = false, .compression = "zstd"});
  RepeatedBreaks breaks(relay);
  std::string bytes = compressible(size_t{96} << 20);
  for (int round = 0; round < 2; ++round) {
    bytes[17] = static_cast<char>(round);
    EXPECT_TRUE(session->read(upload(*session, bytes)).bytes == bytes);
  }
  std::vector<Tensor> tensors;  // in the background
  for (unsigned i = 0; i < 50; ++i) tensors.push_back(upload(*session, compressible(200'000, i)));
  for (unsigned i = 0; i < 50; ++i) {
    EXPECT_TRUE(session->read(tensors[i]).bytes == compressible(200'000, i)) << i;
  }
  EXPECT_GE(relay.connections(), 3u);
  const TransferCounters counters = counters_of(*session);
  EXPECT_LT(counters.upload_compressed_bytes, counters.upload_bytes / 2);
}

Ref<Session> connect_addressed(const std::string& address, const Daemon& daemon) {
  return connect({.address = address, .token = daemon.token(), .shared_memory = false, .content_addressed = true});
}

TEST(ContentAddressedUpload, SendsBytesOnce) {
  Daemon daemon;
  Ref<Session> session = connect_addressed(daemon.address(), daemon);
  const std::string bytes = incompressible(5'000'001), small(1 << 20, 'x');
  const auto transfer = [&](Session& to, const std::string& sent) {
    Tensor tensor = upload(to, sent);
    EXPECT_TRUE(to.read(tensor).bytes == sent);
    return tensor;
  };
  const auto counts = [&] {
    const TransferCounters counters = counters_of(*session);
    return std::pair(counters.upload_bytes, counters.upload_reused_bytes);
  };
  Tensor tensor = transfer(*session, bytes);
  EXPECT_EQ(counts(), std::pair(bytes.size(), size_t{0}));
  Tensor again = transfer(*session, bytes);
  EXPECT_EQ(counts(), std::pair(bytes.size(), bytes.size()));
  transfer(*session, small);
  transfer(*session, small);
  EXPECT_EQ(counts(), std::pair(bytes.size() + 2 * small.size(), bytes.size())) << "too small to wait for an answer";
  Ref<Session> other = connect_addressed(daemon.address(), daemon);
  transfer(*other, bytes);
  EXPECT_EQ(counters_of(*other).upload_bytes, 0u);
  EXPECT_EQ(counters_of(*other).upload_reused_bytes, bytes.size());
  Ref<Session> ordinary = connect_with(daemon, "none");
  transfer(*ordinary, bytes);
  EXPECT_EQ(counters_of(*ordinary).upload_bytes, bytes.size());
}

TEST(ContentAddressedUpload, ContinuesAfterBreaks) {
  Daemon daemon;
  relay::Relay relay({.listen = daemon.address() + ".relay", .target = daemon.address()});
  Ref<Session> session = connect_addressed(relay.address(), daemon);
  RepeatedBreaks breaks(relay);
  std::string bytes = compressible(size_t{96} << 20);
  for (int round = 0; round < 3; ++round) {
    bytes[17] = static_cast<char>(round);
    Tensor first = upload(*session, bytes), second = upload(*session, bytes);
    EXPECT_TRUE(session->read(first).bytes == bytes);
    EXPECT_TRUE(session->read(second).bytes == bytes);
  }
  EXPECT_GE(relay.connections(), 3u);
}

// After a cancellation the client does not send the remaining bytes of queued uploads.
TEST(CancelledUpload, IsNotSent) {
  Daemon daemon;
  Ref<Session> session = connect_with(daemon, "none");
  const std::string bytes(1 << 20, 'x');
  session->synchronize();
  daemon.stop_running();
  std::vector<Tensor> tensors;
  for (int i = 0; i < 60; ++i) tensors.push_back(upload(*session, bytes));
  std::thread cancels([&] { session->cancel(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(daemon.pid(), SIGCONT);
  cancels.join();
  session->synchronize();
  for (int i = 0; i < 500 && session->counters().upload_bytes_in_flight > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(session->counters().upload_bytes_in_flight, 0u);
  EXPECT_LT(counters_of(*session).upload_bytes, 56u << 20);  // of 60 MiB; up to 32 MiB were in progress
  EXPECT_THROW(session->read(tensors.back()), RemoteError);
  EXPECT_TRUE(session->read(upload(*session, bytes)).bytes == bytes);
}

}  // namespace
}  // namespace tt::client::testing
