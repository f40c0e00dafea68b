// The client and a real teletensord when their connections break, end or become silent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "proto/shared_ring.h"
#include "tests/client/daemon_session.h"

namespace tt::client::testing {
namespace {

using relay::Relay;
using Clock = std::chrono::steady_clock;

// The sockets of this process, by inode.
std::set<std::string> sockets() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.rfind("socket:", 0) == 0) found.insert(target);
  }
  return found;
}

// Uploads that are in progress at the same time, in the background, have the right bytes.
void expect_many_uploads(Session& session) {
  constexpr int64_t kBytes = 200'000;
  const auto bytes = [](int i) { return std::string(kBytes, static_cast<char>(i)); };
  std::vector<Tensor> tensors;
  for (int i = 0; i < 100; ++i) tensors.push_back(session.upload(bytes(i), DType::kUInt8, {kBytes}, Device()));
  for (int i = 0; i < 100; ++i) {
    const std::string got = session.read(tensors[static_cast<size_t>(i)]).bytes, expected = bytes(i);
    const auto difference = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end());
    EXPECT_TRUE(got == expected) << "upload " << i << ", " << got.size() << " bytes, the first wrong at "
                                 << difference.first - got.begin() << ": " << int{*difference.first};
  }
}

class LinkThatBreaks : public ::testing::TestWithParam<bool> {};

// With shared memory only the bytes of transfers' calls and the end of the stream pass through the relay.
void expect_no_work_is_lost(bool shared_memory) {
  Daemon daemon;
  Relay relay({.listen = daemon.address() + ".relay", .target = daemon.address()});
  Ref<Session> session = connect({.address = relay.address(), .token = daemon.token(), .shared_memory = shared_memory});
  std::optional<RepeatedBreaks> breaks(relay);
  Tensor one = full(*session, {8, 8}, 1);
  Tensor x = full(*session, {8, 8}, 0);
  int steps = 0;
  Tensor into[] = {x};
  while (steps < 20'000 || (relay.connections() < 3 && steps < 10'000'000)) {
    add(*session, x, one.get(), {.into = into});  // in place, so that a repeated or lost execution changes the value
    if (++steps % 500 == 0) {
      EXPECT_EQ(read(*session, x)[0], static_cast<float>(steps));
    }
  }
  std::string bytes(3 << 20, 'z');
  for (int i = 0; i < 10; ++i) {
    Tensor tensor = session->upload(bytes, DType::kUInt8, {3 << 20}, Device());
    EXPECT_TRUE(session->read(tensor).bytes == bytes);
  }
  expect_many_uploads(*session);
  breaks.reset();
  EXPECT_EQ(read(*session, x)[0], static_cast<float>(steps));
  EXPECT_GE(relay.connections(), 3u);
}

TEST_P(LinkThatBreaks, RepeatedBreaksLoseNoWork) {
  std::optional<InterruptibleThread> scope;
  if (GetParam()) scope.emplace();
  expect_no_work_is_lost(/*shared_memory=*/false);
}

TEST_P(LinkThatBreaks, RepeatedBreaksBesideSharedMemoryLoseNoWork) {
  std::optional<InterruptibleThread> scope;
  if (GetParam()) scope.emplace();
  expect_no_work_is_lost(/*shared_memory=*/true);
}

// The latest segment that this process shares with an engine.
shared_ring::Header& mapped_segment() {
  std::ifstream maps("/proc/self/maps");
  uintptr_t found = 0;
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, "memfd:teletensor")) found = std::stoull(line, nullptr, 16);
  }
  EXPECT_NE(found, 0u);
  return *reinterpret_cast<shared_ring::Header*>(found);
}

// A client whose pipes break, whichever side notices it, continues without them.
TEST(BrokenPipe, TheSessionContinues) {
  for (const bool client_notices : {true, false}) {
    Daemon daemon;
    Ref<Session> session = connect_to(daemon);
    Tensor x = full(*session, {8, 8}, 0), one = full(*session, {8, 8}, 1);
    Tensor into[] = {x};
    for (int step = 1; step <= 2000; ++step) {
      add(*session, x, one.get(), {.into = into});
      if (step % 100 == 0) {
        EXPECT_EQ(read(*session, x)[0], static_cast<float>(step));
      }
      if (step != 1000) continue;
      shared_ring::Header& header = mapped_segment();
      (client_notices ? header.frames : header.replies).read += 100 << 20;  // more than was written
    }
  }
}

// A large upload and a large download, each of which takes longer than the 50 to 100 ms between broken connections.
TEST_P(LinkThatBreaks, RepeatedBreaksKeepLargeTransfers) {
  std::optional<InterruptibleThread> scope;
  if (GetParam()) scope.emplace();
  Daemon daemon;
  Relay relay({.listen = daemon.address() + ".relay", .target = daemon.address()});
  Ref<Session> session = connect({.address = relay.address(), .token = daemon.token(), .shared_memory = false});
  RepeatedBreaks breaks(relay);
  constexpr size_t kBytes = size_t{128} << 20;
  std::string sent(kBytes, '\0'), got(kBytes, 'x');
  for (size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<char>(i * 131 + i / 65536);
  for (int round = 0; round < 2; ++round) {
    sent[17] = static_cast<char>(round);
    Tensor tensor = session->upload(sent, DType::kUInt8, {static_cast<int64_t>(kBytes)}, Device());
    session->read_into(tensor, absl::MakeSpan(got));
    EXPECT_TRUE(got == sent);
  }
  expect_many_uploads(*session);
  EXPECT_GE(relay.connections(), 3u);
}

INSTANTIATE_TEST_SUITE_P(OfA, LinkThatBreaks, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "InterruptibleThread" : "Thread"; });

void expect_connection_error_when_the_link_ends(const std::function<void(Session&)>& transfer) {
  Daemon daemon({"--lease", "1"});
  Relay relay({.listen = daemon.address() + ".relay", .target = daemon.address()});
  Ref<Session> session = connect({.address = relay.address(), .token = daemon.token(), .shared_memory = false});
  Clock::time_point ended;
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    relay.refuse(true);
    relay.cut();
    ended = Clock::now();
  });
  try {
    for (;;) transfer(*session);
  } catch (const Error& e) {
    ends.join();
    EXPECT_LT(Clock::now() - ended, std::chrono::seconds(10));
    EXPECT_EQ(e.kind(), ErrorKind::kConnection) << e.message();
  }
}

TEST(EndedLink, UploadIsConnectionError) {
  std::string bytes(64 << 20, 'x');
  expect_connection_error_when_the_link_ends(
      [&](Session& session) { session.upload(bytes, DType::kUInt8, {64 << 20}, Device()); });
}

TEST(EndedLink, DownloadIsConnectionError) {
  Tensor tensor;
  expect_connection_error_when_the_link_ends([&](Session& session) {
    if (!tensor) tensor = full(session, {16 << 20}, 1);
    session.read(tensor);
  });
}

// Longer than the moment after which the link's end used to be assumed.
TEST(RefusedLink, SessionContinuesWhenConnectionsAreAcceptedAgain) {
  Daemon daemon;
  Relay relay({.listen = daemon.address() + ".relay", .target = daemon.address()});
  Ref<Session> session = connect({.address = relay.address(), .token = daemon.token(), .shared_memory = false});
  const Tensor ones = full(*session, {2}, 1);
  session->synchronize();
  relay.refuse(true);
  relay.cut();
  std::jthread accepts([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    relay.refuse(false);
  });
  EXPECT_EQ(read(*session, add(*session, ones, Arg(1.0))), (std::vector<float>{2, 2}));
}

// However a session meets the end of its engine, its calls throw the same exception, soon.
TEST(StoppedEngine, EveryCallIsConnectionError) {
  Daemon daemon;
  Relay relay({.listen = daemon.address() + ".relay", .target = daemon.address()});
  // Neither session can detect the end of the engine's process.
  const auto open = [&] {
    return connect({.address = relay.address(), .token = daemon.token(), .shared_memory = false});
  };
  Ref<Session> idle = open(), waiting = open(), issuing = open(), uploading = open();
  const Tensor ones = full(*idle, {2}, 1);
  idle->synchronize();
  const auto expect_connection_error = [](const char* what, const auto& call) {
    try {
      call();
      ADD_FAILURE() << what;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConnection) << what << ": " << error.message();
    }
  };
  std::vector<std::jthread> threads;
  threads.emplace_back([&] {
    expect_connection_error("waiting", [&] {
      for (Tensor big = full(*waiting, {1000, 1000}, 0);;) {
        for (int i = 0; i < 20; ++i) {
          const Arg args[] = {big.get(), big.get()};
          big = waiting->call(op("matmul"), args)[0];
        }
        waiting->read(big);
      }
    });
  });
  threads.emplace_back([&] {
    expect_connection_error("issuing", [&] {
      for (Tensor x = full(*issuing, {8}, 0);;) x = add(*issuing, x, Arg(1.0));
    });
  });
  threads.emplace_back([&] {
    const std::string bytes(1 << 20, 'x');
    expect_connection_error("uploading", [&] {
      for (;;) uploading->read(uploading->upload(bytes, DType::kUInt8, {1 << 20}, Device()));
    });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto stopped = Clock::now();
  kill(daemon.pid(), SIGTERM);
  threads.clear();
  expect_connection_error("idle", [&] { read(*idle, ones); });
  expect_connection_error("idle, again", [&] { idle->synchronize(); });
  EXPECT_LT(Clock::now() - stopped, std::chrono::seconds(30));  // and not the lease
}

// ---- Silent connections: no end and no error is delivered, and both sides must detect this themselves

class SilentLink : public ::testing::Test {
 protected:
  // Waits for the engine to report whether the session's stream is connected. Returns the seconds that this took.
  double wait_until_connected(bool connected) {
    const auto start = Clock::now();
    const auto waited = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    while (daemon_.status().sessions(0).connected() != connected && waited() < 30) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return waited();
  }

  Daemon daemon_;
  Relay relay_{{.listen = "127.0.0.1:0", .target = daemon_.address()}};
  Ref<Session> session_ = connect({.address = relay_.address(), .token = daemon_.token(), .shared_memory = false});
};

// Upper bounds are far above the 5.5 s of keepalive.h, because the machine may be loaded, and below the 30 s of a
// transfer's retries.
TEST_F(SilentLink, ReadIsAnsweredOverNewConnection) {
  const Tensor ones = full(*session_, {2}, 1);
  session_->synchronize();
  relay_.lose();
  const auto start = Clock::now();
  EXPECT_EQ(read(*session_, add(*session_, ones, Arg(1.0))), (std::vector<float>{2, 2}));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(15));
  EXPECT_EQ(relay_.connections(), 2u);
}

TEST_F(SilentLink, EngineNoticesAndReadIsAnsweredAfterStall) {
  const Tensor ones = full(*session_, {2}, 1);
  session_->synchronize();
  relay_.stall();
  std::atomic<bool> answered{false};
  std::jthread reader([&] {
    EXPECT_EQ(read(*session_, add(*session_, ones, Arg(1.0))), (std::vector<float>{2, 2}));
    answered = true;
  });
  EXPECT_LT(wait_until_connected(false), 15);
  std::this_thread::sleep_for(std::chrono::seconds(2));  // the client tries to connect meanwhile
  EXPECT_FALSE(answered);
  relay_.resume();
  const auto resumed = Clock::now();
  wait_until_connected(true);
  reader.join();
  EXPECT_LT(Clock::now() - resumed, std::chrono::seconds(10));
}

TEST_F(SilentLink, TransfersContinueAfterStall) {
  constexpr int64_t kBytes = 24 << 20;
  std::string sent(kBytes, '\0');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 131 + i / 65536);
  std::vector<Tensor> tensors;
  relay_.stall();
  tensors.push_back(session_->upload(sent, DType::kUInt8, {kBytes}, Device()));
  std::jthread resumes([&] {
    wait_until_connected(false);
    relay_.resume();
  });
  for (int i = 0; i < 4; ++i) {  // the later ones exceed the background's memory: this caller waits for the link
    tensors.push_back(session_->upload(sent, DType::kUInt8, {kBytes}, Device()));
  }
  for (const Tensor& tensor : tensors) EXPECT_TRUE(session_->read(tensor).bytes == sent);
}

TEST_F(SilentLink, ClosesSoon) {
  relay_.stall();
  wait_until_connected(false);
  const auto start = Clock::now();
  session_->close();
  session_ = nullptr;
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
}

// Longer than the keepalive times of either end (proto/keepalive.h).
TEST(IdleTest, IdleSessionKeepsConnection) {
  Daemon daemon;
  const Ref<Session> session = connect_to(daemon);
  const Tensor ones = full(*session, {2}, 1);
  EXPECT_EQ(read(*session, ones), (std::vector<float>{1, 1}));
  const std::set<std::string> before = sockets();
  ASSERT_FALSE(before.empty());
  std::this_thread::sleep_for(std::chrono::seconds(15));
  EXPECT_EQ(sockets(), before) << "the client reconnected";
  EXPECT_EQ(read(*session, ones), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace tt::client::testing
