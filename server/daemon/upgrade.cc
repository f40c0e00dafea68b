#include "server/daemon/upgrade.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "distributed/group_image.h"
#include "engine/schema/error.h"
#include "server/daemon/image_pipe.h"
#include "server/daemon/operator_folder.h"
#include "server/daemon/prepared_memory.h"
#include "server/session/session_image.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

using Clock = std::chrono::steady_clock;

// The variable's value has a character per listening socket: '1' if the daemon itself had opened it, else '0'; 'H' for
// those of HTTP, which follow.
constexpr char kVariable[] = "TELETENSOR_TAKEOVER";
// What memory_in_use() returned in the old process. A version that does not know it needs more time for the sessions.
constexpr char kMemoryVariable[] = "TELETENSOR_TAKEOVER_MEMORY";
// What loaded_operators() returned in the old process.
constexpr char kOperatorsVariable[] = "TELETENSOR_TAKEOVER_OPERATORS";
// What Options::served() returned in the old process.
constexpr char kServedVariable[] = "TELETENSOR_TAKEOVER_MODELS";
constexpr int kImages = 3, kAnswers = 4, kFirstSocket = 5;
constexpr size_t kMaxSockets = 64;
constexpr int kPipeBytes = 1 << 20;

// On the first pipe: a session's image follows; the image of the state that no session owns follows; serve.
constexpr char kSession = 'S', kShared = 'P', kServe = 'C';
// On the second pipe: ready for images; an image was read. A message of an error follows kFailed until the pipe's end.
constexpr char kReady = 'R', kAdopted = 'A', kFailed = 'F';

// How long a session is waited for at a time, while others are waiting too.
constexpr std::chrono::milliseconds kTurn{20};
// For which members of process groups continue, if one of them cannot be held.
constexpr std::chrono::milliseconds kGroupPause{7};
// For the new process to obtain memory, as a part of Options::start_time.
constexpr std::chrono::seconds kPrepareTime{40};
// For the new process to read an image, without progress of the writer.
constexpr std::chrono::seconds kAnswerTime{120};
// For the reply of the call that has started the upgrade to leave this process.
constexpr std::chrono::milliseconds kReplyTime{50};

}  // namespace

// The new process, which is killed unless it has been released.
class Upgrade::Successor {
 public:
  ~Successor() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  absl::Status start(const Options& options, const std::vector<Listener::Socket>& sockets,
                     const ServiceManager& manager) {
    if (sockets.size() + options.http.size() > kMaxSockets)
      return absl::FailedPreconditionError("the daemon listens on too many addresses");
    int images[2], answers[2];
    if (pipe2(images, O_CLOEXEC) != 0) return cannot_start(errno);
    images_.reset(images[1]);
    const FileDescriptor images_end(images[0]);
    if (pipe2(answers, O_CLOEXEC) != 0) return cannot_start(errno);
    answers_.reset(answers[0]);
    const FileDescriptor answers_end(answers[1]);
    fcntl(images_.get(), F_SETPIPE_SZ, kPipeBytes);  // a smaller pipe is only slower

    // Copies above the numbers that the new process gets, so that none is overwritten before it is copied.
    std::vector<FileDescriptor> passed;
    std::string kinds;
    const auto pass = [&](int fd) {
      passed.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, kFirstSocket + static_cast<int>(kMaxSockets)));
      return static_cast<bool>(passed.back());
    };
    bool copied = pass(images_end.get()) && pass(answers_end.get());
    for (const Listener::Socket& socket : sockets) {
      copied = copied && pass(socket.fd);
      kinds += socket.is_own ? '1' : '0';
    }
    for (const int socket : options.http) {
      copied = copied && pass(socket);
      kinds += 'H';
    }
    if (!copied) return cannot_start(errno);

    std::vector<std::string> variables;
    for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
    variables.push_back(absl::StrCat(kVariable, "=", kinds));
    variables.push_back(absl::StrCat(kMemoryVariable, "=", memory_in_use()));
    variables.push_back(absl::StrCat(kOperatorsVariable, "=", loaded_operators()));
    if (options.served) variables.push_back(absl::StrCat(kServedVariable, "=", options.served()));
    if (manager.is_present()) variables.push_back(absl::StrCat("NOTIFY_SOCKET=", manager.address()));
    std::vector<char*> environment, arguments;
    for (std::string& each : variables) environment.push_back(each.data());
    environment.push_back(nullptr);
    for (const std::string& each : options.command) arguments.push_back(const_cast<char*>(each.c_str()));
    arguments.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (size_t i = 0; i < passed.size(); ++i) {
      posix_spawn_file_actions_adddup2(&actions, passed[i].get(), kImages + static_cast<int>(i));
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, kImages + static_cast<int>(passed.size()));
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    // Signals that the new process handles wait until it does.
    sigset_t handled;
    sigemptyset(&handled);
    for (int signal : {SIGTERM, SIGINT, SIGUSR2}) sigaddset(&handled, signal);
    posix_spawnattr_setsigmask(&attributes, &handled);
    pid_t pid = -1;
    const int error =
        posix_spawn(&pid, options.command[0].c_str(), &actions, &attributes, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) return cannot_start(error);
    pid_ = pid;
    return absl::OkStatus();
  }

  int images() const { return images_.get(); }
  pid_t pid() const { return pid_; }
  // Waits for an answer. Returns an error if it is another one.
  absl::Status await(char expected, std::chrono::milliseconds timeout) const {
    const auto deadline = Clock::now() + timeout;
    char answer = 0;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd watched{answers_.get(), POLLIN, 0};
      const int ready = poll(&watched, 1, static_cast<int>(std::max<int64_t>(left, 0)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return absl::FailedPreconditionError("the new process does not answer");
      const ssize_t got = read(answers_.get(), &answer, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return absl::FailedPreconditionError("the new process has ended; its output has the reason");
      break;
    }
    if (answer == expected) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("the new process has failed: ", rest()));
  }
  // Lets the process serve. It is not killed any more.
  bool release() {
    const bool written = write_all(images_.get(), &kServe, 1);
    if (written) pid_ = -1;
    return written;
  }

 private:
  static absl::Status cannot_start(int error) {
    return absl::FailedPreconditionError(absl::StrCat("cannot start the new process: ", std::strerror(error)));
  }
  // The message after kFailed.
  std::string rest() const {
    std::string text;
    char piece[256];
    ssize_t got;
    while (text.size() < 4096 && (got = read(answers_.get(), piece, sizeof piece)) > 0) {
      text.append(piece, static_cast<size_t>(got));
    }
    return text;
  }

  pid_t pid_ = -1;
  FileDescriptor images_, answers_;
};

namespace {

using Held = std::vector<std::shared_ptr<Session>>;

std::string named(const Session& session, absl::string_view reason) {
  return absl::StrCat("session ", session.id(), " of ", session.client(), ": ", reason);
}

// A rank that is held keeps the others in a collective that it has not entered. If some session is still waited for,
// lets members of groups continue for a moment, and waits for them again.
void release_groups(Held* held, Held* waiting) {
  if (waiting->empty()) return;
  const auto first = std::stable_partition(held->begin(), held->end(), [](const std::shared_ptr<Session>& session) {
    return session->group_members().empty();
  });
  if (first == held->end()) return;
  for (auto at = first; at != held->end(); ++at) {
    (*at)->release();
    waiting->push_back(std::move(*at));
  }
  held->erase(first, held->end());
  std::this_thread::sleep_for(kGroupPause);
}

// Moves the sessions whose groups cannot be passed on now from `held` to `waiting`. Returns their reasons.
std::vector<std::string> refuse_groups(Held* held, Held* waiting) {
  std::vector<distributed::GroupMember> members;
  std::vector<size_t> counts;
  for (const auto& session : *held) {
    std::vector<distributed::GroupMember> own = session->group_members();
    counts.push_back(own.size());
    members.insert(members.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  }
  const std::vector<std::string> whys = distributed::why_not_passed(members);
  std::vector<std::string> reasons;
  Held passed;
  size_t at = 0;
  for (size_t i = 0; i < held->size(); ++i) {
    std::string why;
    for (size_t end = at + counts[i]; at < end; ++at) why = why.empty() ? whys[at] : why;
    std::shared_ptr<Session>& session = (*held)[i];
    if (why.empty()) {
      passed.push_back(std::move(session));
      continue;
    }
    reasons.push_back(named(*session, why));
    session->release();
    waiting->push_back(std::move(session));
  }
  *held = std::move(passed);
  return reasons;
}

}  // namespace

absl::StatusOr<v1::UpgradeReply> Upgrade::run(const v1::UpgradeRequest& request) {
  MutexLock lock(mutex_);
  if (done()) return absl::FailedPreconditionError("the engine was replaced already");
  if (!options_.refusal.empty()) return absl::FailedPreconditionError(options_.refusal);
  absl::StatusOr<v1::UpgradeReply> reply = run_once(request);
  if (!reply.ok()) {
    spdlog::warn("the upgrade failed, and the engine continues: {}", std::string(reply.status().message()));
    return reply;
  }
  spdlog::info("process {} has taken over {} sessions after a pause of {:.3f} s", reply->pid(), reply->sessions(),
               reply->pause_seconds());
  for (const std::string& lost : reply->lost()) spdlog::warn("lost by the upgrade: {}", lost);
  done_.store(true, std::memory_order_release);
  std::thread([exit = exit_] {
    std::this_thread::sleep_for(kReplyTime);
    exit();
  }).detach();
  return reply;
}

absl::StatusOr<v1::UpgradeReply> Upgrade::run_once(const v1::UpgradeRequest& request) {
  Successor successor;
  if (absl::Status status = successor.start(options_, listener_.sockets(), manager_); !status.ok()) return status;
  if (absl::Status status = successor.await(kReady, options_.start_time); !status.ok()) return status;

  const auto wait = std::chrono::duration<double>(std::clamp(request.wait_seconds(), 0.0, 3600.0));
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
  sessions_.freeze(true);  // first: it waits for an image that is being written to the disk
  listener_.pause();
  std::vector<std::shared_ptr<Session>> held;
  bool failed = true;
  const absl::Cleanup give_back = [&] {
    if (!failed) return;
    for (const auto& session : held) session->release();
    sessions_.freeze(false);
    listener_.resume();
  };
  v1::UpgradeReply reply;
  const auto paused = Clock::now();
  std::vector<std::shared_ptr<Session>> waiting = sessions_.all();
  std::vector<std::string> reasons;
  for (bool last = false; !waiting.empty() && !last;) {
    last = Clock::now() >= deadline;
    release_groups(&held, &waiting);
    std::vector<std::shared_ptr<Session>> again;
    reasons.clear();
    for (std::shared_ptr<Session>& session : waiting) {
      const absl::Status status = session->hold(Clock::now() + kTurn, /*is_passed=*/true);
      if (status.ok()) {
        held.push_back(std::move(session));
      } else if (!absl::IsNotFound(status)) {
        reasons.push_back(absl::StrCat("session ", session->id(), " of ", session->client(), ": ", status.message()));
        again.push_back(std::move(session));
      }
    }
    waiting = std::move(again);
    if (!waiting.empty() && !last) continue;
    for (std::string& reason : refuse_groups(&held, &waiting)) reasons.push_back(std::move(reason));
  }
  for (const std::string& reason : reasons) reply.add_lost(reason);
  if (reply.lost_size() != 0 && !request.force()) {
    return absl::FailedPreconditionError(absl::StrCat("cannot pass on ", absl::StrJoin(reply.lost(), "; ")));
  }

  ImageBlocks blocks;
  absl::flat_hash_set<uint64_t> passed;
  for (const auto& session : held) {
    const size_t earlier = blocks.size();
    PipeSink sink(successor.images(), kSession);
    try {
      session->write_image(&sink, &blocks);
    } catch (const Error& error) {
      if (sink.bytes() == 0) {  // the session cannot be part of an image; the new process has received nothing
        reply.add_lost(absl::StrCat("session ", session->id(), " of ", session->client(), ": ", error.message()));
        blocks.truncate(earlier);
        if (request.force()) continue;
        return absl::FailedPreconditionError(absl::StrCat("cannot pass on ", reply.lost(0)));
      }
      const absl::Status answer = successor.await(kAdopted, std::chrono::seconds(1));
      return absl::FailedPreconditionError(
          absl::StrCat("session ", session->id(), ": ", answer.ok() ? error.message() : answer.message()));
    }
    if (absl::Status status = successor.await(kAdopted, kAnswerTime); !status.ok()) return status;
    passed.insert(session->id());
    reply.set_sessions(reply.sessions() + 1);
    reply.set_bytes(reply.bytes() + sink.bytes());
  }
  PipeSink shared(successor.images(), kShared);
  try {
    sessions_.write_shared([&](uint64_t session) { return passed.contains(session); }, &blocks, &shared);
  } catch (const Error& error) {
    const absl::Status answer = successor.await(kAdopted, std::chrono::seconds(1));
    return absl::FailedPreconditionError(
        absl::StrCat("cannot pass on what sessions share: ", answer.ok() ? error.message() : answer.message()));
  }
  if (absl::Status status = successor.await(kAdopted, kAnswerTime); !status.ok()) return status;
  reply.set_bytes(reply.bytes() + shared.bytes());
  reply.set_pid(successor.pid());
  for (const auto& session : held) session->end_stores();
  if (!successor.release()) return absl::FailedPreconditionError("the new process has ended");
  failed = false;
  reply.set_pause_seconds(std::chrono::duration<double>(Clock::now() - paused).count());
  manager_.replaced_by(static_cast<pid_t>(reply.pid()));
  return reply;
}

absl::StatusOr<std::unique_ptr<Takeover>> Takeover::from_environment() {
  const char* const value = std::getenv(kVariable);
  if (value == nullptr) return nullptr;
  const std::string kinds = value;
  unsetenv(kVariable);
  std::unique_ptr<Takeover> takeover(new Takeover);
  if (const char* const memory = std::getenv(kMemoryVariable)) takeover->memory_ = memory;
  unsetenv(kMemoryVariable);
  if (const char* const operators = std::getenv(kOperatorsVariable)) takeover->operators_ = operators;
  unsetenv(kOperatorsVariable);
  if (const char* const served = std::getenv(kServedVariable)) takeover->served_ = served;
  unsetenv(kServedVariable);
  for (int fd : {kImages, kAnswers}) {
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
      return absl::InvalidArgumentError(absl::StrCat(kVariable, " is set, but descriptor ", fd, " is not open"));
    }
  }
  takeover->images_.reset(kImages);
  takeover->answers_.reset(kAnswers);
  for (size_t i = 0; i < kinds.size() && i < kMaxSockets; ++i) {
    absl::StatusOr<InheritedSocket> socket = take_socket(kFirstSocket + static_cast<int>(i), "");
    if (!socket.ok()) return socket.status();
    socket->is_own = kinds[i] == '1';
    (kinds[i] == 'H' ? takeover->http_sockets_ : takeover->sockets_).push_back(*std::move(socket));
  }
  return takeover;
}

namespace {

// The old process has ended its stores, and the sessions continue whatever becomes of their groups.
void resume_groups(Session& session) {
  try {
    session.resume_groups();
  } catch (const Error& error) {
    spdlog::error("session {}: its process groups do not continue: {}", session.id(), error.message());
  }
}

}  // namespace

absl::Status Takeover::run(Sessions& sessions, const Auth& auth, absl::FunctionRef<absl::Status()> prepare) {
  const auto fail_with = [&](const absl::Status& status) {
    const std::string text = kFailed + std::string(status.message());
    write_all(answers_.get(), text.data(), text.size());
    answers_.reset();
    return status;
  };
  if (absl::Status status = check_loaded_operators(operators_); !status.ok()) return fail_with(status);
  if (absl::Status status = prepare(); !status.ok()) return fail_with(status);
  std::optional<PreparedMemory> memory;
  memory.emplace(memory_, Clock::now() + kPrepareTime);
  spdlog::debug("obtained {} bytes of memory for the sessions", memory->bytes());
  if (!write_all(answers_.get(), &kReady, 1)) return absl::CancelledError("the old process has ended");
  PipeSource source(images_.get());
  ImageBlocks blocks;
  try {
    for (char command = 0;;) {
      source.read(&command, 1);
      if (command == kServe) {
        for (const std::shared_ptr<Session>& session : sessions.all()) resume_groups(*session);
        return absl::OkStatus();
      }
      memory.reset();
      if (command == kShared) {
        const auto named = [&](absl::string_view name) { return auth.named(name); };
        if (absl::Status status = sessions.adopt_shared(named, &blocks, &source); !status.ok())
          return fail_with(status);
        check(write_all(answers_.get(), &kAdopted, 1), "the old process has ended");
        continue;
      }
      check(command == kSession, "expected an image of a session");
      const SessionRecord record = read_record(&source);
      const absl::StatusOr<Principal> principal = auth.named(record.principal);
      if (!principal.ok()) return fail_with(principal.status());
      if (absl::Status status = sessions.adopt(record, *principal, &source, &blocks); !status.ok()) {
        return fail_with(status);
      }
      check(write_all(answers_.get(), &kAdopted, 1), "the old process has ended");
    }
  } catch (const Error& error) {
    return fail_with(absl::InternalError(error.message()));
  }
}

}  // namespace tt::server
