#include "client/private_engine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "engine/rules/error.h"

extern char** environ;

namespace tt::client {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kStartPatience = std::chrono::seconds(20);
constexpr auto kStopPatience = std::chrono::milliseconds(300);  // it has nothing to keep, its caller wants to end

bool is_program(const fs::path& path) { return access(path.c_str(), X_OK) == 0 && !fs::is_directory(path); }

// The folder of the library or program that this code is in.
fs::path own_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&is_program), &info) == 0 || !info.dli_fname) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored).parent_path();
}

[[noreturn]] void fail_to_start(const std::string& why) {
  fail(ErrorKind::kConnection, "[connection] no engine could be started: ", why);
}

}  // namespace

std::string PrivateEngine::find_binary() {
  if (const char* named = std::getenv("TELETENSOR_DAEMON"); named && *named) {
    if (!is_program(named)) fail_to_start(std::string("TELETENSOR_DAEMON names no program: ") + named);
    return named;
  }
  std::vector<fs::path> places;
  if (fs::path here = own_folder(); !here.empty()) {
    places = {here / "teletensord", here / "bin" / "teletensord"};  // a wheel's, a build's
    for (fs::path up = here; up.has_relative_path(); up = up.parent_path()) {
      places.push_back(up / "bin" / "teletensord");
      places.push_back(up / "build" / "bin" / "teletensord");
    }
  }
  const char* path = std::getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path ? path : "", ':', absl::SkipEmpty())) {
    places.push_back(fs::path(std::string(folder)) / "teletensord");
  }
  for (const fs::path& place : places) {
    if (is_program(place)) return place;
  }
  fail_to_start(
      "teletensord is neither beside this library nor on the PATH; TELETENSOR_DAEMON can name it, "
      "TELETENSOR_ADDRESS an engine that runs");
}

PrivateEngine::PrivateEngine() : owner_(getpid()) {
  std::string binary = find_binary();
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  // A socket's path has at most 107 characters, so the deeper TMPDIR is not asked.
  std::string pattern = std::string(runtime && access(runtime, W_OK) == 0 ? runtime : "/tmp") + "/teletensor-XXXXXX";
  if (!mkdtemp(pattern.data())) fail_to_start(pattern + ": " + std::strerror(errno));
  directory_ = pattern;
  try {
    start(binary);
  } catch (...) {
    stop();
    throw;
  }
}

void PrivateEngine::start(const std::string& binary) {
  int input[2], output[2];
  if (pipe2(input, O_CLOEXEC) != 0) fail_to_start(std::strerror(errno));
  input_ = input[1];
  if (pipe2(output, O_CLOEXEC) != 0) {
    ::close(input[0]);
    fail_to_start(std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A session of its own: Ctrl-C in the user's terminal is the user's program's to handle.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);

  std::string listen = address();
  const char* arguments[] = {binary.c_str(), "--private", "--listen", listen.c_str(), nullptr};
  int error = posix_spawn(&pid_, binary.c_str(), &actions, &attributes, const_cast<char**>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(input[0]);
  ::close(output[1]);
  if (error != 0) {
    pid_ = -1;
    ::close(output[0]);
    fail_to_start(binary + ": " + std::strerror(error));
  }
  try {
    wait_until_ready(output[0]);
  } catch (...) {
    ::close(output[0]);
    throw;
  }
  ::close(output[0]);
}

void PrivateEngine::wait_until_ready(int output) {
  auto deadline = Clock::now() + kStartPatience;
  std::string said;
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{output, POLLIN, 0};
    int count = left > 0 ? poll(&ready, 1, static_cast<int>(left)) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_to_start("it did not get ready in time");
    char buffer[512];
    ssize_t bytes = ::read(output, buffer, sizeof(buffer));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) fail_to_start("it ended before it was ready; its messages say why");
    said.append(buffer, static_cast<size_t>(bytes));
    for (absl::string_view line : absl::StrSplit(said, '\n')) {
      if (absl::StartsWith(line, "READY")) return;
    }
  }
}

void PrivateEngine::stop() noexcept {
  if (getpid() != owner_) return;
  if (input_ >= 0) ::close(input_);
  input_ = -1;
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    auto deadline = Clock::now() + kStopPatience;
    while (waitpid(pid_, nullptr, WNOHANG) == 0) {
      if (Clock::now() > deadline) kill(pid_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    pid_ = -1;
  }
  if (!directory_.empty()) remove_directory();
}

void PrivateEngine::remove_directory() noexcept {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
  directory_.clear();
}

}  // namespace tt::client
