// Upload and Download calls of clients that do not read, do not send, or are numerous: over gRPC, against a Listener
// in this process with short limits.
#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "proto/chunk_codec.h"
#include "server/daemon/listener.h"
#include "teletensor/v1/admin.grpc.pb.h"
#include "teletensor/v1/engine.grpc.pb.h"
#include "tests/server/daemon.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"
#include "tests/server/wait_until.h"

namespace tt::server {
namespace {

using std::chrono::milliseconds;
using testing::engine_bytes;
using ::testing::HasSubstr;

constexpr int64_t kFloats = 16 << 20;  // 64 MiB: far more than gRPC and the socket buffer hold

class TransferCallsTest : public ::testing::Test {
 protected:
  TransferCallsTest() {
    testing::start_engine();
    // Keeps gRPC initialised: shutdown after the last user may wait 10 s for a thread.
    static const bool kept = (grpc_init(), true);
    static_cast<void>(kept);
  }

  void listen(Sessions::Options options = {}) {
    sessions_ = std::make_unique<Sessions>(std::move(options));
    Address address;
    address.path = (folder_.path() / "engine.sock").string();
    sampler_ = std::make_unique<Sampler>(*sessions_, 0);
    status_ = std::make_unique<EngineStatus>(*sessions_, *sampler_);
    auto listener = Listener::start({.addresses = {address}}, {auth_, audit_, *sessions_, *status_}, [] {});
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    before_ = engine_bytes();
  }
  static Sessions::Options with_idle_limit(milliseconds limit) {
    Sessions::Options options;
    options.transfers.idle = limit;
    options.transfer_timeouts.resume = milliseconds(100);
    return options;
  }
  std::shared_ptr<grpc::Channel> channel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(listener_->addresses()[0].to_string(), grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  // Waits until the engine's memory is back to its initial size.
  bool is_free() const {
    return testing::wait_until([&] { return engine_bytes() == before_; });
  }

  testing::TemporaryFolder folder_;
  const Auth auth_ = Auth::disabled();
  AuditLog audit_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<EngineStatus> status_;
  std::unique_ptr<Listener> listener_;
  uint64_t before_ = 0;
};

class Client {
 public:
  explicit Client(std::shared_ptr<grpc::Channel> channel) : stub_(v1::Engine::NewStub(channel)) {
    grpc::ClientContext context;
    v1::HelloRequest request;
    request.set_shared_memory(true);
    EXPECT_TRUE(stub_->Hello(&context, request, &hello_).ok());
    call_ = context_for();
    stream_ = stub_->Session(call_.get());
  }
  ~Client() {
    call_->TryCancel();
    stream_->Finish();
  }
  std::unique_ptr<grpc::ClientContext> context_for() const {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("teletensor-session", hello_.session_key());
    return context;
  }
  v1::Reply run(v1::Frame frame) {
    frame.set_sequence(++sequence_);
    v1::Reply reply;
    EXPECT_TRUE(stream_->Write(frame) && stream_->Read(&reply));
    EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
    return reply;
  }
  // Creates a tensor of kFloats ones.
  void make(uint64_t handle) {
    v1::Frame frame;
    testing::Instruction(&frame, "ones").integers({kFloats}).none().none().result(handle);
    run(frame);
  }
  void close() {
    v1::Frame frame;
    frame.set_close(true);
    run(frame);
  }
  bool works() {
    v1::Frame frame;
    testing::literal(&frame, 1000, {1}, {5});
    testing::read(&frame, 1, 1000);
    frame.add_release(1000);
    return testing::floats_of(run(frame).reads(0).data()) == std::vector<float>{5};
  }
  v1::Engine::Stub& stub() { return *stub_; }
  const std::string& key() const { return hello_.session_key(); }
  // The nonce of the shared memory; replace_segment() obtains new memory, as a client does that resumes its session.
  uint64_t segment() const { return hello_.shared_memory().nonce(); }
  void replace_segment() {
    grpc::ClientContext context;
    v1::HelloRequest request;
    request.set_shared_memory(true);
    request.set_resume_key(hello_.session_key());
    EXPECT_TRUE(stub_->Hello(&context, request, &hello_).ok());
  }

 private:
  std::unique_ptr<v1::Engine::Stub> stub_;
  v1::HelloReply hello_;
  std::unique_ptr<grpc::ClientContext> call_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Frame, v1::Reply>> stream_;
  uint64_t sequence_ = 0;
};

// A Download whose client reads only on request.
class SlowDownload {
 public:
  // Over the client's connection, or that of `stub`.
  SlowDownload(Client& client, uint64_t handle, uint64_t after = 0, bool shared = false,
               v1::Engine::Stub* stub = nullptr)
      : context_(client.context_for()) {
    v1::DownloadRequest request;
    request.set_through_shared_memory(shared);
    request.set_segment(client.segment());
    request.set_handle(handle);
    request.set_after(after);
    reader_ = (stub ? *stub : client.stub()).Download(context_.get(), request);
  }
  ~SlowDownload() {
    if (!reader_) return;
    context_->TryCancel();
    reader_->Finish();
  }
  bool read_one() {
    v1::DownloadChunk chunk;
    return reader_->Read(&chunk);
  }
  grpc::Status read_all(size_t* bytes) {
    v1::DownloadChunk chunk;
    while (reader_->Read(&chunk)) *bytes += chunk.data().size();
    grpc::Status status = reader_->Finish();
    reader_ = nullptr;
    return status;
  }
  bool may_be_sent_again() const { return context_->GetServerTrailingMetadata().count("teletensor-retry") != 0; }

 private:
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<v1::DownloadChunk>> reader_;
};

// An Upload in progress.
class SlowUpload {
 public:
  SlowUpload(Client& client, uint64_t transfer, uint64_t bytes, bool shared = false)
      : SlowUpload(client, transfer, bytes, shared, client.segment()) {}
  SlowUpload(Client& client, uint64_t transfer, uint64_t bytes, bool shared, uint64_t segment)
      : context_(client.context_for()) {
    writer_ = client.stub().Upload(context_.get(), &reply_);
    v1::UploadChunk chunk;
    chunk.set_through_shared_memory(shared);
    chunk.set_segment(segment);
    chunk.set_transfer(transfer);
    chunk.set_total_bytes(bytes);
    chunk.set_data("first");
    writer_->Write(chunk);
  }
  ~SlowUpload() {
    if (!writer_) return;
    context_->TryCancel();
    writer_->Finish();
  }
  grpc::Status finish() {
    grpc::Status status = writer_->Finish();
    writer_ = nullptr;
    return status;
  }

 private:
  std::unique_ptr<grpc::ClientContext> context_;
  v1::UploadReply reply_;
  std::unique_ptr<grpc::ClientWriter<v1::UploadChunk>> writer_;
};

TEST_F(TransferCallsTest, UnreadDownloadEndsWithSession) {
  listen();
  Client client(channel());
  client.make(1);
  SlowDownload download(client, 1);
  ASSERT_TRUE(download.read_one());
  client.close();
  EXPECT_TRUE(is_free());
  size_t bytes = 0;
  EXPECT_FALSE(download.read_all(&bytes).ok());
}

TEST_F(TransferCallsTest, StalledUploadEndsWithSession) {
  listen();
  Client client(channel());
  SlowUpload upload(client, 1, 64 << 20);
  ASSERT_TRUE(testing::wait_until([&] { return engine_bytes() != before_; }));
  client.close();
  EXPECT_TRUE(is_free());
  EXPECT_FALSE(upload.finish().ok());
}

TEST_F(TransferCallsTest, UnreadDownloadIsCancelledAfterTimeout) {
  listen(with_idle_limit(milliseconds(200)));
  Client client(channel());
  client.make(1);
  SlowDownload download(client, 1);
  ASSERT_TRUE(download.read_one());
  v1::Frame drop;
  drop.add_release(1);
  client.run(drop);
  EXPECT_TRUE(is_free());
  size_t bytes = 0;
  EXPECT_FALSE(download.read_all(&bytes).ok());
  EXPECT_TRUE(client.works());
}

TEST_F(TransferCallsTest, StalledUploadIsCancelledAfterTimeout) {
  listen(with_idle_limit(milliseconds(200)));
  Client client(channel());
  SlowUpload upload(client, 1, 64 << 20);
  EXPECT_EQ(upload.finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(is_free());
  EXPECT_TRUE(client.works());
}

TEST_F(TransferCallsTest, SharedMemoryTransfersEndWithSession) {
  listen();
  Client client(channel());
  client.make(1);
  SlowDownload download(client, 1, 0, /*shared=*/true);
  ASSERT_TRUE(download.read_one());
  const uint64_t with_tensor = engine_bytes();
  SlowUpload upload(client, 1, 64 << 20, /*shared=*/true);
  ASSERT_TRUE(testing::wait_until([&] { return engine_bytes() != with_tensor; }));
  client.close();
  EXPECT_TRUE(is_free());
  EXPECT_FALSE(upload.finish().ok());
  size_t bytes = 0;
  EXPECT_FALSE(download.read_all(&bytes).ok());
}

// A call of a connection that broke may reach the session after the client has resumed it with new shared memory. It
// would leave bytes in the new lanes, or take some from them.
TEST_F(TransferCallsTest, CallsOfReplacedSharedMemoryAreRefused) {
  listen();
  Client client(channel());
  client.make(1);
  const uint64_t old = client.segment();
  SlowDownload download(client, 1, /*after=*/2, /*shared=*/true);
  client.replace_segment();
  ASSERT_NE(client.segment(), old);
  SlowUpload upload(client, 1, 1 << 20, /*shared=*/true, old);
  EXPECT_EQ(upload.finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(client.works());  // frame 2
  size_t bytes = 0;
  EXPECT_EQ(download.read_all(&bytes).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(TransferCallsTest, StalledSharedMemoryTransferIsCancelledAfterTimeout) {
  listen(with_idle_limit(milliseconds(200)));
  Client client(channel());
  client.make(1);
  SlowDownload download(client, 1, 0, /*shared=*/true);
  ASSERT_TRUE(download.read_one());
  v1::Frame drop;
  drop.add_release(1);
  client.run(drop);
  SlowUpload upload(client, 1, 64 << 20, /*shared=*/true);
  EXPECT_EQ(upload.finish().error_code(), grpc::StatusCode::CANCELLED);
  size_t bytes = 0;
  EXPECT_FALSE(download.read_all(&bytes).ok());
  EXPECT_TRUE(is_free());
  EXPECT_TRUE(client.works());
}

TEST_F(TransferCallsTest, RepeatedUploadEndsEarlierCall) {
  listen();
  Client client(channel());
  SlowUpload first(client, 1, 64 << 20);
  ASSERT_TRUE(testing::wait_until([&] { return engine_bytes() != before_; }));
  SlowUpload second(client, 1, 64 << 20);
  EXPECT_EQ(second.finish().error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(first.finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(TransferCallsTest, RejectsChunkOutOfOrder) {
  listen();
  Client client(channel());
  auto context = client.context_for();
  v1::UploadReply reply;
  auto writer = client.stub().Upload(context.get(), &reply);
  v1::UploadChunk chunk;
  chunk.set_transfer(1);
  chunk.set_total_bytes(8);
  chunk.set_data("four");
  writer->Write(chunk);
  chunk.Clear();
  chunk.set_offset(2);
  chunk.set_data("four");
  writer->Write(chunk);
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(is_free());
}

// Uploads one chunk. Sets the chunk's compression to `compression`.
grpc::Status upload_chunk(Client& client, uint64_t transfer, uint64_t total, const std::string& data,
                          const v1::ChunkCompression& compression) {
  auto context = client.context_for();
  v1::UploadReply reply;
  auto writer = client.stub().Upload(context.get(), &reply);
  v1::UploadChunk chunk;
  chunk.set_transfer(transfer);
  chunk.set_total_bytes(total);
  chunk.set_data(data);
  *chunk.mutable_compression() = compression;
  writer->Write(chunk);
  writer->WritesDone();
  return writer->Finish();
}

TEST_F(TransferCallsTest, RejectsInvalidCompressedChunks) {
  listen();
  Client client(channel());
  const std::string bytes(1 << 20, 'x');
  std::string data;
  v1::ChunkCompression valid;
  ASSERT_TRUE(ChunkCompressor(CompressionMode::kAlways).compress(bytes, 0, &data, &valid));
  const auto status = [&](uint64_t total, uint64_t announced, const std::string& sent) {
    v1::ChunkCompression compression = valid;
    compression.set_bytes(announced);
    return upload_chunk(client, 1, total, sent, compression).error_code();
  };
  const grpc::StatusCode invalid = grpc::StatusCode::INVALID_ARGUMENT;
  EXPECT_EQ(status(4 << 20, bytes.size() + 1, data), invalid);
  EXPECT_EQ(status(4 << 20, bytes.size() - 1, data), invalid);
  EXPECT_EQ(status(1 << 20, 2 << 20, data), invalid) << "more than the transfer has";
  EXPECT_EQ(status(1ull << 40, 1ull << 40, data), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status(8 << 20, 4 << 20, data), invalid) << "more than a chunk may have";
  EXPECT_EQ(status(8 << 20, UINT64_MAX, data), invalid);
  EXPECT_EQ(status(1 << 20, bytes.size(), "zstd"), invalid);
  EXPECT_EQ(status(1 << 20, bytes.size(), ""), invalid);
  EXPECT_TRUE(is_free());
  EXPECT_EQ(upload_chunk(client, 2, bytes.size(), data, valid).error_code(), grpc::StatusCode::OK);
  EXPECT_TRUE(client.works());
}

TEST_F(TransferCallsTest, ChargesDecompressionToTheSession) {
  listen();
  Client client(channel());
  ASSERT_TRUE(client.works());  // its stream is charged
  const std::shared_ptr<Account> account = sessions_->find(client.key())->account();
  const uint64_t before = account->host_bytes();
  const std::string bytes(1 << 20, 'x');
  v1::UploadChunk chunk;
  ASSERT_TRUE(
      ChunkCompressor(CompressionMode::kAlways).compress(bytes, 0, chunk.mutable_data(), chunk.mutable_compression()));
  chunk.set_transfer(1);
  chunk.set_total_bytes(2 << 20);
  auto context = client.context_for();
  v1::UploadReply reply;
  auto writer = client.stub().Upload(context.get(), &reply);
  writer->Write(chunk);
  ASSERT_TRUE(testing::wait_until([&] { return account->host_bytes() >= before + (2 << 20); }));
  EXPECT_LT(account->host_bytes(), before + (5 << 20));
  chunk.clear_transfer();
  chunk.clear_total_bytes();
  writer->Write(chunk);
  writer->WritesDone();
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(testing::wait_until([&] { return account->host_bytes() <= before; }));
}

TEST_F(TransferCallsTest, DecompressionRequiresMemory) {
  listen();
  Client client(channel());
  const std::string bytes(1 << 20, 'x');
  std::string data;
  v1::ChunkCompression compression;
  ASSERT_TRUE(ChunkCompressor(CompressionMode::kAlways).compress(bytes, 0, &data, &compression));
  ASSERT_EQ(upload_chunk(client, 1, bytes.size(), data, compression).error_code(), grpc::StatusCode::OK);
  v1::Frame adopts;
  testing::uploaded(&adopts, 1, 1, {1 << 18});
  client.run(adopts);
  const std::shared_ptr<Account> account = sessions_->find(client.key())->account();
  HostCharge full(account, account->host_room() - (1 << 20));
  const grpc::Status status = upload_chunk(client, 2, bytes.size(), data, compression);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("MiB that decompressing an upload takes"));
  v1::Frame fails;
  testing::uploaded(&fails, 2, 2, {1 << 18});
  testing::read(&fails, 1, 2);
  const v1::Error error = client.run(fails).reads(0).error();
  EXPECT_EQ(error.kind(), v1::OUT_OF_MEMORY);
  EXPECT_THAT(error.message(), HasSubstr("out of memory on the host"));
  // A download is not compressed then.
  const auto compressed = [&] {
    auto context = client.context_for();
    v1::DownloadRequest request;
    request.set_handle(1);
    request.set_codec(v1::CODEC_ZSTD);
    request.set_always_compress(true);
    auto reader = client.stub().Download(context.get(), request);
    v1::DownloadChunk chunk;
    EXPECT_TRUE(reader->Read(&chunk));
    const bool compressed = chunk.has_compression();
    EXPECT_FALSE(reader->Read(&chunk));
    EXPECT_TRUE(reader->Finish().ok());
    return compressed;
  };
  EXPECT_FALSE(compressed());
  full.set(0);
  EXPECT_TRUE(compressed());
  EXPECT_EQ(upload_chunk(client, 3, bytes.size(), data, compression).error_code(), grpc::StatusCode::OK);
  EXPECT_TRUE(client.works());
}

TEST_F(TransferCallsTest, RejectsCompressedChunksIfDisabled) {
  Sessions::Options options;
  options.compression = false;
  listen(options);
  Client client(channel());
  const std::string bytes(1 << 20, 'x');
  std::string data;
  v1::ChunkCompression compression;
  ASSERT_TRUE(ChunkCompressor(CompressionMode::kAlways).compress(bytes, 0, &data, &compression));
  EXPECT_EQ(upload_chunk(client, 1, bytes.size(), data, compression).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// The instruction of a rejected upload fails at once, with the reason, and not after Transfers::Timeouts.
TEST_F(TransferCallsTest, RejectedUploadFailsItsInstruction) {
  listen();
  Client client(channel());
  const auto start = std::chrono::steady_clock::now();
  const auto error = [&](uint64_t transfer) {
    v1::Frame frame;
    testing::uploaded(&frame, transfer, transfer, {1 << 18});
    testing::read(&frame, 1, transfer);
    return client.run(frame).reads(0).error().message();
  };
  v1::ChunkCompression compression;
  compression.set_codec(v1::CODEC_ZSTD);
  compression.set_bytes(1 << 20);
  EXPECT_FALSE(upload_chunk(client, 1, 1 << 20, "not a frame", compression).ok());
  EXPECT_THAT(error(1), HasSubstr("a compressed chunk is invalid"));
  const auto upload_first_chunk = [&](uint64_t transfer, uint64_t total, Device device) {
    auto context = client.context_for();
    v1::UploadReply reply;
    auto writer = client.stub().Upload(context.get(), &reply);
    v1::UploadChunk chunk;
    chunk.set_transfer(transfer);
    chunk.set_total_bytes(total);
    chunk.set_device(device.encode());
    chunk.set_data("more than four");
    writer->Write(chunk);
    writer->WritesDone();
    return writer->Finish().error_code();
  };
  EXPECT_EQ(upload_first_chunk(2, 4, Device()), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(error(2), HasSubstr("the transfer has 4 bytes, got more"));
  EXPECT_EQ(upload_first_chunk(3, 1 << 20, Device{DeviceType::kCUDA, 3}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(error(3), HasSubstr("this engine has no device cuda:3"));
  EXPECT_EQ(upload_first_chunk(4, UINT64_MAX, Device()), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(error(4), HasSubstr("expected a size below 2^63"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_TRUE(is_free());
}

TEST_F(TransferCallsTest, UploadsOfCancelledFramesEnd) {
  listen();
  Client client(channel());
  auto context = client.context_for();
  v1::UploadReply active;
  auto writer = client.stub().Upload(context.get(), &active);
  v1::UploadChunk chunk;
  chunk.set_transfer(1);
  chunk.set_total_bytes(64 << 20);
  chunk.set_data(std::string(1 << 20, 'x'));
  ASSERT_TRUE(writer->Write(chunk));
  ASSERT_TRUE(testing::wait_until([&] { return engine_bytes() != before_; }));
  v1::CancelRequest cancel;
  cancel.set_through(1);
  v1::CancelReply cancelled;
  auto cancel_context = client.context_for();
  ASSERT_TRUE(client.stub().Cancel(cancel_context.get(), cancel, &cancelled).ok());
  v1::Frame frame;
  testing::uploaded(&frame, 1, 1, {16 << 20});
  testing::uploaded(&frame, 2, 2, {16 << 20});
  testing::read(&frame, 1, 1);
  EXPECT_THAT(client.run(frame).reads(0).error().message(), HasSubstr("cancelled by the client"));
  // The client of the active upload stops at its next chunk, that of the second one before its first.
  chunk.Clear();
  chunk.set_data(std::string(1 << 20, 'x'));
  writer->Write(chunk);
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(active.bytes(), 64u << 20);
  auto second_context = client.context_for();
  v1::UploadReply second;
  writer = client.stub().Upload(second_context.get(), &second);
  chunk.set_transfer(2);
  chunk.set_total_bytes(64 << 20);
  writer->Write(chunk);
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(second.bytes(), 64u << 20);
  EXPECT_TRUE(is_free());
}

TEST_F(TransferCallsTest, WaitingDownloadsBlockNoOtherSession) {
  listen();
  Client greedy(channel());
  std::vector<std::unique_ptr<SlowDownload>> waiting;
  // A connection has fewer streams than the session's limit of calls.
  auto second = v1::Engine::NewStub(channel()), third = v1::Engine::NewStub(channel());
  for (int i = 0; i < 400; ++i) {
    waiting.push_back(
        std::make_unique<SlowDownload>(greedy, 1, UINT64_MAX, false, i < 40 ? second.get() : third.get()));
  }
  // Calls above the session's limit fail with a status that requests a retry.
  size_t bytes = 0;
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    SlowDownload more(greedy, 1, UINT64_MAX, false, third.get());
    grpc::Status status = more.read_all(&bytes);
    refused += status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && more.may_be_sent_again();
  }
  EXPECT_EQ(refused, 100);

  Client other(channel());
  EXPECT_TRUE(other.works());
  other.make(1);
  SlowDownload download(other, 1);
  EXPECT_TRUE(download.read_all(&bytes).ok());
  EXPECT_EQ(bytes, static_cast<size_t>(kFloats) * sizeof(float));
  auto admin = v1::Admin::NewStub(channel());
  grpc::ClientContext context;
  v1::StatusReply status;
  EXPECT_TRUE(admin->Status(&context, {}, &status).ok());
  EXPECT_EQ(status.sessions_size(), 2);
  EXPECT_TRUE(greedy.works());
  greedy.close();
  for (auto& each : waiting) EXPECT_FALSE(each->read_all(&bytes).ok());
}

}  // namespace
}  // namespace tt::server
