#include "server/workers/workers.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/random_key.h"
#include "server/rpc/admissions.h"
#include "server/workers/worker_service.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

// A client waits for 10 seconds for the answer to its first Hello.
constexpr std::chrono::milliseconds kStartTimeout{8'000};
// Of a worker that has answered before. Short, because a call of place() occupies one of the engine's slots for Hello.
constexpr std::chrono::milliseconds kAdmitTimeout{2'000};
// Simultaneous calls of place() per worker: less than half of those slots, so that a worker that hangs does not use up
// the slots of the other principals.
constexpr int kMaxAdmitting = 24;
// A client opens its session right after the answer.
constexpr std::chrono::milliseconds kKeyLifetime{30'000};
constexpr std::chrono::milliseconds kRevokeTimeout{2'000};
constexpr std::chrono::milliseconds kCheckInterval{500};
constexpr std::chrono::milliseconds kCheckTimeout{200};
// How often the ends of workers are checked if the kernel does not report them.
constexpr std::chrono::milliseconds kPollInterval{50};
// After kMaxFaults, each less than kFaultWindow after the one before, workers start at increasing intervals.
constexpr int kMaxFaults = 3;
constexpr std::chrono::milliseconds kFaultWindow{60'000}, kFirstPause{1'000}, kMaxPause{30'000};
constexpr size_t kMaxLost = 256;

uint64_t random_number() {
  uint64_t number = 0;
  return getrandom(&number, sizeof number, 0) == sizeof number ? number : 0;
}

void set_deadline(grpc::ClientContext* context, std::chrono::milliseconds timeout) {
  context->set_deadline(std::chrono::system_clock::now() + timeout);
}

}  // namespace

Workers::Workers(Options options)
    : options_(std::move(options)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] { run(); }) {}

Workers::~Workers() { stop(); }

void Workers::wake() const { eventfd_write(wake_.get(), 1); }

absl::StatusOr<Workers::EntryPointer> Workers::worker_of(const Principal& principal) {
  if (closed_) return absl::UnavailableError("the engine is shutting down");
  for (const EntryPointer& each : entries_) {
    if (each->principal == principal.name && !each->ending) return each;
  }
  if (const auto found = faults_.find(principal.name); found != faults_.end()) {
    const Faults& faults = found->second;
    const auto since = Clock::now() - faults.last;
    if (since >= kFaultWindow) {
      faults_.erase(found);
    } else if (faults.count >= kMaxFaults) {
      const auto pause = std::min(kMaxPause, kFirstPause * (1 << std::min(faults.count - kMaxFaults, 10)));
      if (since < pause) {
        return absl::UnavailableError(absl::StrCat(
            "the worker of ", principal.name, " has ended ", faults.count, " times by a fault; try again in ",
            std::chrono::ceil<std::chrono::seconds>(pause - since).count(), " s"));
      }
    }
  }
  auto entry = std::make_shared<Entry>();
  entry->principal = principal.name;
  entry->number = random_number();
  if (entry->number == 0) return absl::UnavailableError("cannot start a worker: getrandom failed");
  entries_.push_back(entry);
  wake();
  return entry;
}

absl::Status Workers::place(const Principal& principal, bool by_socket, v1::HelloReply* reply) {
  EntryPointer entry;
  {
    MutexLock lock(mutex_);
    absl::StatusOr<EntryPointer> found = worker_of(principal);
    if (!found.ok()) return found.status();
    entry = *std::move(found);
    if (entry->admitting >= kMaxAdmitting) {
      return absl::UnavailableError(
          absl::StrCat(principal.name, " is opening ", kMaxAdmitting, " sessions; try again"));
    }
    ++entry->admitting;
    ++entry->admissions;
    entry->limits = principal;
    changed_.wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return entry->process != nullptr || !entry->failure.ok();
    });
    reply->set_session_id(++last_session_);
  }
  absl::Status status = entry->process ? admit(*entry, principal, reply) : entry->failure;
  if (status.ok()) describe(*entry, by_socket, reply->mutable_redirect());
  MutexLock lock(mutex_);
  --entry->admitting;
  return status;
}

absl::Status Workers::admit(Entry& entry, const Principal& principal, v1::HelloReply* reply) {
  const absl::StatusOr<std::string> random = random_key();
  if (!random.ok()) return random.status();
  const std::string& key = *random;
  v1::AdmitRequest request;
  request.set_key(key);
  request.set_session(reply->session_id());
  request.set_milliseconds(static_cast<uint32_t>(kKeyLifetime.count()));
  *request.mutable_limits() = to_wire(principal);
  v1::AdmitReply ignored;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  set_deadline(&context, entry.has_answered ? kAdmitTimeout : kStartTimeout);
  const grpc::Status status = entry.process->worker().Admit(&context, request, &ignored);
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    return absl::ResourceExhaustedError(status.error_message());
  }
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the worker process of ", principal.name, " does not answer; the engine's log has the reason"));
  }
  entry.has_answered = true;
  reply->mutable_redirect()->set_key(key);
  return absl::OkStatus();
}

void Workers::describe(const Entry& entry, bool by_socket, v1::Redirect* redirect) {
  redirect->set_worker(entry.number);
  if (by_socket) {
    redirect->set_socket(entry.socket);
  } else {
    redirect->set_port(entry.port);
  }
}

absl::Status Workers::locate(const Principal& principal, uint64_t worker, bool by_socket, v1::HelloReply* reply) {
  MutexLock lock(mutex_);
  for (const EntryPointer& each : entries_) {
    if (each->number != worker || each->principal != principal.name || !each->process) continue;
    describe(*each, by_socket, reply->mutable_redirect());
    return absl::OkStatus();
  }
  for (const Lost& each : lost_) {
    if (each.number == worker && each.principal == principal.name) return absl::NotFoundError(each.reason);
  }
  return absl::NotFoundError("the session has ended");
}

size_t Workers::revoke(absl::string_view principal) {
  size_t ended = 0;
  for (const Running& each : running()) {
    if (each.principal != principal) continue;
    v1::RevokeReply reply;
    grpc::ClientContext context;
    set_deadline(&context, kRevokeTimeout);
    if (each.process->worker().Revoke(&context, {}, &reply).ok()) {
      ended += reply.sessions();
      continue;
    }
    spdlog::warn("the worker of {} did not end its sessions; it is killed", each.principal);
    MutexLock lock(mutex_);
    each.process->send_signal(SIGKILL);
  }
  return ended;
}

std::vector<Workers::Running> Workers::running() const {
  MutexLock lock(mutex_);
  std::vector<Running> all;
  for (const EntryPointer& each : entries_) {
    if (each->process && !each->ending) all.push_back({each->principal, each->process, each->started});
  }
  return all;
}

void Workers::send_signal(int signal) {
  MutexLock lock(mutex_);
  for (const EntryPointer& each : entries_) {
    if (each->process) each->process->send_signal(signal);
  }
}

void Workers::close(bool they_end) {
  MutexLock lock(mutex_);
  closed_ = true;
  they_end_ = they_end_ || they_end;
}

void Workers::wait_until_ended(absl::FunctionRef<bool()> done) {
  MutexLock lock(mutex_);
  while (!entries_.empty() && !done()) changed_.wait_for(mutex_, kPollInterval);
}

void Workers::stop() {
  if (!thread_.joinable()) return;
  close();
  bool they_end = false;
  {
    MutexLock lock(mutex_);
    they_end = they_end_;
  }
  if (!they_end) send_signal(SIGTERM);
  const auto deadline = Clock::now() + options_.grace;
  wait_until_ended([deadline] { return Clock::now() >= deadline; });
  send_signal(SIGKILL);
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
}

// ---- The thread

void Workers::run() {
  auto next_check = Clock::now() + kCheckInterval;
  for (;;) {
    std::vector<pollfd> events{{wake_.get(), POLLIN, 0}};
    bool all_reported = true;
    {
      MutexLock lock(mutex_);
      collect_ended();
      start_requested();
      if (stopping_ && entries_.empty()) return;
      for (const EntryPointer& each : entries_) {
        all_reported = all_reported && each->process->pidfd() >= 0;
        if (each->process->pidfd() >= 0) events.push_back({each->process->pidfd(), POLLIN, 0});
      }
    }
    const auto wait = all_reported ? kCheckInterval : kPollInterval;
    if (poll(events.data(), events.size(), static_cast<int>(wait.count())) > 0 && events[0].revents != 0) {
      eventfd_t ignored = 0;
      eventfd_read(wake_.get(), &ignored);
    }
    if (Clock::now() < next_check) continue;
    check_activity();
    next_check = Clock::now() + kCheckInterval;
  }
}

void Workers::start_requested() {
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = **at;
    if (entry.process) {
      ++at;
      continue;
    }
    if (closed_) {
      entry.failure = absl::UnavailableError("the engine is shutting down");
      at = entries_.erase(at);
      changed_.notify_all();
      continue;
    }
    std::vector<std::string> arguments = options_.arguments;
    arguments.insert(arguments.end(), {"--worker", entry.principal});
    if (entry.limits.share && entry.limits.share->priority() == Share::Priority::kBatch)
      arguments.push_back("--worker-batch");
    if (!options_.socket.empty()) {
      entry.socket = absl::StrCat(options_.socket, ".", ++last_socket_);
      arguments.insert(arguments.end(), {"--listen", absl::StrCat("unix:", entry.socket)});
    }
    absl::StatusOr<uint32_t> port =
        options_.hosts.empty() ? absl::StatusOr<uint32_t>(0) : free_port(options_.ports, options_.hosts);
    if (port.ok()) {
      entry.port = *port;
      for (const std::string& host : options_.hosts) {
        const bool v6 = host.find(':') != host.npos;
        arguments.insert(arguments.end(),
                         {"--listen", v6 ? absl::StrCat("[", host, "]:", *port) : absl::StrCat(host, ":", *port)});
      }
    }
    auto process = port.ok() ? WorkerProcess::start(arguments) : port.status();
    entry.started = Clock::now();
    changed_.notify_all();
    if (!process.ok()) {
      spdlog::error("worker of {}: {}", entry.principal, process.status().ToString());
      entry.failure = process.status();
      at = entries_.erase(at);
      continue;
    }
    entry.process = *std::move(process);
    spdlog::info("process {} serves {}", entry.process->pid(), entry.principal);
    ++at;
  }
}

void Workers::collect_ended() {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const EntryPointer entry = *at;
    if (!entry->process || !entry->process->has_ended()) {
      ++at;
      continue;
    }
    at = entries_.erase(at);
    if (!entry->socket.empty()) unlink(entry->socket.c_str());
    const std::string how = entry->process->how_it_ended();
    const bool fault = !entry->process->ended_well() && !closed_;
    lost_.push_back({entry->number, entry->principal,
                     absl::StrCat("the worker process of ", entry->principal, " has ended (", how,
                                  "), and its sessions "
                                  "are lost")});
    if (lost_.size() > kMaxLost) lost_.pop_front();
    if (fault) {
      Faults& faults = faults_[entry->principal];
      faults.count = Clock::now() - faults.last < kFaultWindow ? faults.count + 1 : 1;
      faults.last = Clock::now();
      spdlog::error("the worker process {} of {} ended by {}", entry->process->pid(), entry->principal, how);
    } else {
      spdlog::info("the worker process {} of {} has ended: {}", entry->process->pid(), entry->principal, how);
    }
    changed_.notify_all();
  }
}

// Sends changed limits, and ends workers without sessions.
void Workers::check_activity() {
  std::vector<EntryPointer> entries;
  {
    MutexLock lock(mutex_);
    for (const EntryPointer& each : entries_) {
      if (each->process && !each->ending && each->admitting == 0) entries.push_back(each);
    }
  }
  for (const EntryPointer& entry : entries) {
    v1::PrincipalLimits limits;
    uint64_t admissions = 0;
    {
      MutexLock lock(mutex_);
      limits = to_wire(entry->limits);
      admissions = entry->admissions;
    }
    const std::string text = limits.SerializeAsString();
    if (text != entry->sent_limits) {
      v1::SetLimitsReply ignored;
      grpc::ClientContext context;
      set_deadline(&context, kCheckTimeout);
      if (entry->process->worker().SetLimits(&context, limits, &ignored).ok()) entry->sent_limits = text;
    }
    v1::ActivityReply activity;
    grpc::ClientContext context;
    set_deadline(&context, kCheckTimeout);
    if (!entry->process->worker().GetActivity(&context, {}, &activity).ok()) continue;
    if (std::chrono::duration<double>(activity.idle_seconds()) < options_.idle) continue;
    MutexLock lock(mutex_);
    if (entry->admissions != admissions) continue;  // a session may be about to be opened
    entry->ending = true;
    entry->process->send_signal(SIGTERM);
  }
}

}  // namespace tt::server
