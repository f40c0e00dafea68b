#include "client/connection/private_engine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file_descriptor.h"
#include "client/connection/interruption.h"
#include "engine/schema/error.h"

extern char** environ;

namespace tt::client {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kStartTimeout = std::chrono::seconds(20);
constexpr int kClientDescriptor = 3;                           // descriptor of this process's pidfd in the engine
constexpr auto kStopTimeout = std::chrono::milliseconds(300);  // short, because the client may be exiting

bool is_program(const fs::path& path) { return access(path.c_str(), X_OK) == 0 && !fs::is_directory(path); }

// Returns the folder of the library or program that contains this code.
fs::path own_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&is_program), &info) == 0 || !info.dli_fname) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored).parent_path();
}

// The environment without options of teletensord that are for engines with several clients.
std::vector<char*> private_environment() {
  constexpr absl::string_view kShared[] = {"LISTEN",          "HTTP",   "PRINCIPALS", "AUDIT_LOG", "TLS_CLIENT_CA",
                                           "TLS_SELF_SIGNED", "ISOLATE"};
  std::vector<char*> variables;
  for (char** at = environ; *at != nullptr; ++at) {
    absl::string_view name = *at;
    const bool is_option = absl::ConsumePrefix(&name, "TELETENSOR_");
    name = name.substr(0, name.find('='));
    const bool is_shared = std::find(std::begin(kShared), std::end(kShared), name) != std::end(kShared);
    if (!is_option || (!is_shared && !absl::StartsWith(name, "WORKER_"))) variables.push_back(*at);
  }
  variables.push_back(nullptr);
  return variables;
}

// Returns `fd`, or closes `fd` and returns a copy, so that the result is above the descriptors that the engine
// inherits.
int above_standard(int fd) {
  if (fd < 0 || fd > kClientDescriptor) return fd;
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, kClientDescriptor + 1);
  ::close(fd);
  return copy;
}

bool make_pipe(FileDescriptor* read, FileDescriptor* write) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  read->reset(above_standard(ends[0]));
  write->reset(above_standard(ends[1]));
  return *read && *write;
}

// Write ends of engines' standard inputs, which a forked child of this process closes. Otherwise the child would keep
// the input open after this process exits. Further engines detect the exit of this process by its pidfd only.
std::atomic<int> closed_in_forked_child[16] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

void close_in_child() {
  for (std::atomic<int>& slot : closed_in_forked_child) {
    if (int fd = slot.exchange(-1); fd >= 0) ::close(fd);
  }
}

void close_in_forked_child(int fd) {
  static const int registered = pthread_atfork(nullptr, nullptr, &close_in_child);
  (void)registered;
  for (std::atomic<int>& slot : closed_in_forked_child) {
    int none = -1;
    if (slot.compare_exchange_strong(none, fd)) return;
  }
}

void keep_in_forked_child(int fd) {
  for (std::atomic<int>& slot : closed_in_forked_child) {
    int same = fd;
    if (slot.compare_exchange_strong(same, -1)) return;
  }
}

[[noreturn]] void fail_to_start(const std::string& why) {
  fail(ErrorKind::kConnection, "[connection] could not start an engine: ", why);
}

}  // namespace

std::string PrivateEngine::find_binary(const std::string& installed) {
  if (const char* named = std::getenv("TELETENSOR_DAEMON"); named && *named) {
    if (!is_program(named)) fail_to_start(std::string("TELETENSOR_DAEMON is not an executable file: ") + named);
    return named;
  }
  std::vector<fs::path> candidates;
  if (fs::path here = own_folder(); !here.empty()) {
    candidates = {here / "teletensord", here / "bin" / "teletensord"};
    if (!installed.empty()) candidates.push_back(installed);
    for (fs::path up = here; up.has_relative_path(); up = up.parent_path()) {
      candidates.push_back(up / "bin" / "teletensord");
      candidates.push_back(up / "build" / "bin" / "teletensord");
    }
  }
  const char* path = std::getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path ? path : "", ':', absl::SkipEmpty())) {
    candidates.push_back(fs::path(std::string(folder)) / "teletensord");
  }
  for (const fs::path& candidate : candidates) {
    if (is_program(candidate)) return candidate;
  }
  fail_to_start(
      "teletensord was found neither beside this library nor on the PATH; `pip install teletensor[engine]` installs "
      "it. "
      "Or set TELETENSOR_DAEMON to its path, or TELETENSOR_ADDRESS to the address of a running engine");
}

PrivateEngine::PrivateEngine(const std::string& installed) : owner_(getpid()) {
  std::string binary = find_binary(installed);
  try {
    start(binary);
  } catch (...) {
    stop();
    throw;
  }
}

void PrivateEngine::start(const std::string& binary) {
  FileDescriptor stdin_read, stdin_write, stdout_read, stdout_write;
  if (!make_pipe(&stdin_read, &stdin_write) || !make_pipe(&stdout_read, &stdout_write)) {
    fail_to_start(std::strerror(errno));
  }
  // Kernels before 5.3 and some sandboxes have no pidfd; only the pipe is used then.
  FileDescriptor self(above_standard(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))));

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, stdin_read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, stdout_write.get(), STDOUT_FILENO);
  if (self) posix_spawn_file_actions_adddup2(&actions, self.get(), kClientDescriptor);
  // The engine must not inherit other descriptors of this program.
  posix_spawn_file_actions_addclosefrom_np(&actions, self ? kClientDescriptor + 1 : kClientDescriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Starts a new process session, so that Ctrl-C in the terminal goes to the user's program only.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);

  const std::string client = std::to_string(kClientDescriptor);
  const char* arguments[] = {binary.c_str(), "--private", self ? "--client-fd" : nullptr, client.c_str(), nullptr};
  int error = posix_spawn(&pid_, binary.c_str(), &actions, &attributes, const_cast<char**>(arguments),
                          private_environment().data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    pid_ = -1;
    fail_to_start(binary + ": " + std::strerror(error));
  }
  input_ = stdin_write.release();
  close_in_forked_child(input_);
  stdout_write.reset();
  wait_until_ready(stdout_read.get());
}

void PrivateEngine::wait_until_ready(int output) {
  auto deadline = Clock::now() + kStartTimeout;
  std::string said;
  InterruptTimer timer;
  while (!find_ready_line(said)) {
    timer.check();
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0)
      fail_to_start(absl::StrCat("teletensord was not ready within ", kStartTimeout.count(), " s"));
    pollfd ready{output, POLLIN, 0};
    int count = poll(&ready, 1, static_cast<int>(std::min(left, timer.max_sleep()).count()));
    if (count == 0 || (count < 0 && errno == EINTR)) continue;
    if (count < 0) fail_to_start(std::strerror(errno));
    char buffer[512];
    ssize_t bytes = ::read(output, buffer, sizeof(buffer));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) fail_to_start("teletensord exited before it was ready; see its messages on standard error");
    said.append(buffer, static_cast<size_t>(bytes));
  }
}

// Finds "READY unix:PATH" in the output, which may also contain lines of a wrapper script.
bool PrivateEngine::find_ready_line(const std::string& said) {
  std::vector<absl::string_view> lines = absl::StrSplit(said, '\n');
  lines.pop_back();  // incomplete
  for (absl::string_view line : lines) {
    if (absl::ConsumePrefix(&line, "READY ")) return address_ = std::string(line), true;
  }
  return false;
}

void PrivateEngine::stop() noexcept {
  if (getpid() != owner_) return;
  if (input_ >= 0) {
    keep_in_forked_child(input_);
    ::close(input_);
  }
  input_ = -1;
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    auto deadline = Clock::now() + kStopTimeout;
    while (waitpid(pid_, nullptr, WNOHANG) == 0) {
      if (Clock::now() > deadline) kill(pid_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    pid_ = -1;
  }
  remove_folder();
}

// Removes the folder of an engine that was killed. An engine that exits normally removes its folder itself.
void PrivateEngine::remove_folder() noexcept {
  if (address_.empty()) return;
  const fs::path socket = address_.substr(std::strlen("unix:"));
  unlink(socket.c_str());
  rmdir(socket.parent_path().c_str());
  address_.clear();
}

}  // namespace tt::client
