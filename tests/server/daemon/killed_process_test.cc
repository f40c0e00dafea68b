// Killed processes: the engine frees all memory of a killed client, and a client of a killed engine fails within a
// second.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <thread>

#include "proto/wire.h"
#include "teletensor/v1/admin.grpc.pb.h"
#include "tests/server/daemon.h"

extern char** environ;

namespace tt::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Daemon;

// A busy_client, after it has printed "busy".
class BusyClient {
 public:
  explicit BusyClient(const Daemon& daemon, const char* mode = nullptr) {
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(error_, O_CLOEXEC) != 0) return;
    setenv("TELETENSOR_TOKEN", daemon.token().c_str(), 1);
    std::string address = "unix:" + daemon.socket();
    const char* argv[] = {TT_BUSY_CLIENT, address.c_str(), mode, nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, error_[1], 2);
    EXPECT_EQ(posix_spawn(&pid_, TT_BUSY_CLIENT, &actions, nullptr, const_cast<char**>(argv), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(error_[1]);
    char word[4];
    is_busy_ = ::read(out[0], word, sizeof word) == sizeof word;
    close(out[0]);
  }
  ~BusyClient() { kill(); }

  bool is_busy() const { return is_busy_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // The exit code and the output; -1 if the client does not exit in time.
  int exit_code(milliseconds timeout, std::string* said) {
    auto deadline = steady_clock::now() + timeout;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (steady_clock::now() > deadline) return -1;
      std::this_thread::sleep_for(milliseconds(1));
    }
    pid_ = -1;
    std::array<char, 4096> text;
    ssize_t got = ::read(error_[0], text.data(), text.size());
    said->assign(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int error_[2] = {-1, -1};
  bool is_busy_ = false;
};

v1::StatusReply status_of(const Daemon& daemon) {
  grpc::ClientContext context;
  daemon.authorize(&context);
  v1::StatusReply reply;
  EXPECT_TRUE(v1::Admin::NewStub(daemon.channel())->Status(&context, {}, &reply).ok());
  return reply;
}

TEST(KilledProcessTest, KilledClientFreesItsMemory) {
  Daemon daemon;  // with a lease of a minute, so that the lease does not free the memory
  std::mt19937 random(7);
  for (int death = 0; death < 8; ++death) {
    BusyClient client(daemon);
    ASSERT_TRUE(client.is_busy());
    std::this_thread::sleep_for(milliseconds(random() % 40));
    client.kill();
    auto deadline = steady_clock::now() + milliseconds(10000);
    v1::StatusReply status = status_of(daemon);
    // A transfer in progress may outlive its session briefly.
    auto holds = [&] { return status.sessions_size() != 0 || status.devices(0).memory().allocated() != 0; };
    while (holds() && steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(5));
      status = status_of(daemon);
    }
    EXPECT_EQ(status.sessions_size(), 0) << "death " << death;
    EXPECT_EQ(status.devices(0).memory().allocated(), 0u) << "death " << death;
  }
}

TEST(KilledProcessTest, KilledClientsQueueIsDropped) {
  Daemon daemon;
  BusyClient client(daemon, "queue");
  ASSERT_TRUE(client.is_busy());
  client.kill();
  auto deadline = steady_clock::now() + milliseconds(30000);
  v1::StatusReply status = status_of(daemon);
  auto holds = [&] { return status.sessions_size() != 0 || status.devices(0).memory().allocated() != 0; };
  while (holds() && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(20));
    status = status_of(daemon);
  }
  EXPECT_EQ(status.sessions_size(), 0);
  EXPECT_EQ(status.devices(0).memory().allocated(), 0u);
}

TEST(KilledProcessTest, KilledEngineIsConnectionError) {
  std::mt19937 random(11);
  for (int death = 0; death < 8; ++death) {
    Daemon daemon;
    BusyClient client(daemon);
    ASSERT_TRUE(client.is_busy());
    std::this_thread::sleep_for(milliseconds(random() % 40));
    auto killed = steady_clock::now();
    daemon.signal(SIGKILL);
    std::string said;
    EXPECT_EQ(client.exit_code(milliseconds(5000), &said), 3) << "death " << death;
    std::chrono::duration<double> took = steady_clock::now() - killed;
    EXPECT_LT(took.count(), 20.0) << "death " << death;  // detects hangs; does not measure the delay
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
}

}  // namespace
}  // namespace tt::server
