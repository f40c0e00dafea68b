// teletensord as a process, over gRPC: authentication, malformed messages, shutdown.
#include "tests/server/daemon.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <list>
#include <thread>

#include "teletensor/v1/admin.grpc.pb.h"
#include "teletensor/v1/engine.grpc.pb.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using std::chrono::milliseconds;
using testing::bytes_of;
using testing::Daemon;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::literal;
using testing::read;

constexpr milliseconds kTimeout{5000};

// A client that sends raw messages, without the client library.
class RawClient {
 public:
  explicit RawClient(const Daemon& daemon, std::string resume_key = "") : stub_(v1::Engine::NewStub(daemon.channel())) {
    grpc::ClientContext context;
    daemon.authorize(&context);
    v1::HelloRequest request;
    request.set_resume_key(resume_key);
    status_ = stub_->Hello(&context, request, &hello_);
    if (!status_.ok()) return;
    call_ = context_for();
    stream_ = stub_->Session(call_.get());
  }
  ~RawClient() { break_off(); }

  bool run(v1::Frame frame, v1::Reply* reply) { return write(std::move(frame)) && await(reply); }
  bool write(v1::Frame frame) {
    frame.set_sequence(++sequence_);
    return stream_->Write(frame);
  }
  bool await(v1::Reply* reply) { return stream_->Read(reply); }
  grpc::Status finish() {
    grpc::Status status = stream_->Finish();
    stream_ = nullptr;
    return status;
  }
  void break_off() {
    if (!stream_) return;
    call_->TryCancel();
    finish();
  }
  std::unique_ptr<grpc::ClientContext> context_for() const {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("teletensor-session", hello_.session_key());
    return context;
  }
  v1::Engine::Stub& stub() { return *stub_; }
  const v1::HelloReply& hello() const { return hello_; }
  const grpc::Status& status() const { return status_; }

 private:
  std::unique_ptr<v1::Engine::Stub> stub_;
  v1::HelloReply hello_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientContext> call_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Frame, v1::Reply>> stream_;
  uint64_t sequence_ = 0;
};

v1::StatusReply status_of(const Daemon& daemon) {
  grpc::ClientContext context;
  daemon.authorize(&context);
  v1::StatusReply reply;
  grpc::Status status = v1::Admin::NewStub(daemon.channel())->Status(&context, {}, &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return reply;
}

uint64_t allocated(const Daemon& daemon) { return status_of(daemon).devices(0).memory().allocated(); }

bool works(const Daemon& daemon) {
  RawClient client(daemon);
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  testing::add(&frame, 2, 1, 1);
  read(&frame, 1, 2);
  v1::Reply reply;
  return client.run(frame, &reply) && floats_of(reply.reads(0).data()) == std::vector<float>{2, 4};
}

TEST(DaemonTest, RequiresToken) {
  Daemon daemon;
  auto engine = v1::Engine::NewStub(daemon.channel());
  auto admin = v1::Admin::NewStub(daemon.channel());
  for (const char* authorization : {"", "Bearer wrong"}) {
    grpc::ClientContext hello, status;
    if (*authorization) hello.AddMetadata("authorization", authorization);
    if (*authorization) status.AddMetadata("authorization", authorization);
    v1::HelloReply hello_reply;
    v1::StatusReply status_reply;
    EXPECT_EQ(engine->Hello(&hello, {}, &hello_reply).error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(admin->Status(&status, {}, &status_reply).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  }
  EXPECT_TRUE(works(daemon));
}

TEST(DaemonTest, RejectsStreamWithoutSession) {
  Daemon daemon;
  auto stub = v1::Engine::NewStub(daemon.channel());
  grpc::ClientContext context;
  context.AddMetadata("teletensor-session", std::string(64, '0'));
  auto stream = stub->Session(&context);
  v1::Reply reply;
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST(DaemonTest, InvalidFrameEndsItsStreamWithStatus) {
  Daemon daemon;
  RawClient offender(daemon), bystander(daemon);
  v1::Frame invalid;
  testing::add(&invalid, 1, 50, 51);
  v1::Reply reply;
  ASSERT_TRUE(offender.run(invalid, &reply));
  EXPECT_TRUE(reply.has_fault());
  EXPECT_FALSE(offender.run(invalid, &reply));
  grpc::Status status = offender.finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("50"));
  v1::Frame valid;
  literal(&valid, 1, {1}, {1});
  EXPECT_TRUE(bystander.run(valid, &reply));
  EXPECT_FALSE(reply.has_fault());
}

// Sends `bytes` as the first message of a Session stream.
grpc::Status send_raw(const Daemon& daemon, const RawClient& client, const std::string& bytes) {
  grpc::GenericStub stub(daemon.channel());
  auto context = client.context_for();
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(context.get(), "/teletensor.v1.Engine/Session", &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  queue.Next(&tag, &ok);
  grpc::Slice slice(bytes);
  call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
  queue.Next(&tag, &ok);
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  queue.Next(&tag, &ok);
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  return status;
}

TEST(DaemonTest, TruncatedBytesAffectNoOtherClient) {
  Daemon daemon;
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  frame.set_sequence(1);
  std::string whole = frame.SerializeAsString();
  for (size_t size : {size_t{1}, size_t{3}, whole.size() / 2, whole.size() - 1}) {
    RawClient client(daemon);
    grpc::Status status = send_raw(daemon, client, whole.substr(0, size));
    EXPECT_FALSE(status.ok()) << size;
  }
  RawClient client(daemon);
  grpc::Status huge = send_raw(daemon, client, std::string(20 << 20, '\x22'));
  EXPECT_EQ(huge.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(works(daemon));
}

TEST(DaemonTest, RandomBytesOnSocketAffectNoOtherClient) {
  Daemon daemon;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, daemon.socket().c_str(), sizeof name.sun_path - 1);
  for (int i = 0; i < 20; ++i) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    std::string noise(static_cast<size_t>(1 + i * 100), static_cast<char>(i * 37));
    ASSERT_GT(::send(fd, noise.data(), noise.size(), MSG_NOSIGNAL), 0);
    close(fd);
  }
  EXPECT_TRUE(works(daemon));
}

class BytesTest : public ::testing::TestWithParam<Device> {
 protected:
  BytesTest() { setenv("TELETENSOR_CUDA_PLUGIN", TT_SIMULATED_PLUGIN, 1); }
  ~BytesTest() override { unsetenv("TELETENSOR_CUDA_PLUGIN"); }
};
INSTANTIATE_TEST_SUITE_P(Devices, BytesTest, ::testing::Values(Device{}, Device{DeviceType::kCUDA, 1}));

TEST_P(BytesTest, UploadAndDownloadInChunks) {
  Daemon daemon;
  RawClient client(daemon);
  std::vector<float> values(3 << 20);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::string bytes = bytes_of(values);
  auto context = client.context_for();
  v1::UploadReply uploaded;
  auto writer = client.stub().Upload(context.get(), &uploaded);
  v1::UploadChunk chunk;
  chunk.set_transfer(7);
  chunk.set_total_bytes(bytes.size());
  chunk.set_device(GetParam().encode());
  for (size_t at = 0; at < bytes.size(); at += 1 << 20) {
    chunk.set_data(bytes.substr(at, 1 << 20));
    ASSERT_TRUE(writer->Write(chunk));
    chunk.Clear();
  }
  writer->WritesDone();
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(uploaded.bytes(), bytes.size());

  v1::Frame frame;
  testing::uploaded(&frame, 1, 7, {3 << 20}, GetParam());
  v1::Reply reply;
  ASSERT_TRUE(client.run(frame, &reply));
  v1::DownloadRequest request;
  request.set_handle(1);
  request.set_after(1);
  auto download_context = client.context_for();
  auto reader = client.stub().Download(download_context.get(), request);
  std::string got;
  v1::DownloadChunk piece;
  while (reader->Read(&piece)) got += piece.data();
  ASSERT_TRUE(reader->Finish().ok());
  EXPECT_EQ(got, bytes);
}

TEST_P(BytesTest, RejectsUploadForUnknownDevice) {
  Daemon daemon;
  RawClient client(daemon);
  for (int64_t device : {int64_t{0x107}, int64_t{0x200}, int64_t{-1}, int64_t{1} << 40}) {
    auto context = client.context_for();
    v1::UploadReply uploaded;
    auto writer = client.stub().Upload(context.get(), &uploaded);
    v1::UploadChunk chunk;
    chunk.set_transfer(7);
    chunk.set_total_bytes(4);
    chunk.set_device(device);
    chunk.set_data("four");
    writer->Write(chunk);
    writer->WritesDone();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << device;
  }
  auto context = client.context_for();
  v1::UploadReply uploaded;
  auto writer = client.stub().Upload(context.get(), &uploaded);
  v1::UploadChunk chunk;
  chunk.set_transfer(8);
  chunk.set_total_bytes(4);
  chunk.set_device(Device{DeviceType::kCUDA, 0}.encode());
  chunk.set_data("four");
  writer->Write(chunk);
  writer->WritesDone();
  ASSERT_TRUE(writer->Finish().ok());
  v1::Frame frame;
  testing::uploaded(&frame, 1, 8, {1}, GetParam());
  read(&frame, 1, 1);
  v1::Reply reply;
  ASSERT_TRUE(client.run(frame, &reply));
  EXPECT_THAT(reply.reads(0).error().message(), HasSubstr("transfer 8 was sent to cuda:0"));
  EXPECT_TRUE(works(daemon));
}

TEST(DaemonTest, RejectsUploadThatEndsEarly) {
  Daemon daemon;
  RawClient client(daemon);
  auto context = client.context_for();
  v1::UploadReply reply;
  auto writer = client.stub().Upload(context.get(), &reply);
  v1::UploadChunk chunk;
  chunk.set_transfer(7);
  chunk.set_total_bytes(100);
  chunk.set_data("only this");
  writer->Write(chunk);
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(allocated(daemon), 0u);
}

TEST(DaemonTest, ResumedStreamExecutesNothingTwice) {
  Daemon daemon;
  RawClient first(daemon);
  v1::Frame start, step;
  literal(&start, 1, {1}, {1});
  testing::Instruction(&step, "add").handle(1).real(1).into(1);
  v1::Reply reply;
  ASSERT_TRUE(first.run(start, &reply));
  ASSERT_TRUE(first.run(step, &reply));
  first.break_off();
  RawClient again(daemon, first.hello().session_key());
  EXPECT_EQ(again.hello().session_id(), first.hello().session_id());
  EXPECT_EQ(again.hello().executed(), 2u);
  ASSERT_TRUE(again.run(start, &reply));  // sequences 1 and 2 again
  ASSERT_TRUE(again.run(step, &reply));
  EXPECT_EQ(reply.executed(), 2u);
  v1::Frame look;
  read(&look, 1, 1);
  ASSERT_TRUE(again.run(look, &reply));
  EXPECT_EQ(floats_of(reply.reads(0).data()), std::vector<float>{2});
}

// More often than a session may have streams.
TEST(DaemonTest, StreamIsResumedManyTimesWhileItsFrameIsExecuted) {
  Daemon daemon;
  v1::Frame frame;
  testing::uploaded(&frame, 1, 7, {1});
  read(&frame, 1, 1);
  RawClient first(daemon);
  ASSERT_TRUE(first.write(frame));
  std::list<RawClient> again;
  for (int i = 0; i < 20; ++i) {
    again.emplace_back(daemon, first.hello().session_key());
    ASSERT_TRUE(again.back().write(frame));
    std::this_thread::sleep_for(milliseconds(100));
  }
  v1::UploadReply uploaded;
  auto context = again.back().context_for();
  auto writer = again.back().stub().Upload(context.get(), &uploaded);
  v1::UploadChunk chunk;
  chunk.set_transfer(7);
  chunk.set_total_bytes(4);
  chunk.set_data(std::string("\0\0\x80\x3f", 4));
  writer->Write(chunk);
  writer->WritesDone();
  ASSERT_TRUE(writer->Finish().ok());
  v1::Reply reply;
  ASSERT_TRUE(again.back().await(&reply));
  EXPECT_EQ(floats_of(reply.reads(0).data()), std::vector<float>{1});
}

TEST(DaemonTest, LeaseExpiryFreesVanishedClient) {
  Daemon daemon({"--lease", "0.1"});
  {
    RawClient client(daemon);
    v1::Frame frame;
    literal(&frame, 1, {1000}, std::vector<float>(1000));
    v1::Reply reply;
    ASSERT_TRUE(client.run(frame, &reply));
    EXPECT_GT(allocated(daemon), 0u);
  }
  auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (allocated(daemon) != 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(allocated(daemon), 0u);
  EXPECT_EQ(status_of(daemon).sessions_size(), 0);
}

TEST(DaemonTest, StatusReportsSessionsAndMemory) {
  Daemon daemon({"--session-memory-limit", "1MB"});
  RawClient client(daemon);
  v1::Frame frame;
  literal(&frame, 1, {4}, {1, 2, 3, 4});
  v1::Reply reply;
  ASSERT_TRUE(client.run(frame, &reply));
  v1::StatusReply status = status_of(daemon);
  EXPECT_EQ(status.pid(), daemon.pid());
  EXPECT_GT(status.resident_bytes(), 0u);
  ASSERT_EQ(status.sessions_size(), 1);
  const v1::SessionStatus& session = status.sessions(0);
  EXPECT_TRUE(session.connected());
  EXPECT_EQ(session.handles(), 1u);
  EXPECT_EQ(session.held_bytes(), 16u);
  EXPECT_EQ(session.limit_bytes(), 1u << 20);
  EXPECT_EQ(session.frames(), 1u);
  EXPECT_EQ(session.instructions(), 1u);
}

TEST(DaemonTest, AdminFreesCachesShowsBlocksAndDrains) {
  Daemon daemon;
  auto admin = v1::Admin::NewStub(daemon.channel());
  {
    RawClient client(daemon);
    v1::Frame frame;
    literal(&frame, 1, {1000}, std::vector<float>(1000));
    v1::Site* site = frame.add_sites();
    site->set_id(7);
    site->set_file("train.py");
    site->set_line(12);
    site->set_function("step");
    testing::Instruction(&frame, "zeros").integers({20000}).none().none().result(2).site(7);
    v1::Reply reply;
    ASSERT_TRUE(client.run(frame, &reply));
    grpc::ClientContext context;
    daemon.administer(&context);
    v1::SnapshotReply snapshot;
    ASSERT_TRUE(admin->Snapshot(&context, {}, &snapshot).ok());
    EXPECT_TRUE(std::any_of(snapshot.blocks().begin(), snapshot.blocks().end(),
                            [](const auto& block) { return block.in_use() && block.size() >= 4000; }));
    EXPECT_TRUE(std::any_of(snapshot.blocks().begin(), snapshot.blocks().end(), [](const auto& block) {
      return block.requested() == 80000 && block.owner() == "session 1" && block.site() == "train.py:12 in step";
    }));
    v1::Frame close;
    close.set_close(true);
    ASSERT_TRUE(client.run(close, &reply));
  }
  grpc::ClientContext empty, drain;
  daemon.administer(&empty);
  daemon.administer(&drain);
  v1::EmptyCacheReply emptied;
  ASSERT_TRUE(admin->EmptyCache(&empty, {}, &emptied).ok());
  EXPECT_EQ(status_of(daemon).devices(0).memory().reserved(), 0u);
  v1::DrainRequest request;
  request.set_deadline_seconds(5);
  v1::DrainReply drained;
  EXPECT_TRUE(admin->Drain(&drain, request, &drained).ok());
  EXPECT_EQ(daemon.exit_code(kTimeout), 0);
}

TEST(DaemonTest, SignalEndsDaemonWhileFrameWaits) {
  Daemon daemon;
  RawClient client(daemon);
  std::thread waits([&] {
    v1::Frame frame;
    testing::uploaded(&frame, 1, 1, {4});
    v1::Reply reply;
    client.run(frame, &reply);
  });
  std::this_thread::sleep_for(milliseconds(50));
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.exit_code(kTimeout), 0);
  waits.join();
  EXPECT_FALSE(std::filesystem::exists(daemon.socket()));
}

TEST(DaemonTest, PrivateEngineReportsReadyAndEndsWithClient) {
  Daemon daemon({"--private"});
  auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (daemon.standard_output().empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(daemon.standard_output(), "READY unix:" + daemon.socket() + "\n");
  EXPECT_TRUE(works(daemon));
  daemon.close_stdin();
  EXPECT_EQ(daemon.exit_code(kTimeout), 0);
  EXPECT_FALSE(std::filesystem::exists(daemon.socket()));
}

TEST(DaemonTest, ReportsAddressInUse) {
  Daemon daemon;
  Daemon second({"--listen", "unix:" + daemon.socket()});
  EXPECT_EQ(second.exit_code(kTimeout), 1);
  EXPECT_THAT(second.standard_error(), ::testing::EndsWith("teletensord: cannot listen on unix:" + daemon.socket() +
                                                           ": another engine is listening on it\n"));
  EXPECT_TRUE(works(daemon));
}

TEST(DaemonTest, ReportsInvalidFlag) {
  EXPECT_NE(Daemon({"--lease", "soon"}).exit_code(kTimeout), 0);
  EXPECT_NE(Daemon({"--private", "--listen", "127.0.0.1:0"}).exit_code(kTimeout), 0);
  EXPECT_EQ(Daemon({"--check-config"}).exit_code(kTimeout), 0);
}

TEST(DaemonTest, ReportsInvalidAllocatorConfiguration) {
  setenv("TELETENSOR_ALLOC_CONF", "expandable_segments:perhaps", 1);
  Daemon daemon;
  unsetenv("TELETENSOR_ALLOC_CONF");
  EXPECT_EQ(daemon.exit_code(kTimeout), 1);
  EXPECT_EQ(daemon.standard_error(),
            "teletensord: TELETENSOR_ALLOC_CONF: expandable_segments must be True or False, got 'perhaps'\n");
}

TEST(DaemonTest, HealthNeedsNoTokenAndReflectionDoes) {
  Daemon daemon;
  grpc::GenericStub stub(daemon.channel());
  for (const char* method :
       {"/grpc.health.v1.Health/Check", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    grpc::ClientContext context;
    if (std::string_view(method).find("reflection") != std::string_view::npos) daemon.authorize(&context);
    grpc::CompletionQueue queue;
    auto call = stub.PrepareCall(&context, method, &queue);
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    grpc::Slice nothing;
    call->WriteLast(grpc::ByteBuffer(&nothing, 1), {}, nullptr);
    queue.Next(&tag, &ok);
    grpc::ByteBuffer reply;
    call->Read(&reply, nullptr);
    queue.Next(&tag, &ok);
    EXPECT_TRUE(ok) << method;
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    EXPECT_TRUE(status.ok()) << method << ": " << status.error_message();
  }
}

}  // namespace
}  // namespace tt::server
