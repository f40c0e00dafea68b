#include "server/session/sessions.h"

#include <sys/random.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/device/devices.h"
#include "engine/schema/op.h"
#include "server/convert.h"
#include "server/log.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

// Delay between the loss of a client's connection and the first check whether the client has died. The delay is needed
// because the kernel may close the socket of a dying process before its shared segment.
constexpr std::chrono::milliseconds kFirstCheck{5};
// Interval at which busy sessions are checked for broken connections and exceeded time limits.
constexpr std::chrono::milliseconds kWatch{100};
// Interval at which end_all() checks whether running frames have ended.
constexpr std::chrono::milliseconds kFramePollInterval{5};

// Returns 256 random bits that name and protect a session; empty if getrandom fails.
std::string random_key() {
  char bits[32];
  if (getrandom(bits, sizeof bits, 0) != sizeof bits) return "";
  return absl::BytesToHexString({bits, sizeof bits});
}

uint64_t least_limit(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

void describe_engine(const Limits& limits, uint64_t clients_schema, v1::HelloReply* reply) {
  reply->set_engine_version(kVersion);
  reply->set_schema_digest(schema_digest());
  uint32_t max_id = 0;
  for (const Op* op : all_ops()) max_id = std::max<uint32_t>(max_id, op->id);
  reply->set_max_op_id(max_id);
  if (clients_schema != schema_digest()) {
    for (const Op* op : all_ops()) {
      reply->mutable_operators()->add_ids(op->id);
      reply->mutable_operators()->add_parameters(static_cast<uint32_t>(op->params.size()));
    }
  }
  for (const DeviceInfo& info : Devices::instance().list()) {
    *reply->add_devices() = to_wire(info);
  }
  v1::Limits* wire = reply->mutable_limits();
  wire->set_max_frame_bytes(limits.max_frame_bytes);
  wire->set_max_inline_bytes(limits.max_inline_bytes);
  wire->set_max_frames_in_flight(limits.max_frames_in_flight);
  wire->set_max_handles(limits.max_handles);
  wire->set_max_templates(limits.max_templates);
  wire->set_max_scalar_reads(limits.max_scalar_reads);
}

// Escapes a client's name for logs and terminals.
std::string printable(absl::string_view name) { return absl::CHexEscape(name.substr(0, 128)); }

// Why a session ends when the engine ends.
constexpr char kShutdown[] = "was ended by engine shutdown";

// Limits log lines about sessions, since clients can open and end sessions at any rate.
LogLimit& log_sessions() {
  static LogLimit limit(200, std::chrono::milliseconds(100));
  return limit;
}

}  // namespace

Sessions::Sessions(const Options& options)
    : options_(options),
      monitor_(std::make_shared<TransferMonitor>(options_.transfers)),
      publications_(std::make_shared<Publications>(options_.session_memory_limit, options_.tenant, options_.audit,
                                                   options_.is_isolated)),
      leases_([this] { run_leases(); }) {}

Sessions::~Sessions() {
  end_all();
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  leases_.join();
}

absl::Status Sessions::hello(const v1::HelloRequest& request, v1::HelloReply* reply, absl::string_view address,
                             const Principal& principal, uint64_t number) {
  std::shared_ptr<Session> session;
  if (absl::Status status = open(request, address, principal, number, &session); !status.ok()) return status;
  describe_engine(options_.limits, request.schema_digest(), reply);
  reply->set_session_key(session->key());
  reply->set_session_id(session->id());
  reply->set_executed(session->executed());
  reply->set_lease_seconds(std::chrono::duration<double>(options_.lease).count());
  const auto& codecs = request.codecs();
  if (options_.compression && std::find(codecs.begin(), codecs.end(), v1::CODEC_ZSTD) != codecs.end()) {
    reply->set_codec(v1::CODEC_ZSTD);
  }
  reply->set_content_addressed(true);
  reply->set_default_dtypes(true);
  if (request.shared_memory()) {
    if (auto segment = session->offer_segment()) *reply->mutable_shared_memory() = segment->describe();
  }
  return absl::OkStatus();
}

absl::Status Sessions::open(const v1::HelloRequest& request, absl::string_view address, const Principal& principal,
                            uint64_t number, std::shared_ptr<Session>* session) {
  MutexLock lock(mutex_);
  if (!request.resume_key().empty()) {
    if (stopped_) return absl::NotFoundError("the session has ended: the engine is shutting down");
    auto found = entries_.find(request.resume_key());
    const bool is_own = found != entries_.end() && found->second.session->principal() == principal.name;
    if (!is_own) return absl::NotFoundError("the session has ended");
    if (found->second.attachment == 0) start_lease(found->second);
    *session = found->second.session;
    return absl::OkStatus();
  }
  if (stopped_) return absl::UnavailableError("the engine is shutting down");
  const size_t sessions = entries_.size() + closing_.size();
  if (sessions >= options_.max_sessions) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the engine has ", options_.max_sessions, " sessions, its maximum"));
  }
  if (sessions >= options_.max_sessions_per_address) {
    auto is_from = [&](const auto& at) { return at.second.address == address; };
    const auto from = std::count_if(entries_.begin(), entries_.end(), is_from) +
                      std::count_if(closing_.begin(), closing_.end(), is_from);
    if (static_cast<size_t>(from) >= options_.max_sessions_per_address) {
      return absl::ResourceExhaustedError(absl::StrCat("expected at most ", options_.max_sessions_per_address,
                                                       " sessions from one address, got more from ", address));
    }
  }
  if (principal.max_sessions != 0) {
    auto is_own = [&](const auto& at) { return at.second.session->principal() == principal.name; };
    const auto own = std::count_if(entries_.begin(), entries_.end(), is_own);
    if (static_cast<size_t>(own) >= principal.max_sessions) {
      return absl::ResourceExhaustedError(absl::StrCat(principal.name, " may have ", principal.max_sessions,
                                                       " sessions at a time; end one of them first"));
    }
  }
  std::string key = random_key();
  if (key.empty()) return absl::UnavailableError("cannot create a session key: getrandom failed");
  std::shared_ptr<ContentIndex>& contents = contents_[principal.name];
  if (!contents) contents = std::make_shared<ContentIndex>();
  std::shared_ptr<SharedTensors>& shared = shared_[principal.name];
  if (!shared) shared = std::make_shared<SharedTensors>();
  Usage& usage = ended_[principal.name];
  ++usage.opened;
  usage.quota = principal.quota;
  if (principal.share) usage.share = principal.share;
  if (!usage.share) usage.share = std::make_shared<Share>(principal.name);
  Session::Options made(Session::Options{number != 0 ? number : ++last_id_,
                                         key,
                                         printable(request.client()),
                                         least_limit(request.memory_limit(), options_.session_memory_limit),
                                         options_.limits,
                                         options_.transfer_timeouts,
                                         options_.frame_time_limit,
                                         options_.tenant,
                                         principal.name,
                                         monitor_,
                                         contents,
                                         options_.checkpoint_root ? options_.checkpoint_root(principal) : nullptr,
                                         shared,
                                         options_.peers,
                                         options_.open_gate,
                                         options_.frame_times,
                                         principal.quota,
                                         options_.queue,
                                         usage.share,
                                         publications_,
                                         principal.role});
  if (options_.tracer) {
    made.trace = std::make_shared<SessionTrace>(options_.tracer, request.traceparent(), made.id, principal.name,
                                                std::string(address));
  }
  *session = std::make_shared<Session>(std::move(made));
  Entry& entry = entries_[key];
  entry.session = *session;
  entry.address = std::string(address);
  start_lease(entry);
  log_sessions().info(absl::StrCat("session ", (*session)->id(), " opened by ", (*session)->client()),
                      {(*session)->id(), principal.name, address});
  return absl::OkStatus();
}

std::shared_ptr<Session> Sessions::find(absl::string_view key) const {
  MutexLock lock(mutex_);
  auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.session;
}

void Sessions::end(const Session& session) {
  std::shared_ptr<Session> ended;
  {
    MutexLock lock(mutex_);
    auto found = entries_.find(session.key());
    if (found == entries_.end()) return;
    ended = found->second.session;
    ended_[ended->principal()].add_work(ended->status());
    ended->end_trace();  // before the session leaves the table, so that end_traces() misses none
    entries_.erase(found);
  }
  ended->close();
  release_memory(*ended);
  log_sessions().info(absl::StrCat("session ", ended->id(), " ended"), {ended->id(), ended->principal()});
  if (options_.on_end) options_.on_end(*ended);
}

void Sessions::Usage::add_work(const v1::SessionStatus& status) {
  frames += status.frames();
  instructions += status.instructions();
  failed += status.failed();
}

std::map<std::string, Sessions::Usage> Sessions::usage() const {
  MutexLock lock(mutex_);
  std::map<std::string, Usage> all = ended_;
  for (const auto& [key, entry] : entries_) {
    const v1::SessionStatus status = entry.session->status();
    Usage& usage = all[entry.session->principal()];
    ++usage.sessions;
    usage.bytes += status.held_bytes();
    usage.handles += status.handles();
    usage.add_work(status);
  }
  return all;
}

size_t Sessions::publications() const { return publications_->size(); }

bool Sessions::accepts() const {
  MutexLock lock(mutex_);
  return !stopped_;
}

void Sessions::release_memory(const Session& session) {
  memory_.session_ended(options_.tenant == 0 ? session.account()->tenant() : kNoTenant);
}

bool Sessions::end(uint64_t id) {
  MutexLock lock(mutex_);
  auto found = std::find_if(entries_.begin(), entries_.end(), [=](auto& at) { return at.second.session->id() == id; });
  if (found == entries_.end()) return false;
  begin_closing(found, "was ended by an administrator");
  return true;
}

size_t Sessions::end_all_of(absl::string_view principal) {
  publications_->revoke(principal);
  MutexLock lock(mutex_);
  size_t ended = 0;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto here = at++;
    if (here->second.session->principal() != principal) continue;
    begin_closing(here, "was ended: the access of its principal was revoked");
    ++ended;
  }
  return ended;
}

uint64_t Sessions::attach(Session& session, std::function<void()> cancel, std::function<bool()> is_broken) {
  MutexLock lock(mutex_);
  auto found = entries_.find(session.key());
  if (found == entries_.end()) return 0;
  Entry& entry = found->second;
  const std::function<void()> replaced = std::exchange(entry.cancel, std::move(cancel));
  entry.is_broken = std::move(is_broken);
  entry.attachment = ++last_attachment_;
  session.set_stream(entry.attachment);
  if (auto segment = session.segment()) segment->client_exited();  // records that the client is present
  if (replaced) replaced();  // under the lock, so that the stream cannot detach and be destroyed during the call
  changed_.notify_all();     // wakes the watching thread, which must check this stream too
  return entry.attachment;
}

void Sessions::detach(Session& session, uint64_t attachment) {
  MutexLock lock(mutex_);
  for (Entries* entries : {&entries_, &closing_}) {
    auto found = entries->find(session.key());
    if (found == entries->end() || found->second.attachment != attachment) continue;
    on_stream_closed(found->second);
  }
}

void Sessions::on_stream_closed(Entry& entry) {
  entry.attachment = 0;
  entry.cancel = nullptr;
  entry.is_broken = nullptr;
  entry.session->set_stream(0);
  start_lease(entry);
  const Session& session = *entry.session;
  log_line(
      LogLevel::kDebug, {session.id(), session.principal(), entry.address},
      absl::StrCat("session ", session.id(), ": the stream has ended; the lease is ", options_.lease.count(), " ms"));
}

std::vector<v1::SessionStatus> Sessions::list() const {
  MutexLock lock(mutex_);
  std::vector<v1::SessionStatus> list;
  for (const auto& [key, entry] : entries_) {
    list.push_back(entry.session->status());
    list.back().set_connected(entry.attachment != 0);
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.id() < b.id(); });
  return list;
}

void Sessions::end_traces() {
  MutexLock lock(mutex_);
  for (const Entries* entries : {&entries_, &closing_}) {
    for (const auto& [key, entry] : *entries) entry.session->end_trace();
  }
}

void Sessions::visit(absl::FunctionRef<void(const Session&)> visit) const {
  MutexLock lock(mutex_);
  for (const auto& [key, entry] : entries_) visit(*entry.session);
}

size_t Sessions::size() const {
  MutexLock lock(mutex_);
  return entries_.size() + closing_.size();
}

void Sessions::stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
}

void Sessions::end_all(std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  stopped_ = true;
  for (auto& [key, entry] : entries_) entry.session->stop(kShutdown);
  auto any_busy = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::any_of(entries_.begin(), entries_.end(), [](auto& at) { return at.second.session->busy(); });
  };
  for (const auto deadline = Clock::now() + timeout; any_busy() && Clock::now() < deadline;) {
    changed_.wait_for(mutex_, kFramePollInterval);
  }
  while (!entries_.empty()) begin_closing(entries_.begin(), kShutdown);
  changed_.wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closing_.empty(); });
}

// Never waits for the session: a library call in it may take minutes.
void Sessions::begin_closing(Entries::iterator at, std::string why) {
  const std::string key = at->first;
  at->second.session->begin_closing(why);
  const Session& session = *at->second.session;
  log_sessions().info(absl::StrCat("session ", session.id(), " ", why, "; its memory is being released"),
                      {session.id(), session.principal(), at->second.address});
  ended_[session.principal()].add_work(session.status());
  closing_.emplace(key, std::move(at->second));
  entries_.erase(at);
  start_closing_thread(key);
}

void Sessions::start_closing_thread(const std::string& key) {
  try {
    // Detached; end_all() waits until closing_ is empty.
    std::thread([this, key] { close(key); }).detach();
  } catch (const std::system_error& error) {
    spdlog::error("cannot start a thread to close a session: {}", error.what());
    closings_without_thread_.push_back(key);  // the watching thread retries
  }
}

void Sessions::close(const std::string& key) {
  MutexLock lock(mutex_);
  Session& session = *closing_.find(key)->second.session;
  lock.unlock();  // the entry stays until this thread erases it
  try {
    session.close();
    release_memory(session);
    session.end_trace();
  } catch (const std::exception& error) {
    log_line(LogLevel::kError, {session.id(), session.principal()},
             absl::StrCat("session ", session.id(), ": closing failed: ", error.what()));
  }
  if (options_.on_end) options_.on_end(session);
  lock.lock();
  auto found = closing_.find(key);
  if (found->second.cancel) found->second.cancel();  // ends a stream that waits for its client's next frame
  closing_.erase(found);
  changed_.notify_all();
}

void Sessions::start_lease(Entry& entry) {
  auto now = Clock::now();
  entry.expires = now + options_.lease;
  entry.check_interval = kFirstCheck;
  entry.next_check = now + kFirstCheck;
  changed_.notify_all();
}

void Sessions::run_leases() {
  MutexLock lock(mutex_);
  while (!ending_) {
    Clock::time_point next = Clock::now() + std::chrono::hours(1);
    try {
      watch(&next);
      end_expired(&next);
    } catch (const std::exception& error) {  // probably out of memory, which may be temporary
      spdlog::error("checking sessions failed: {}", error.what());
      next = Clock::now() + kWatch;
    }
    changed_.wait_until(mutex_, next);
  }
}

// Performs checks that the sessions' own threads cannot do while they are busy.
void Sessions::watch(Clock::time_point* next) {
  const bool limited = options_.frame_time_limit.count() != 0;
  for (auto& [key, entry] : entries_) {
    if (entry.attachment == 0 && !limited) continue;
    *next = std::min(*next, Clock::now() + kWatch);
    if (!entry.session->busy()) continue;
    entry.session->enforce_time_limit();
    if (entry.is_broken && entry.is_broken()) on_stream_closed(entry);
  }
  for (const std::string& key : std::exchange(closings_without_thread_, {})) start_closing_thread(key);
  if (!closings_without_thread_.empty()) *next = std::min(*next, Clock::now() + kWatch);
}

void Sessions::end_expired(Clock::time_point* next) {
  const auto now = Clock::now();
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    auto here = it++;
    if (entry.attachment != 0) continue;
    bool over = now >= entry.expires;
    if (!over && now >= entry.next_check) {
      auto segment = entry.session->segment();
      over = segment && segment->client_exited();
      entry.check_interval *= 4;
      entry.next_check = now + entry.check_interval;
    }
    if (over) {
      begin_closing(here, "expired");
    } else {
      *next = std::min({*next, entry.expires, entry.next_check});
    }
  }
}

}  // namespace tt::server
