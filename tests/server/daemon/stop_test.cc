// Stopping a daemon: with its own work, with a killed client's work, and idle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <thread>

#include "teletensor/v1/admin.grpc.pb.h"
#include "teletensor/v1/engine.grpc.pb.h"
#include "tests/server/daemon.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Daemon;
using ::testing::HasSubstr;
using testing::Instruction;

constexpr milliseconds kTimeout{60'000};

// A session that sends frames without waiting for replies.
class Client {
 public:
  explicit Client(const Daemon& daemon) : daemon_(daemon), stub_(v1::Engine::NewStub(daemon.channel())) {
    grpc::ClientContext context;
    daemon.authorize(&context);
    EXPECT_TRUE(stub_->Hello(&context, {}, &hello_).ok());
    call_ = context_for();
    stream_ = stub_->Session(call_.get());
  }
  ~Client() {
    call_->TryCancel();
    stream_->Finish();
  }
  void write(v1::Frame frame) {
    frame.set_sequence(++sequence_);
    EXPECT_TRUE(stream_->Write(frame));
  }
  bool next(v1::Reply* reply) { return stream_->Read(reply); }
  std::unique_ptr<grpc::ClientContext> context_for() const {
    auto context = std::make_unique<grpc::ClientContext>();
    daemon_.authorize(context.get());
    context->AddMetadata("teletensor-session", hello_.session_key());
    return context;
  }
  v1::Engine::Stub& stub() { return *stub_; }
  uint64_t sequence() const { return sequence_; }

 private:
  const Daemon& daemon_;
  std::unique_ptr<v1::Engine::Stub> stub_;
  v1::HelloReply hello_;
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

template <typename Condition>
bool wait_until(Condition condition) {
  const auto deadline = steady_clock::now() + kTimeout;
  while (!condition() && steady_clock::now() < deadline) std::this_thread::sleep_for(milliseconds(10));
  return condition();
}

// Instructions that take many seconds.
v1::Frame long_frame(uint64_t name) {
  v1::Frame frame;
  Instruction(&frame, "full").integers({1 << 22}).real(1).none().none().result(name);
  for (int i = 0; i < 8'000; ++i) Instruction(&frame, "mul").handle(name).real(1).into(name);
  return frame;
}

TEST(StopTest, SignalEndsDaemonWithinGracePeriodWith32BusySessions) {
  Daemon daemon({"--grace", "6"});
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 32; ++i) {
    clients.push_back(std::make_unique<Client>(daemon));
    clients.back()->write(long_frame(1));
  }
  const auto signalled = steady_clock::now();
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.exit_code(kTimeout), 0);
  const std::chrono::duration<double> took = steady_clock::now() - signalled;
  EXPECT_LT(took.count(), 20) << "the daemon waited for the work";
  RecordProperty("seconds_from_signal_to_exit", std::to_string(took.count()));
  EXPECT_THAT(daemon.standard_error(), ::testing::Not(HasSubstr("still running")));
  EXPECT_FALSE(std::filesystem::exists(daemon.socket()));
}

TEST(StopTest, GracePeriodEndsUncancellableWork) {
  Daemon daemon({"--grace", "1"});
  Client client(daemon);
  v1::Frame numbers, frame;
  Instruction(&numbers, "randn").integers({4000, 4000}).none().none().result(1);
  client.write(numbers);
  v1::Reply reply;
  ASSERT_TRUE(client.next(&reply));
  Instruction(&frame, "eig_decomposed").handle(1).result(2, 2);  // minutes in LAPACK
  client.write(frame);
  std::this_thread::sleep_for(milliseconds(1500));
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.exit_code(kTimeout), 0);
  EXPECT_THAT(daemon.standard_error(), HasSubstr("still running at the end of the grace period"));
  EXPECT_FALSE(std::filesystem::exists(daemon.socket()));
}

TEST(StopTest, LeaseExpiryDropsQueuedWork) {
  Daemon daemon({"--lease", "0.3"});
  {
    Client busy(daemon);
    for (uint64_t name = 1; name <= 4; ++name) busy.write(long_frame(name));
    ASSERT_TRUE(wait_until([&] { return status_of(daemon).devices(0).memory().allocated() != 0; }));
    EXPECT_TRUE(status_of(daemon).sessions(0).connected());
  }
  const auto left = steady_clock::now();
  EXPECT_TRUE(wait_until([&] {
    v1::StatusReply status = status_of(daemon);
    return status.sessions_size() == 0 || !status.sessions(0).connected();
  }));
  EXPECT_TRUE(wait_until([&] { return status_of(daemon).sessions_size() == 0; }));
  EXPECT_TRUE(wait_until([&] { return status_of(daemon).devices(0).memory().allocated() == 0; }));
  const std::chrono::duration<double> took = steady_clock::now() - left;
  EXPECT_LT(took.count(), 20) << "the daemon executed the queue";
}

TEST(StopTest, CancelDropsQueueAndKeepsSession) {
  Daemon daemon;
  Client client(daemon);
  for (uint64_t name = 1; name <= 3; ++name) client.write(long_frame(name));
  auto context = client.context_for();
  v1::CancelRequest request;
  request.set_through(client.sequence());
  v1::CancelReply cancelled;
  grpc::Status status = client.stub().Cancel(context.get(), request, &cancelled);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_LE(cancelled.executed(), client.sequence());
  v1::Frame after;
  testing::literal(&after, 9, {1}, {5});
  testing::read(&after, 1, 9);
  testing::read(&after, 2, 3);
  client.write(after);
  v1::Reply reply;
  for (uint64_t i = 0; i < client.sequence(); ++i) ASSERT_TRUE(client.next(&reply));
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  EXPECT_EQ(testing::floats_of(reply.reads(0).data()), std::vector<float>{5});
  EXPECT_THAT(reply.reads(1).error().message(), HasSubstr("cancelled by the client"));
}

TEST(StopTest, CancelRequiresSession) {
  Daemon daemon;
  grpc::ClientContext context;
  daemon.authorize(&context);
  context.AddMetadata("teletensor-session", std::string(64, '0'));
  v1::CancelReply reply;
  EXPECT_EQ(v1::Engine::NewStub(daemon.channel())->Cancel(&context, {}, &reply).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST(StopTest, FrameTimeLimitIsFlag) {
  Daemon daemon({"--frame-time-limit", "0.5"});
  Client client(daemon);
  v1::Frame frame = long_frame(1);
  testing::read(&frame, 1, 1);
  client.write(frame);
  v1::Reply reply;
  ASSERT_TRUE(client.next(&reply));
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  EXPECT_THAT(reply.reads(0).error().message(), HasSubstr("time limit of 0.5 s"));
}

}  // namespace
}  // namespace tt::server
