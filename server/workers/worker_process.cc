#include "server/workers/worker_process.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

constexpr char kSelf[] = "/proc/self/exe";
// gRPC requires the name of a channel's target; nothing resolves it.
constexpr char kTarget[] = "ipv4:127.0.0.1:1";

// A worker that a fault or a client has taken over must not exhaust the engine's memory.
constexpr int kMaxReplyBytes = 64 << 20;

int pidfd_of(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// Returns `fd`, or a copy of it above the descriptors that the child gets; `fd` is closed then.
int above_inherited(int fd) {
  if (fd < 0 || fd > WorkerProcess::kEngine) return fd;
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, WorkerProcess::kEngine + 1);
  close(fd);
  return copy;
}

absl::Status cannot_start(int error) {
  return absl::UnavailableError(absl::StrCat("cannot start a worker: ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const std::vector<std::string>& arguments) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return cannot_start(errno);
  FileDescriptor own(above_inherited(ends[0])), inherited(above_inherited(ends[1]));
  if (!own || !inherited || fcntl(own.get(), F_SETFL, O_NONBLOCK) != 0) return cannot_start(errno);
  const FileDescriptor engine(above_inherited(pidfd_of(getpid())));

  std::vector<char*> argv{const_cast<char*>("teletensord")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  const std::string engine_number = absl::StrCat(kEngine);
  for (const char* each : {"--client-fd", engine_number.c_str()}) {
    if (engine) argv.push_back(const_cast<char*>(each));
  }
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, inherited.get(), kControl);
  if (engine) posix_spawn_file_actions_adddup2(&actions, engine.get(), kEngine);
  posix_spawn_file_actions_addclosefrom_np(&actions, engine ? kEngine + 1 : kEngine);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A session of its own: Ctrl-C in the engine's terminal is the engine's alone, which then ends its workers.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  // Signals that the worker handles wait until it does.
  sigset_t handled;
  sigemptyset(&handled);
  sigaddset(&handled, SIGTERM);
  sigaddset(&handled, SIGHUP);
  posix_spawnattr_setsigmask(&attributes, &handled);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, kSelf, &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return cannot_start(error);
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(pid, own.release()));
}

WorkerProcess::WorkerProcess(pid_t pid, int control) : pid_(pid), pidfd_(pidfd_of(pid)) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomInsecureChannelFromFd(kTarget, control, arguments);
  worker_ = v1::Worker::NewStub(channel);
  admin_ = v1::Admin::NewStub(channel);
}

WorkerProcess::~WorkerProcess() {
  if (ended_) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool WorkerProcess::has_ended() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

std::string WorkerProcess::how_it_ended() const {
  if (WIFSIGNALED(status_)) return absl::StrCat("signal ", WTERMSIG(status_), " (", strsignal(WTERMSIG(status_)), ")");
  return absl::StrCat("exit code ", WEXITSTATUS(status_));
}

bool WorkerProcess::ended_well() const { return WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }

void WorkerProcess::send_signal(int signal) {
  if (!ended_) kill(pid_, signal);
}

}  // namespace tt::server
