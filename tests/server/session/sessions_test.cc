// Sessions: the table, resumption, leases.
#include "server/session/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>
#include <chrono>

#include <thread>

#include "server/session/in_process.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

using std::chrono::milliseconds;
using testing::engine_bytes;
using testing::literal;

Sessions::Options with_lease(milliseconds lease) {
  Sessions::Options options;
  options.lease = lease;
  return options;
}

class SessionsTest : public ::testing::Test {
 protected:
  SessionsTest() { testing::start_engine(); }

  static v1::HelloReply hello(Sessions& sessions, const v1::HelloRequest& request = {}) {
    v1::HelloReply reply;
    absl::Status status = sessions.hello(request, &reply);
    EXPECT_TRUE(status.ok()) << status;
    return reply;
  }
  // Creates a tensor in the session.
  static void occupy(Session& session) {
    v1::Frame frame;
    literal(&frame, 1, {1000}, std::vector<float>(1000));
    frame.set_sequence(1);
    v1::Reply reply;
    session.execute(frame, &reply);
    ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  }
  // Whether the engine's memory returns to `bytes` within `timeout`.
  static bool returns_to(uint64_t bytes, milliseconds timeout) {
    auto deadline = std::chrono::steady_clock::now() + timeout;
    while (engine_bytes() != bytes && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return engine_bytes() == bytes;
  }
};

TEST_F(SessionsTest, HelloDescribesEngine) {
  Sessions sessions({});
  v1::HelloReply reply = hello(sessions);
  EXPECT_EQ(reply.schema_digest(), schema_digest());
  EXPECT_GE(reply.devices_size(), 1);
  EXPECT_EQ(reply.session_key().size(), 64u);
  EXPECT_GT(reply.limits().max_frame_bytes(), 0u);
  EXPECT_NE(hello(sessions).session_key(), reply.session_key());
  EXPECT_EQ(sessions.size(), 2u);
}

TEST_F(SessionsTest, ResumeFindsSession) {
  Sessions sessions({});
  v1::HelloReply first = hello(sessions);
  occupy(*sessions.find(first.session_key()));
  v1::HelloRequest request;
  request.set_resume_key(first.session_key());
  v1::HelloReply again = hello(sessions, request);
  EXPECT_EQ(again.session_id(), first.session_id());
  EXPECT_EQ(again.executed(), 1u);
  request.set_resume_key("no such key");
  v1::HelloReply ignored;
  EXPECT_EQ(sessions.hello(request, &ignored).code(), absl::StatusCode::kNotFound);
}

TEST_F(SessionsTest, LeaseExpiryFreesSession) {
  uint64_t before = engine_bytes();
  Sessions sessions(with_lease(milliseconds(50)));
  std::string key = hello(sessions).session_key();
  occupy(*sessions.find(key));
  EXPECT_GT(engine_bytes(), before);
  EXPECT_TRUE(returns_to(before, milliseconds(2000)));
  EXPECT_EQ(sessions.find(key), nullptr);
}

TEST_F(SessionsTest, OpenStreamKeepsSession) {
  Sessions sessions(with_lease(milliseconds(20)));
  auto session = sessions.find(hello(sessions).session_key());
  uint64_t stream = sessions.attach(*session, [] {});
  std::this_thread::sleep_for(milliseconds(60));
  EXPECT_FALSE(session->over());
  sessions.detach(*session, stream);
  std::this_thread::sleep_for(milliseconds(60));
  EXPECT_TRUE(session->over());
}

TEST_F(SessionsTest, NewStreamReplacesOldStream) {
  Sessions sessions(with_lease(milliseconds(20)));
  auto session = sessions.find(hello(sessions).session_key());
  bool replaced = false;
  uint64_t old_stream = sessions.attach(*session, [&] { replaced = true; });
  uint64_t new_stream = sessions.attach(*session, [] {});
  EXPECT_TRUE(replaced);
  sessions.detach(*session, old_stream);  // a late detach of a replaced stream has no effect
  std::this_thread::sleep_for(milliseconds(60));
  EXPECT_FALSE(session->over());
  sessions.detach(*session, new_stream);
}

TEST_F(SessionsTest, DeadLocalClientLosesLease) {
  uint64_t before = engine_bytes();
  Sessions sessions(with_lease(std::chrono::minutes(10)));
  v1::HelloRequest request;
  request.set_shared_memory(true);
  v1::HelloReply reply = hello(sessions, request);
  const v1::SharedMemory& memory = reply.shared_memory();
  auto client = shared_ring::Segment::open(memory.pid(), memory.file_descriptor(), memory.bytes(), memory.nonce());
  ASSERT_NE(client, nullptr);
  {
    auto session = sessions.find(reply.session_key());
    occupy(*session);
    uint64_t stream = sessions.attach(*session, [] {});
    sessions.detach(*session, stream);
  }
  EXPECT_FALSE(returns_to(before, milliseconds(100)));  // the open segment shows that the client is alive
  client.reset();
  EXPECT_TRUE(returns_to(before, milliseconds(3000)));
}

TEST_F(SessionsTest, StopRejectsHelloAndEndAllFreesMemory) {
  uint64_t before = engine_bytes();
  Sessions sessions({});
  std::string key = hello(sessions).session_key();
  occupy(*sessions.find(key));
  bool cancelled = false;
  sessions.attach(*sessions.find(key), [&] { cancelled = true; });
  sessions.stop();
  v1::HelloReply reply;
  EXPECT_EQ(sessions.hello({}, &reply).code(), absl::StatusCode::kUnavailable);
  sessions.end_all();
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(sessions.size(), 0u);
  EXPECT_EQ(engine_bytes(), before);
}

TEST_F(SessionsTest, LeavesSessionsToOtherPrincipalsAndOperators) {
  Sessions::Options options;
  options.max_sessions = 32;
  Sessions sessions(options);
  const auto open = [&](const char* name, Role role = Role::kUser) {
    v1::HelloReply reply;
    return sessions.hello({}, &reply, "10.0.0.1", Principal{name, role});
  };
  int first = 0, second = 0;
  while (open("a").ok()) ++first;
  while (open("b").ok()) ++second;
  EXPECT_EQ(first, 23);  // less than three times as many as are free without the reserve
  EXPECT_GT(second, 3);
  const absl::Status refused = open("a");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("a has 23 of them, its share of 32"));
  EXPECT_TRUE(open("c").ok());
  EXPECT_TRUE(open("d").ok());
  EXPECT_FALSE(open("e").ok());  // what is left is for operators
  EXPECT_TRUE(open("root", Role::kOperator).ok());
}

TEST_F(SessionsTest, LimitsSessions) {
  Sessions::Options options;
  options.max_sessions = 2;
  Sessions sessions(options);
  hello(sessions);
  hello(sessions);
  v1::HelloReply reply;
  EXPECT_EQ(sessions.hello({}, &reply).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(SessionsTest, ClientLimitIsCappedByEngineLimit) {
  Sessions::Options options;
  options.session_memory_limit = 1000;
  Sessions sessions(options);
  v1::HelloRequest request;
  request.set_memory_limit(5000);
  hello(sessions, request);
  request.set_memory_limit(10);
  hello(sessions, request);
  std::vector<v1::SessionStatus> list = sessions.list();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].limit_bytes(), 1000u);
  EXPECT_EQ(list[1].limit_bytes(), 10u);
}

TEST_F(SessionsTest, InProcessEngineTransfersBothWays) {
  InProcessEngine engine;
  v1::HelloReply welcome;
  ASSERT_TRUE(engine.hello({}, &welcome).ok());
  std::string bytes = testing::bytes_of({1, 2, 3});
  ASSERT_TRUE(engine.upload(welcome.session_key(), 1, Device{}, bytes).ok());
  v1::Frame frame;
  frame.set_sequence(1);
  testing::uploaded(&frame, 1, 1, {3});
  v1::Reply reply;
  ASSERT_TRUE(engine.execute(welcome.session_key(), frame, &reply).ok());
  std::string got(bytes.size(), '\0');
  v1::Error error;
  ASSERT_TRUE(engine.download(welcome.session_key(), 1, 1, absl::MakeSpan(got), &error).ok());
  EXPECT_EQ(got, bytes);
  EXPECT_EQ(engine.execute("no key", frame, &reply).code(), absl::StatusCode::kNotFound);
}

TEST_F(SessionsTest, EndsSessionById) {
  Sessions sessions({});
  v1::HelloReply kept = hello(sessions), ended = hello(sessions);
  const uint64_t before = engine_bytes();
  auto session = sessions.find(ended.session_key());
  occupy(*session);
  std::atomic<bool> cancelled = false;
  sessions.attach(*session, [&] { cancelled = true; });
  EXPECT_TRUE(sessions.end(ended.session_id()));  // does not block
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (sessions.size() != 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(session->over());
  EXPECT_EQ(engine_bytes(), before);
  EXPECT_EQ(sessions.find(ended.session_key()), nullptr);
  EXPECT_NE(sessions.find(kept.session_key()), nullptr);
  EXPECT_FALSE(sessions.end(ended.session_id()));
}

}  // namespace
}  // namespace tt::server
