#include "tests/server/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

extern char** environ;

namespace tt::server::testing {
namespace {

constexpr std::chrono::seconds kStartTimeout{10};

bool accepts(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path.c_str(), sizeof name.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  bool connected = connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0;
  close(fd);
  return connected;
}

std::string first_word(const std::filesystem::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "daemon-test-XXXXXX").native();
  path_ = mkdtemp(pattern.data());
}
TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

Daemon::Daemon(std::vector<std::string> flags, int descriptors) {
  std::vector<std::string> words;
  if (descriptors != 0) words = {"/bin/sh", "-c", "ulimit -n " + std::to_string(descriptors) + " && exec \"$@\"", "sh"};
  words.insert(words.end(), {TT_DAEMON, "--listen", "unix:" + socket(), "--token-file", folder_.path() / "token"});
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int input[2];
  if (pipe2(input, O_CLOEXEC) != 0) return;
  stdin_ = input[1];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], 0);
  std::string out = folder_.path() / "out", err = folder_.path() / "err";
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  while (!accepts(socket()) && std::chrono::steady_clock::now() < deadline) {
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Daemon::~Daemon() {
  close_stdin();
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string Daemon::token() const { return first_word(folder_.path() / "token"); }
std::string Daemon::admin_token() const { return first_word(folder_.path() / "admin-token"); }

int Daemon::port() const {
  const std::string prefix = " 127.0.0.1:";
  auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  while (std::chrono::steady_clock::now() < deadline) {  // the daemon listens before it logs the address
    const std::string log = standard_error();
    const size_t found = log.find(prefix);
    if (found != std::string::npos) return std::atoi(log.c_str() + found + prefix.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return 0;
}

uint64_t Daemon::resident_bytes() const {
  std::ifstream statm("/proc/" + std::to_string(pid_) + "/statm");
  uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::shared_ptr<grpc::Channel> Daemon::channel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket(), grpc::InsecureChannelCredentials(), arguments);
}

void Daemon::authorize(grpc::ClientContext* context) const {
  context->AddMetadata("authorization", "Bearer " + token());
}

void Daemon::administer(grpc::ClientContext* context) const {
  context->AddMetadata("authorization", "Bearer " + admin_token());
}

void Daemon::signal(int number) const { kill(pid_, number); }

void Daemon::close_stdin() {
  if (stdin_ >= 0) close(stdin_);
  stdin_ = -1;
}

int Daemon::exit_code(std::chrono::milliseconds timeout) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string Daemon::standard_output() const { return read("out"); }
std::string Daemon::standard_error() const { return read("err"); }

std::string Daemon::read(const char* name) const {
  std::ifstream file(folder_.path() / name);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tt::server::testing
