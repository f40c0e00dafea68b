// The owner of a unix socket: the client sends nothing to another user's engine.
#include "client/connection/peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "client/admin.h"
#include "client/connect.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kStranger = 65534;  // the user `nobody`

class PeerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/peer-XXXXXX";
    ASSERT_TRUE(mkdtemp(folder_.data()));
    unsetenv("TELETENSOR_ENGINE_USER");
  }
  void TearDown() override {
    unsetenv("TELETENSOR_ENGINE_USER");
    if (listener_ >= 0) close(listener_);
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }
  std::string socket() const { return folder_ + "/engine.sock"; }
  // Accepts connections on a socket whose listen() was called with the credentials of `user`.
  void listen_as(uid_t user) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    socket().copy(name.sun_path, sizeof(name.sun_path) - 1);
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    if (user == geteuid()) {
      ASSERT_EQ(listen(listener_, 8), 0);
      return;
    }
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(setuid(user) == 0 && listen(listener_, 8) == 0 && pause() ? 0 : 1);
    }
    for (int i = 0; i < 5000; ++i) {
      absl::StatusOr<int> probe = connect_unix(socket());
      if (!probe.ok()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      close(*probe);
      int accepted = accept(listener_, nullptr, nullptr);
      if (accepted >= 0) close(accepted);
      return;
    }
    FAIL() << "cannot listen";
  }
  // The number of bytes that the next client sends before it disconnects.
  size_t bytes_sent_to_listener() {
    int accepted = accept(listener_, nullptr, nullptr);
    if (accepted < 0) return 0;
    size_t bytes = 0;
    char buffer[4096];
    for (pollfd ready{accepted, POLLIN, 0}; poll(&ready, 1, 2000) > 0;) {
      ssize_t got = read(accepted, buffer, sizeof buffer);
      if (got <= 0) break;
      bytes += static_cast<size_t>(got);
    }
    close(accepted);
    return bytes;
  }

  std::string folder_;
  int listener_ = -1;
  pid_t child_ = -1;
};

TEST_F(PeerTest, TrustsItsOwnUser) {
  listen_as(geteuid());
  absl::StatusOr<int> fd = connect_unix(socket());
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_TRUE(check_peer(*fd, "unix:there").ok());
  close(*fd);
}

TEST_F(PeerTest, RejectsEngineOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "requires root to change the user";
  listen_as(kStranger);
  try {
    connect({.address = "unix:" + socket(), .token = "secret"});
    ADD_FAILURE() << "the connection was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConnection);
    EXPECT_THAT(error.message(), HasSubstr("uid 65534"));
    EXPECT_THAT(error.message(), HasSubstr("TELETENSOR_ENGINE_USER"));
  }
  EXPECT_EQ(bytes_sent_to_listener(), 0u);
  EXPECT_THROW(Admin("unix:" + socket(), "secret").status(), Error);
  EXPECT_EQ(bytes_sent_to_listener(), 0u);
}

TEST_F(PeerTest, TrustsUsersByNameAndId) {
  if (geteuid() != 0) GTEST_SKIP() << "requires root to change the user";
  listen_as(kStranger);
  absl::StatusOr<int> fd = connect_unix(socket());
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(check_peer(*fd, "unix:there").code(), absl::StatusCode::kPermissionDenied);
  for (const char* users : {"65534", "nobody", "daemon, 65534"}) {
    setenv("TELETENSOR_ENGINE_USER", users, 1);
    EXPECT_TRUE(check_peer(*fd, "unix:there").ok()) << users;
  }
  setenv("TELETENSOR_ENGINE_USER", "daemon", 1);
  EXPECT_EQ(check_peer(*fd, "unix:there").code(), absl::StatusCode::kPermissionDenied);
  setenv("TELETENSOR_ENGINE_USER", "no such user", 1);
  EXPECT_EQ(check_peer(*fd, "unix:there").code(), absl::StatusCode::kInvalidArgument);
  close(*fd);
}

TEST_F(PeerTest, MissingSocketIsUnavailable) {
  EXPECT_TRUE(absl::IsUnavailable(connect_unix(socket()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(connect_unix(std::string(200, 'x')).status()));
}

}  // namespace
}  // namespace tt::client
