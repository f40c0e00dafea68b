// What a worker's process may not do: checked in child processes, which give it up for good.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include "server/workers/containment.h"
#include "server/workers/port_range.h"
#include "server/workers/syscall_filter.h"

namespace tt::server {
namespace {

// Runs `body` in a child with the filter; returns its result, or -1 if the child ended otherwise.
int contained(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (!begin_containment().ok()) _exit(100);
    if (!install_syscall_filter().ok()) _exit(101);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Returns the error of a call that must fail, or 0.
int error_of(long result) { return result == -1 ? errno : 0; }

TEST(SyscallFilter, RefusesToStartPrograms) {
  EXPECT_EQ(contained([] {
              char* const arguments[] = {const_cast<char*>("true"), nullptr};
              return error_of(execv("/bin/true", arguments));
            }),
            EPERM);
}

TEST(SyscallFilter, RefusesToStartProcesses) {
  EXPECT_EQ(contained([] {
              const pid_t child = fork();
              if (child == 0) _exit(0);
              return error_of(child);
            }),
            EPERM);
}

TEST(SyscallFilter, RefusesOtherProcesses) {
  EXPECT_EQ(contained([] { return error_of(kill(getppid(), 0)); }), EPERM);
  EXPECT_EQ(contained([] { return error_of(kill(-1, 0)); }), EPERM);
  EXPECT_EQ(contained([] { return error_of(ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr)); }), EPERM);
  EXPECT_EQ(contained([] { return error_of(prlimit(getppid(), RLIMIT_NOFILE, nullptr, nullptr)); }), EPERM);
}

TEST(SyscallFilter, RefusesOtherSocketsAndUsers) {
  EXPECT_EQ(contained([] { return error_of(socket(AF_PACKET, SOCK_RAW, 0)); }), EPERM);
  EXPECT_EQ(contained([] { return error_of(setuid(getuid())); }), EPERM);
}

TEST(SyscallFilter, AllowsWhatAnEngineDoes) {
  EXPECT_EQ(contained([] {
              int value = 0;
              std::thread([&value] { value = 1; }).join();
              const int file = open("/dev/null", O_RDWR | O_CLOEXEC);
              const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
              rlimit limit{};
              const bool limits = getrlimit(RLIMIT_NOFILE, &limit) == 0;
              return value == 1 && file >= 0 && socket_fd >= 0 && limits && kill(getpid(), 0) == 0 ? 0 : 1;
            }),
            0);
}

TEST(SyscallFilter, AppliesToThreadsThatExist) {
  EXPECT_EQ(contained([] {
              int error = 0;
              std::thread([&error] { error = error_of(setuid(getuid())); }).join();
              return error;
            }),
            EPERM);
}

TEST(Containment, GivesUpPrivileges) {
  EXPECT_EQ(
      contained([] {
        int signal = 0;
        prctl(PR_GET_PDEATHSIG, &signal);
        return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && prctl(PR_GET_DUMPABLE) == 0 && signal == SIGKILL ? 0 : 1;
      }),
      0);
}

TEST(PortRange, ParsesOnePortAndRanges) {
  EXPECT_EQ(PortRange::parse("")->first, 0);
  EXPECT_EQ(PortRange::parse("7100")->last, 7100);
  EXPECT_EQ(PortRange::parse("7100-7199")->first, 7100);
  EXPECT_EQ(PortRange::parse("7100-7199")->last, 7199);
  for (const char* wrong : {"0", "7199-7100", "1-65536", "a", "1-", "-1", "1-2-3"}) {
    EXPECT_FALSE(PortRange::parse(wrong).ok()) << wrong;
  }
}

TEST(PortRange, FindsPortsThatAreFree) {
  const auto port = free_port({}, {"127.0.0.1"});
  ASSERT_TRUE(port.ok());
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(*port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  const int number = static_cast<int>(*port);
  EXPECT_EQ(free_port({number, number}, {"127.0.0.1"}).status().code(), absl::StatusCode::kResourceExhausted);
  close(taken);
  EXPECT_EQ(*free_port({number, number}, {"127.0.0.1"}), *port);
}

}  // namespace
}  // namespace tt::server
