// The client against a real teletensord: values, transfers of many sizes, killed engines, leaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>

#include "client/connect.h"
#include "client/connection/address.h"
#include "client/connection/private_engine.h"
#include "client/transport/grpc_transport.h"
#include "tests/client/daemon.h"
#include "tests/client/daemon_session.h"

namespace tt::client::testing {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

uint64_t held_bytes(const Daemon& daemon) {
  uint64_t bytes = 0;
  v1::StatusReply status = daemon.status();
  for (const auto& device : status.devices()) bytes += device.memory().allocated();
  return bytes;
}

// The upload's call may overtake the frames that release the memory which it needs.
TEST(Engine, UploadAfterDropFitsIntoMemory) {
  constexpr int64_t kBytes = 40 << 20;
  Daemon daemon({"--session-memory-limit", "64MB"});
  for (const bool shared_memory : {true, false}) {
    Ref<Session> session = connect_to(daemon, shared_memory);
    const std::string bytes(kBytes, 'x');
    Tensor tensor = full(*session, {kBytes / 4}, 1);
    for (int i = 0; i < 6; ++i) {
      if (i == 3) session->synchronize();
      tensor = nullptr;
      if (i == 4) session->synchronize();
      tensor = session->upload(bytes, DType::kUInt8, {kBytes}, Device());
      const Arg args[] = {tensor.get(), Arg(0), Arg(i), Arg(1)};
      EXPECT_EQ(session->read(session->call(op("narrow"), args)[0]).bytes, "x") << i;
    }
    try {  // while a tensor is in use, another one does not fit
      session->read(session->upload(bytes, DType::kUInt8, {kBytes}, Device()));
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    }
    session->close();
  }
}

TEST(Engine, ComputesResults) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon);
  Tensor a = upload(*session, {1, 2, 3});
  Tensor b = add(*session, a, Arg(10.0));
  EXPECT_EQ(read(*session, b), (std::vector<float>{11, 12, 13}));
  Tensor into[] = {a};
  add(*session, a, a.get(), {.into = into});
  EXPECT_EQ(read(*session, a), (std::vector<float>{2, 4, 6}));
}

class BytesTest : public ::testing::TestWithParam<bool> {};

TEST_P(BytesTest, RoundTrip) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon, GetParam());
  constexpr size_t kInline = 64 << 10, kChunk = 1 << 20;
  for (size_t bytes : {size_t{0}, size_t{1}, kInline - 1, kInline, kInline + 1, kChunk - 1, kChunk, kChunk + 1,
                       4 * kChunk, 4 * kChunk + 1, 9 * kChunk - 1, 33 * kChunk + 5}) {
    std::string sent(bytes, '\0');
    std::iota(sent.begin(), sent.end(), static_cast<char>(bytes));
    Tensor tensor = session->upload(sent, DType::kUInt8, {static_cast<int64_t>(bytes)}, Device());
    std::string got(bytes, 'x');
    session->read_into(tensor, absl::MakeSpan(got));
    EXPECT_TRUE(got == sent) << bytes << " bytes";
    EXPECT_TRUE(session->read(tensor).bytes == sent) << bytes << " bytes";
  }
}

TEST_P(BytesTest, ThreadsDoNotMixBytes) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon, GetParam());
  std::vector<std::thread> threads;
  for (char fill : {'a', 'b', 'c'}) {
    threads.emplace_back([&, fill] {
      std::string sent(3 << 20, fill), got(3 << 20, 'x');
      for (int i = 0; i < 4; ++i) {
        Tensor tensor = session->upload(sent, DType::kUInt8, {3 << 20}, Device());
        session->read_into(tensor, absl::MakeSpan(got));
        EXPECT_TRUE(got == sent);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Way, BytesTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "SharedMemory" : "Chunks"; });

TEST(Engine, DataDependentShapesWait) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon);
  Tensor a = upload(*session, {0, 5, 0, 7});
  const Arg args[] = {a.get()};
  Tensor where = session->call(op("nonzero"), args)[0];
  EXPECT_EQ(where->sizes, Sizes({2, 1}));
  EXPECT_EQ(session->counters().waits, 1u);
}

TEST(Engine, OutOfMemoryPoisonsItsTensorOnly) {
  Daemon daemon({"--session-memory-limit", "64MB"});
  Ref<Session> session = connect_to(daemon);
  uint32_t site = session->site("train.py", 7, "main");
  Tensor large = full(*session, {1 << 25}, 1, site);
  Tensor after = add(*session, large, Arg(1.0));
  try {
    session->read(add(*session, after, Arg(2.0)));
    FAIL();
  } catch (const RemoteError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kOutOfMemory);
    EXPECT_EQ(e.site(), "train.py:7 in main");  // the line of the failed operation, not of its dependents
  }
  EXPECT_EQ(read(*session, full(*session, {2}, 3)), (std::vector<float>{3, 3}));
}

TEST(Engine, RejectsUploadOverLimit) {
  Daemon daemon({"--session-memory-limit", "16MB"});
  Ref<Session> session = connect_to(daemon);
  std::string bytes(32 << 20, 'x');
  for (int i = 0; i < 3; ++i) {
    try {
      session->read(session->upload(bytes, DType::kUInt8, {32 << 20}, Device()));
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kOutOfMemory) << e.message();
    }
  }
  std::string fits(1 << 20, 'y');
  Tensor tensor = session->upload(fits, DType::kUInt8, {1 << 20}, Device());
  EXPECT_TRUE(session->read(tensor).bytes == fits);
}

// The upload fails in the background, so the error is the tensor's.
TEST(Engine, BackgroundUploadOverLimitPoisonsItsTensor) {
  Daemon daemon({"--session-memory-limit", "160MB"});
  for (bool shared_memory : {true, false}) {
    Ref<Session> session = connect_to(daemon, shared_memory);
    const uint32_t site = session->site("train.py", 9, "load");
    constexpr int64_t kBytes = 6 << 20;
    const auto upload = [&](char byte) {
      return session->upload(std::string(kBytes, byte), DType::kUInt8, {kBytes}, Device(), site);
    };
    std::vector<Tensor> tensors;
    int refused = 0;
    for (int i = 0; i < 30 && refused == 0; ++i) {
      // Only a queue without the last upload's bytes has room.
      while (session->counters().upload_bytes_in_flight > 0) std::this_thread::yield();
      tensors.push_back(upload('x'));
      try {
        session->read(tensors.back());
      } catch (const RemoteError& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kOutOfMemory) << e.message();
        EXPECT_EQ(e.site(), "train.py:9 in load");
        ++refused;
      }
    }
    EXPECT_EQ(refused, 1);
    tensors.clear();
    session->read(full(*session, {1}, 0));  // a call carries the releases
    // the engine holds none of the rejected bytes
    EXPECT_TRUE(session->read(upload('y')).bytes == std::string(kBytes, 'y'));
  }
}

class BackgroundUpload : public ::testing::TestWithParam<bool> {};

// Instructions that follow an upload are issued while the engine has none of its bytes.
TEST_P(BackgroundUpload, ReturnsBeforeTheEngineReads) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon, GetParam());
  session->synchronize();
  daemon.stop_running();
  std::vector<std::string> sent;
  std::vector<Tensor> sums;
  for (int i = 0; i < 5; ++i) {
    sent.emplace_back(1 << 20, static_cast<char>('a' + i));
    std::string bytes = sent.back();
    Tensor tensor = session->upload(bytes, DType::kUInt8, {1 << 20}, Device());
    std::fill(bytes.begin(), bytes.end(), 'x');  // the caller may change its bytes at once
    sums.push_back(add(*session, tensor, Arg(1)));
  }
  kill(daemon.pid(), SIGCONT);
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_TRUE(session->read(sums[i]).bytes == std::string(1 << 20, static_cast<char>('b' + i)));
  }
}

TEST_P(BackgroundUpload, EndsWithItsSession) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon, GetParam());
  session->synchronize();
  daemon.stop_running();
  std::string bytes(1 << 20, 'x');
  Tensor tensor = session->upload(bytes, DType::kUInt8, {1 << 20}, Device());
  std::thread resumes([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(daemon.pid(), SIGCONT);
  });
  session->close();
  resumes.join();
  EXPECT_THROW(session->upload(bytes, DType::kUInt8, {1 << 20}, Device()), Error);
}

INSTANTIATE_TEST_SUITE_P(Through, BackgroundUpload, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "SharedMemory" : "Chunks"; });

TEST(Engine, ClosedSessionFreesMemory) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon);
  Tensor a = full(*session, {1 << 20}, 1);
  session->synchronize();
  EXPECT_GE(held_bytes(daemon), size_t{4} << 20);
  session->close();
  EXPECT_EQ(held_bytes(daemon), 0u);
  // The memory is freed when close() returns; the session's stream ends slightly later.
  for (int i = 0; i < 2500 && daemon.status().sessions_size() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(daemon.status().sessions_size(), 0);
}

// close() waits five seconds; the engine must not keep computing, or keep the session, after that.
TEST(Engine, CloseCancelsLongWork) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon);
  const Tensor factor = full(*session, {1024, 1024}, 1);
  Tensor product = factor;
  for (int i = 0; i < 2500; ++i) {
    const Arg args[] = {factor.get(), product.get()};
    product = session->call(op("mm"), args, {})[0];
  }
  session->close();
  for (int i = 0; i < 1000 && daemon.status().sessions_size() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(daemon.status().sessions_size(), 0);
  EXPECT_EQ(held_bytes(daemon), 0u);
}

TEST(Engine, DroppedHandlesAreFreed) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon);
  Tensor a = full(*session, {1 << 20}, 1);
  session->synchronize();
  a = nullptr;  // no call follows the release
  for (int i = 0; i < 500 && held_bytes(daemon) > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(held_bytes(daemon), 0u);
}

TEST(Engine, RequiresToken) {
  Daemon daemon;
  try {
    connect({.address = daemon.address(), .token = "not the token"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kConnection);
    EXPECT_THAT(e.message(), HasSubstr("token"));
  }
}

TEST(Engine, MissingEngineIsConnectionError) {
  auto start = Clock::now();
  EXPECT_THROW(connect({.address = "unix:/tmp/nobody-listens-here.sock"}), Error);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(1));
}

// Many more transfers than a session may have in progress, and than may wait in the queue.
TEST(Engine, TransfersOverLimitWait) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon, /*shared_memory=*/false);
  Tensor slow = full(*session, {1 << 24}, 1);
  std::string sent(100'000, 'y');
  std::vector<Tensor> tensors;
  for (int i = 0; i < 300; ++i) {
    if (i % 10 == 0) slow = add(*session, slow, Arg(1.0));  // slows the engine down
    tensors.push_back(session->upload(sent, DType::kUInt8, {100'000}, Device()));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 100; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = static_cast<size_t>(t); i < tensors.size(); i += 100) {
        EXPECT_TRUE(session->read(tensors[i]).bytes == sent);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class InterruptedTransfer : public ::testing::TestWithParam<bool> {};

TEST_P(InterruptedTransfer, LeavesNoBytesInLane) {
  InterruptibleThread scope;
  Daemon daemon;
  Ref<Session> session = connect_to(daemon, GetParam());
  auto interrupted = [&](auto wait) {
    session->synchronize();
    daemon.stop_running();
    std::thread source([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      interrupt_pending = true;
    });
    EXPECT_THROW(wait(), Interrupted);
    source.join();
    kill(daemon.pid(), SIGCONT);
  };
  for (int round = 0; round < 4; ++round) {
    // One fits into the shared-memory lane. The uploads are too large to be sent in the background.
    for (int64_t count : {int64_t{1} << 18, int64_t{20} << 20}) {
      if (round % 2 == 1 && count < int64_t{1} << 20) continue;
      Tensor left = full(*session, {count}, 1000 + round), wanted = full(*session, {count}, round);
      std::vector<float> floats(static_cast<size_t>(count), static_cast<float>(2000 + round));
      absl::Span<const char> bytes(reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float));
      if (round % 2 == 0) {
        interrupted([&] { session->read(left); });
      } else {
        interrupted([&] { session->upload(bytes, DType::kFloat32, {count}, Device()); });
      }
      EXPECT_EQ(read(*session, wanted), std::vector<float>(floats.size(), static_cast<float>(round)));
      EXPECT_EQ(read(*session, session->upload(bytes, DType::kFloat32, {count}, Device())), floats);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Through, InterruptedTransfer, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "SharedMemory" : "Chunks"; });

// Checks the errors that callers get if the engine is killed while `busy` runs on its session.
void expect_one_clear_error(const std::function<void(Session&)>& busy) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon);
  busy(*session);
  Clock::time_point killed;
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    daemon.kill_now();
    killed = Clock::now();
  });
  try {
    for (;;) busy(*session);
  } catch (const Error& e) {
    auto noticed = Clock::now();
    killer.join();
    EXPECT_LT(noticed - killed, std::chrono::seconds(1));
    EXPECT_EQ(e.kind(), ErrorKind::kConnection);
    EXPECT_THAT(e.message(), HasSubstr("[connection] the engine at " + daemon.address() + " is gone"));
  }
  EXPECT_THROW(session->synchronize(), Error);
}

TEST(KilledEngine, EndsCalls) {
  expect_one_clear_error([](Session& session) { full(session, {8}, 1); });
}
TEST(KilledEngine, EndsReads) {
  expect_one_clear_error([](Session& session) { session.read(full(session, {8}, 1)); });
}
TEST(KilledEngine, EndsReadsThatWaitForLongWork) {
  expect_one_clear_error([](Session& session) {
    Tensor a = full(session, {1 << 24}, 1);
    for (int i = 0; i < 20; ++i) a = add(session, a, Arg(1.0));
    const Arg args[] = {a.get(), Arg(int64_t{0}), Arg(int64_t{0}), Arg(int64_t{1}), Arg(int64_t{1})};
    session.read(session.call(op("slice"), args)[0]);
  });
}
TEST(KilledEngine, EndsDownloads) {
  expect_one_clear_error([](Session& session) { session.read(full(session, {1 << 22}, 1)); });
}
TEST(KilledEngine, EndsUploads) {
  std::string bytes(16 << 20, 'x');
  expect_one_clear_error([&](Session& session) { session.upload(bytes, DType::kUInt8, {16 << 20}, Device()); });
}

TEST(PrivateEngine, StartsAndEndsWithItsSession) {
  unsetenv("TELETENSOR_ADDRESS");
  auto engine = std::make_unique<PrivateEngine>();
  pid_t pid = engine->pid();
  std::string folder = std::filesystem::path(engine->address().substr(5)).parent_path();
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
  {
    Address address = parse_address(engine->address());
    auto transport = std::make_unique<GrpcTransport>(address, "", TransferOptions(), std::move(engine));
    Ref<Session> session = Session::connect(std::move(transport), "test");
    EXPECT_EQ(read(*session, full(*session, {2}, 3)), (std::vector<float>{3, 3}));
  }
  EXPECT_NE(kill(pid, 0), 0);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(PrivateEngine, EndsWhenItsClientIsKilled) {
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  // A separate program: this test binary, running only the client part.
  pid_t client = fork();
  if (client == 0) {
    PrivateEngine engine;
    pid_t pid = engine.pid();
    if (write(said[1], &pid, sizeof(pid)) != sizeof(pid)) _exit(1);
    pause();
  }
  pid_t engine = 0;
  ASSERT_EQ(::read(said[0], &engine, sizeof(engine)), static_cast<ssize_t>(sizeof(engine)));
  EXPECT_EQ(kill(engine, 0), 0);
  kill(client, SIGKILL);
  waitpid(client, nullptr, 0);
  // The parent has exited, so init reaps the process; until then it may be a zombie, which still has a pid.
  auto running = [&] {
    std::error_code ignored;
    return std::filesystem::exists("/proc/" + std::to_string(engine) + "/exe", ignored) && !ignored;
  };
  for (int i = 0; i < 300 && running(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(running());
}

TEST(ForkedCopy, DoesNotEndSession) {
  Daemon daemon;
  Ref<Session> session = connect_to(daemon);
  Tensor a = full(*session, {2}, 3);
  session->synchronize();
  pid_t child = fork();
  if (child == 0) {
    bool refused = false;
    try {
      session->read(a);
    } catch (const Error& e) {
      refused = e.kind() == ErrorKind::kConnection && e.message().find("forked") != std::string::npos;
    }
    a = nullptr;
    session->close();
    session = nullptr;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(*session, a), (std::vector<float>{3, 3}));
}

TEST(PrivateEngine, ReportsMissingFiles) {
  setenv("TELETENSOR_DAEMON", "/no/such/program", 1);
  try {
    PrivateEngine engine;
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("/no/such/program"));
  }
  setenv("TELETENSOR_DAEMON", "/bin/false", 1);
  EXPECT_THROW(PrivateEngine(), Error);  // the daemon exits before it is ready
  unsetenv("TELETENSOR_DAEMON");
}

}  // namespace
}  // namespace tt::client::testing
