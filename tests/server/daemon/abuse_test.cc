// Attacks on a teletensord without a token, or with too many calls: other clients must not be affected.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>

#include "teletensor/v1/admin.grpc.pb.h"
#include "teletensor/v1/engine.grpc.pb.h"
#include "tests/server/daemon.h"
#include "tests/server/daemon/http2_peer.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::Daemon;
using ::testing::HasSubstr;
using testing::Http2Peer;
using testing::message_prefix;

constexpr uint64_t kMiB = uint64_t{1} << 20;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kMaxGrowth = 256 * kMiB;  // a sanitizer's memory grows with the data sent
#else
constexpr uint64_t kMaxGrowth = 64 * kMiB;
#endif
constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kHello[] = "/teletensor.v1.Engine/Hello";
// What a client sends first: the preface and empty settings.
constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
const std::vector<std::string> kWithPort = {"--listen", "127.0.0.1:0"};

Http2Peer::Metadata bearer(const std::string& token) { return {{"authorization", "Bearer " + token}}; }

void set_deadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + seconds(20));
}

std::shared_ptr<grpc::Channel> channel_to(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments);
}

// A well-behaved client: a session whose frames are answered.
class Client {
 public:
  Client(const Daemon& daemon, std::shared_ptr<grpc::Channel> channel) : stub_(v1::Engine::NewStub(channel)) {
    grpc::ClientContext context;
    daemon.authorize(&context);
    set_deadline(&context);
    v1::HelloRequest request;
    request.set_client("secret project");
    status_ = stub_->Hello(&context, request, &hello_);
    if (!status_.ok()) return;
    call_.AddMetadata("teletensor-session", hello_.session_key());
    stream_ = stub_->Session(&call_);
  }
  explicit Client(const Daemon& daemon) : Client(daemon, daemon.channel()) {}
  ~Client() {
    if (!stream_) return;
    call_.TryCancel();
    stream_->Finish();
  }

  bool works() {
    v1::Frame frame;
    v1::Reply reply;
    frame.set_sequence(++sequence_);
    if (!stream_) return false;
    if (stream_->Write(frame) && stream_->Read(&reply)) return !reply.has_fault();
    status_ = stream_->Finish();
    stream_ = nullptr;
    return false;
  }
  const grpc::Status& status() const { return status_; }
  const v1::HelloReply& hello() const { return hello_; }

 private:
  std::unique_ptr<v1::Engine::Stub> stub_;
  v1::HelloReply hello_;
  grpc::Status status_;
  grpc::ClientContext call_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Frame, v1::Reply>> stream_;
  uint64_t sequence_ = 0;
};

grpc::Status status_answers(const Daemon& daemon) {
  grpc::ClientContext context;
  daemon.authorize(&context);
  set_deadline(&context);
  v1::StatusReply reply;
  return v1::Admin::NewStub(daemon.channel())->Status(&context, {}, &reply);
}

void expect_service(const Daemon& daemon) {
  Client client(daemon);
  EXPECT_TRUE(client.works()) << client.status().error_message();
  EXPECT_EQ(status_answers(daemon).error_message(), "");
}

// Opens 2,040 unfinished calls of `method`, over 34 connections.
std::vector<Http2Peer> hold_calls(const Daemon& daemon, const char* method, const Http2Peer::Metadata& metadata = {}) {
  std::vector<Http2Peer> peers;
  for (int i = 0; i < 34; ++i) {
    peers.push_back(Http2Peer::to_socket(daemon.socket()));
    for (int call = 0; call < 60; ++call) peers.back().call(method, metadata);
    peers.back().read(100);
  }
  return peers;
}

TEST(AbuseTest, HeldCallsWithoutTokenBlockNoOtherClient) {
  Daemon daemon;
  for (const char* method :
       {kReflection, kHello, "/teletensor.v1.Engine/Session", "/teletensor.v1.Engine/Upload",
        "/teletensor.v1.Engine/Download", "/teletensor.v1.Engine/Cancel", "/teletensor.v1.Admin/Status",
        "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/no.such.Service/Method"}) {
    SCOPED_TRACE(method);
    std::vector<Http2Peer> peers = hold_calls(daemon, method);
    expect_service(daemon);
    if (std::string_view(method).find("Watch") != std::string_view::npos) continue;  // stays open without a thread
    for (Http2Peer& peer : peers) EXPECT_TRUE(peer.read_until_open(0));
  }
}

TEST(AbuseTest, HeldCallsWithTokenLeaveAdminCallsAvailable) {
  Daemon daemon;
  std::vector<Http2Peer> hellos = hold_calls(daemon, kHello, bearer(daemon.token()));
  EXPECT_EQ(status_answers(daemon).error_message(), "");
  Client client(daemon);
  std::vector<Http2Peer> streams =
      hold_calls(daemon, "/teletensor.v1.Engine/Session", {{"teletensor-session", client.hello().session_key()}});
  std::vector<Http2Peer> uploads =
      hold_calls(daemon, "/teletensor.v1.Engine/Upload", {{"teletensor-session", client.hello().session_key()}});
  EXPECT_EQ(status_answers(daemon).error_message(), "");
  // Unfinished Hellos have a deadline.
  for (Http2Peer& peer : hellos) EXPECT_TRUE(peer.read_until_open(0));
  expect_service(daemon);
}

// The statuses of `count` concurrent reflection calls without requests.
std::vector<grpc::StatusCode> begin_reflection(const Daemon& daemon, size_t count) {
  grpc::GenericStub stub(daemon.channel());
  grpc::CompletionQueue queue;
  std::vector<grpc::ClientContext> contexts(count);
  std::vector<std::unique_ptr<grpc::GenericClientAsyncReaderWriter>> calls;
  std::vector<grpc::Status> statuses(count);
  for (size_t i = 0; i < count; ++i) {
    calls.push_back(stub.PrepareCall(&contexts[i], kReflection, &queue));
    calls[i]->StartCall(nullptr);
    calls[i]->Finish(&statuses[i], nullptr);
  }
  void* tag = nullptr;
  bool ok = false;
  for (size_t event = 0; event < 2 * count; ++event) queue.Next(&tag, &ok);
  std::vector<grpc::StatusCode> codes;
  for (const grpc::Status& status : statuses) codes.push_back(status.error_code());
  return codes;
}

TEST(AbuseTest, OpenReflectionHasQuotaAndDeadline) {
  Daemon daemon({"--open-reflection"});
  std::vector<Http2Peer> peers = hold_calls(daemon, kReflection);
  expect_service(daemon);
  for (Http2Peer& peer : peers) EXPECT_TRUE(peer.read_until_open(0));

  constexpr size_t kCalls = 400;
  const auto began = steady_clock::now();
  const std::vector<grpc::StatusCode> codes = begin_reflection(daemon, kCalls);
  const auto refused = static_cast<size_t>(std::count(codes.begin(), codes.end(), grpc::StatusCode::UNAVAILABLE));
  const auto late = static_cast<size_t>(std::count(codes.begin(), codes.end(), grpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_EQ(refused + late, kCalls);
  // 16 calls at a time are served for 10 s each: 16 of 400, or more if the machine starts them slowly.
  EXPECT_GE(late, 1u);
  EXPECT_LE(late, 16u * static_cast<size_t>(1 + (steady_clock::now() - began) / seconds(10)));
}

grpc::Status reflect(const Daemon& daemon, bool with_token) {
  grpc::GenericStub stub(daemon.channel());
  grpc::ClientContext context;
  if (with_token) daemon.authorize(&context);
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(&context, kReflection, &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  queue.Next(&tag, &ok);
  grpc::Slice list_services("\x3a\x00", 2);
  call->WriteLast(grpc::ByteBuffer(&list_services, 1), {}, nullptr);
  queue.Next(&tag, &ok);
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  queue.Next(&tag, &ok);
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  return status;
}

TEST(AbuseTest, ReflectionRequiresToken) {
  Daemon daemon, open({"--open-reflection"});
  EXPECT_EQ(reflect(daemon, false).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(reflect(daemon, false).error_message(), HasSubstr("missing bearer token"));
  EXPECT_TRUE(reflect(daemon, true).ok());
  EXPECT_TRUE(reflect(open, false).ok());
}

// A health watch is answered at once and may stay open, so that its bytes are stored however fast the engine refuses
// other calls.
TEST(AbuseTest, HealthWatchesStoreFewBytes) {
  Daemon daemon(kWithPort);
  const uint64_t before = daemon.resident_bytes();
  uint64_t most = before;
  const std::string bytes = message_prefix(16 << 20) + std::string((16 << 20) - 1, 'x');
  Http2Peer peer = Http2Peer::to_port(daemon.port());
  std::vector<std::pair<uint32_t, size_t>> calls;
  for (int i = 0; i < 60; ++i) calls.emplace_back(peer.call("/grpc.health.v1.Health/Watch"), 0);
  const auto deadline = steady_clock::now() + seconds(60);
  do {
    for (auto& [stream, at] : calls) at = peer.send(stream, bytes, at);
    most = std::max(most, daemon.resident_bytes());
  } while (peer.read(20) && peer.open_calls() != 0 && steady_clock::now() < deadline);
  EXPECT_FALSE(peer.connected());  // closed because of the bytes
  EXPECT_LT(most - before, kMaxGrowth);
  expect_service(daemon);

  Http2Peer slow = Http2Peer::to_port(daemon.port());
  for (int i = 0; i < 60; ++i) {
    const uint32_t stream = slow.call("/grpc.health.v1.Health/Watch");
    slow.send(stream, bytes.substr(0, 1000));
  }
  EXPECT_TRUE(slow.read_until_open(0));  // ended because their requests did not arrive
  expect_service(daemon);
}

// A health watch as clients begin it: one request, and the end of the client's stream.
TEST(AbuseTest, HealthWatchStaysOpen) {
  Daemon daemon(kWithPort);
  grpc::GenericStub stub(channel_to(daemon.port()));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(&context, "/grpc.health.v1.Health/Watch", &queue);
  void* tag = nullptr;
  bool ok = false;
  const auto next = [&] { return queue.Next(&tag, &ok) && ok; };
  call->StartCall(nullptr);
  ASSERT_TRUE(next());
  grpc::Slice nothing("", 0);
  call->WriteLast(grpc::ByteBuffer(&nothing, 1), {}, nullptr);
  ASSERT_TRUE(next());
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  ASSERT_TRUE(next());
  EXPECT_EQ(answer.Length(), 2u);
  call->Read(&answer, nullptr);
  const auto longer_than_a_request_may_take = std::chrono::system_clock::now() + seconds(7);
  EXPECT_EQ(queue.AsyncNext(&tag, &ok, longer_than_a_request_may_take), grpc::CompletionQueue::TIMEOUT);
  context.TryCancel();
  EXPECT_FALSE(next());
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

// Sends 120 messages of 16 MiB, all but their last byte, on one connection. Returns the maximum growth of the
// daemon's memory.
uint64_t growth_by_unfinished(const Daemon& daemon, const char* method, const Http2Peer::Metadata& metadata) {
  const std::string message = message_prefix(16 << 20) + std::string((16 << 20) - 1, 'x');
  const uint64_t before = daemon.resident_bytes();
  uint64_t most = before;
  Http2Peer peer = Http2Peer::to_port(daemon.port());
  std::vector<std::pair<uint32_t, size_t>> calls;
  for (int i = 0; i < 120; ++i) calls.emplace_back(peer.call(method, metadata), 0);
  auto deadline = steady_clock::now() + seconds(60);
  while (peer.open_calls() != 0 && steady_clock::now() < deadline) {
    for (auto& [stream, sent] : calls) sent = peer.send(stream, message, sent);
    if (!peer.read(20)) break;
    most = std::max(most, daemon.resident_bytes());
  }
  EXPECT_LT(steady_clock::now(), deadline) << method << ": " << peer.open_calls() << " calls are open";
  return most - before;
}

TEST(AbuseTest, UnfinishedMessagesWithoutTokenUseNoMemory) {
  Daemon daemon(kWithPort);
  for (const char* method : {kHello, kReflection, "/teletensor.v1.Engine/Download", "/teletensor.v1.Engine/Cancel",
                             "/teletensor.v1.Engine/Session", "/teletensor.v1.Admin/Status",
                             "/grpc.health.v1.Health/Check", "/no.such.Service/Method"}) {
    EXPECT_LT(growth_by_unfinished(daemon, method, {}), kMaxGrowth) << method;
  }
  expect_service(daemon);
}

// The memory is reused: a second attack uses no more than the first.
TEST(AbuseTest, UnfinishedMessagesWithTokenHaveQuotaAndDeadline) {
  Daemon daemon(kWithPort);
  const uint64_t before = daemon.resident_bytes();
  for (int attack = 0; attack < 2; ++attack) {
    growth_by_unfinished(daemon, kHello, bearer(daemon.token()));
    expect_service(daemon);
    EXPECT_LT(daemon.resident_bytes(), before + (16 * 16 + 192) * kMiB) << attack;
  }
}

// gRPC reads a whole message before it checks its size; the memory of all messages in progress is limited.
TEST(AbuseTest, EndlessMessageIsAborted) {
  Daemon daemon(kWithPort);
  Client hostile(daemon);
  const uint64_t before = daemon.resident_bytes();
  uint64_t most = before;
  Http2Peer peer = Http2Peer::to_port(daemon.port());
  const uint32_t call =
      peer.call("/teletensor.v1.Engine/Session", {{"teletensor-session", hostile.hello().session_key()}});
  peer.send(call, message_prefix(0xf0000000));
  const std::string megabyte(kMiB, 'x');
  auto deadline = steady_clock::now() + seconds(60);
  for (size_t sent = 0; peer.is_open(call) && steady_clock::now() < deadline;) {
    sent = peer.send(call, megabyte, sent % kMiB);
    if (!peer.read(sent == kMiB ? 0 : 20)) break;
    most = std::max(most, daemon.resident_bytes());
  }
  EXPECT_LT(steady_clock::now(), deadline);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // a sanitizer's memory grows with the data sent
  EXPECT_LT(most, before + 1300 * kMiB);
#endif
  expect_service(daemon);
}

// 256 MiB of zeros, compressed.
std::string bomb() {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
  std::string zeros(1 << 20, '\0'), packed(4 << 20, '\0');
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  for (int i = 0; i < 256; ++i) {
    stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
    stream.avail_in = static_cast<uInt>(zeros.size());
    deflate(&stream, i == 255 ? Z_FINISH : Z_NO_FLUSH);
  }
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST(AbuseTest, CompressedMessageIsNotDecompressed) {
  Daemon daemon(kWithPort);
  Client client(daemon);
  const uint64_t before = daemon.resident_bytes();
  const std::string packed = bomb(), message = message_prefix(static_cast<uint32_t>(packed.size()), true) + packed;
  for (const bool in_session : {false, true}) {
    Http2Peer::Metadata metadata = bearer(daemon.token());
    metadata.emplace_back("grpc-encoding", "gzip");
    metadata.emplace_back("teletensor-session", client.hello().session_key());
    Http2Peer peer = Http2Peer::to_port(daemon.port());
    const uint32_t call = peer.call(in_session ? "/teletensor.v1.Engine/Session" : kHello, metadata);
    uint64_t most = before;
    for (size_t sent = 0; peer.is_open(call);) {
      sent = peer.send(call, message, sent);
      if (!peer.read(20)) break;
      most = std::max(most, daemon.resident_bytes());
    }
    EXPECT_LT(most, before + 64 * kMiB) << in_session;
  }
  expect_service(daemon);
}

// 80,000 calls whose replies are not read: they occupy all threads, but each only briefly.
TEST(AbuseTest, PeersThatReadNothingBlockNoThreads) {
  Daemon daemon(kWithPort);
  constexpr const char* kMethods[] = {kHello, "/teletensor.v1.Engine/Session", "/teletensor.v1.Engine/Download",
                                      "/no.such.Service/Method"};
  std::vector<Http2Peer> peers;
  for (int i = 0; i < 40; ++i) {
    peers.push_back(Http2Peer::to_port(daemon.port()));
    for (int call = 0; call < 2000 && peers.back().connected(); ++call) {
      peers.back().call(kMethods[call % 4], bearer("wrong"));
    }
  }
  // While the daemon rejects 80,000 calls, a valid call may be rejected too.
  auto serves = [&] { return Client(daemon).works() && status_answers(daemon).ok(); };
  const auto deadline = steady_clock::now() + seconds(60);
  bool served = serves();
  while (!served && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    served = serves();
  }
  EXPECT_TRUE(served);
}

TEST(AbuseTest, ConnectionsWithoutTokenAreEvicted) {
  Daemon daemon({"--listen", "127.0.0.1:0", "--connections-per-address", "16"});
  Client first(daemon, channel_to(daemon.port()));
  ASSERT_TRUE(first.works());
  std::vector<Http2Peer> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(Http2Peer::to_port(daemon.port()));
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // longer than the timeout of such a connection
  Client second(daemon, channel_to(daemon.port()));
  EXPECT_TRUE(second.works()) << second.status().error_message();
  EXPECT_TRUE(first.works());
  expect_service(daemon);
  size_t connected = 0;
  for (Http2Peer& peer : idle) {
    while (peer.read(0) && peer.read(0) && connected < 100) {
      ++connected;
      break;
    }
  }
  EXPECT_LE(connected, 16u + 64u);  // including connections that wait
}

// Opens `per_second` connections to a port until it is destroyed, at most 1,500, and keeps the last 600 open. Each
// sends `text` and nothing else.
class Flood {
 public:
  Flood(int port, int per_second, std::string text)
      : thread_([this, port, per_second, text = std::move(text)] { run(port, per_second, text); }) {}
  ~Flood() {
    stopping_ = true;
    thread_.join();
    for (int fd : open_) close(fd);
  }
  int opened() const { return opened_; }

 private:
  void run(int port, int per_second, const std::string& text) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<uint16_t>(port));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto interval = std::chrono::microseconds(1'000'000 / per_second);
    for (auto next = steady_clock::now(); !stopping_ && opened_ < 1500; next += interval) {
      std::this_thread::sleep_until(next);
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0) ++opened_;
      if (!text.empty()) send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      open_.push_back(fd);
      if (open_.size() <= 600) continue;
      close(open_.front());
      open_.pop_front();
    }
  }

  std::atomic<bool> stopping_{false};
  std::atomic<int> opened_{0};
  std::deque<int> open_;
  std::thread thread_;
};

TEST(AbuseTest, SilentConnectionsTakeNoPlaces) {
  for (int per_second : {20, 800}) {
    Daemon daemon(kWithPort);
    Flood flood(daemon.port(), per_second, "");
    while (flood.opened() < 12) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int i = 0; i < 12; ++i) {
      Client client(daemon, channel_to(daemon.port()));
      EXPECT_TRUE(client.works()) << per_second << " per second, client " << i << ": "
                                  << client.status().error_message();
    }
    EXPECT_GE(flood.opened(), 12);
  }
}

// A peer may send what a client sends first, and then nothing.
TEST(AbuseTest, ConnectionsWithOnlyAPrefaceDelayClientsBriefly) {
  Daemon daemon(kWithPort);
  Flood flood(daemon.port(), 100, std::string(kPreface));
  while (flood.opened() < 10) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int i = 0; i < 4; ++i) {
    Client client(daemon, channel_to(daemon.port()));
    EXPECT_TRUE(client.works()) << i << ": " << client.status().error_message();
  }
}

TEST(AbuseTest, SurvivesExhaustedFileDescriptors) {
  Daemon daemon({"--listen", "127.0.0.1:0"}, 300);
  {
    std::vector<Http2Peer> peers;
    for (int i = 0; i < 400; ++i) {
      peers.push_back(i % 2 == 0 ? Http2Peer::to_socket(daemon.socket()) : Http2Peer::to_port(daemon.port()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  expect_service(daemon);
  Client client(daemon, channel_to(daemon.port()));
  EXPECT_TRUE(client.works()) << client.status().error_message();
}

TEST(AbuseTest, LogsFewLinesForManyRejections) {
  Daemon daemon;
  Http2Peer peer = Http2Peer::to_socket(daemon.socket());
  for (int i = 0; i < 10'000; ++i) {
    peer.call(kHello, bearer("wrong"));
    if (peer.open_calls() >= 50) {
      ASSERT_TRUE(peer.read_until_open(25));
    }
  }
  ASSERT_TRUE(peer.read_until_open(0));
  expect_service(daemon);
  const std::string log = daemon.standard_error();
  EXPECT_THAT(log, HasSubstr("refused"));
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 200);
}

TEST(AbuseTest, InvalidMessagesAreNotLogged) {
  Daemon daemon({"--log-level", "error"});
  Client client(daemon);
  Http2Peer peer = Http2Peer::to_socket(daemon.socket());
  for (int i = 0; i < 100; ++i) {
    v1::HelloRequest request;
    std::string bytes = "\x0a\x02\xff\xff";  // a client name that is not UTF-8
    const uint32_t call = peer.call(kHello, bearer(daemon.token()));
    peer.send(call, message_prefix(static_cast<uint32_t>(bytes.size())) + bytes);
  }
  ASSERT_TRUE(peer.read_until_open(0));
  EXPECT_EQ(daemon.standard_error(), "");
}

TEST(AbuseTest, UserTokenCannotAdminister) {
  Daemon daemon;
  auto admin = v1::Admin::NewStub(daemon.channel());
  Client client(daemon);
  const auto expect_denied = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
  };
  {
    grpc::ClientContext context;
    daemon.authorize(&context);
    v1::SnapshotReply reply;
    expect_denied(admin->Snapshot(&context, {}, &reply));
  }
  {
    grpc::ClientContext context;
    daemon.authorize(&context);
    v1::EmptyCacheReply reply;
    expect_denied(admin->EmptyCache(&context, {}, &reply));
  }
  {
    grpc::ClientContext context;
    daemon.authorize(&context);
    v1::DrainReply reply;
    expect_denied(admin->Drain(&context, {}, &reply));
  }
  {
    grpc::ClientContext context;
    daemon.authorize(&context);
    v1::EndSessionRequest request;
    request.set_id(client.hello().session_id());
    v1::EndSessionReply reply;
    expect_denied(admin->EndSession(&context, request, &reply));
  }
  EXPECT_TRUE(client.works());
}

TEST(AbuseTest, StatusHidesProgramsFromUserToken) {
  Daemon daemon;
  Client client(daemon);
  auto admin = v1::Admin::NewStub(daemon.channel());
  grpc::ClientContext user, administrator;
  daemon.authorize(&user);
  daemon.administer(&administrator);
  v1::StatusReply seen, all;
  ASSERT_TRUE(admin->Status(&user, {}, &seen).ok());
  ASSERT_TRUE(admin->Status(&administrator, {}, &all).ok());
  ASSERT_EQ(seen.sessions_size(), 1);
  EXPECT_EQ(seen.sessions(0).id(), client.hello().session_id());
  EXPECT_EQ(seen.sessions(0).client(), "");
  EXPECT_EQ(all.sessions(0).client(), "secret project");
}

TEST(AbuseTest, AdminEndsSession) {
  Daemon daemon;
  Client victim(daemon), bystander(daemon);
  ASSERT_TRUE(victim.works());
  auto admin = v1::Admin::NewStub(daemon.channel());
  for (const grpc::StatusCode expected : {grpc::StatusCode::OK, grpc::StatusCode::NOT_FOUND}) {
    grpc::ClientContext context;
    daemon.administer(&context);
    v1::EndSessionRequest request;
    request.set_id(victim.hello().session_id());
    v1::EndSessionReply reply;
    EXPECT_EQ(admin->EndSession(&context, request, &reply).error_code(), expected);
  }
  EXPECT_FALSE(victim.works());
  EXPECT_TRUE(bystander.works());
}

}  // namespace
}  // namespace tt::server
