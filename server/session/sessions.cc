#include "server/session/sessions.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/device/devices.h"
#include "engine/schema/op.h"
#include "server/convert.h"
#include "server/log.h"
#include "server/random_key.h"
#include "server/session/session_key.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

// Delay between the loss of a client's connection and the first check whether the client has died. The delay is needed
// because the kernel may close the socket of a dying process before its shared segment.
constexpr std::chrono::milliseconds kFirstCheck{5};
// Interval at which busy sessions are checked for broken connections and exceeded time limits.
constexpr std::chrono::milliseconds kWatch{100};
// How often the images that are due are looked for, and how long a session is waited for until it can be stored.
constexpr std::chrono::milliseconds kImageInterval{100}, kImageTime{10'000}, kFirstImageTime{30'000};
constexpr double kMaxInterval = 30.0 * 24 * 3600;
std::chrono::steady_clock::duration to_clock(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}
// Interval at which end_all() checks whether running frames have ended.
constexpr std::chrono::milliseconds kFramePollInterval{5};

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
    *(is_plugin(info.device.type) ? reply->add_plugin_devices() : reply->add_devices()) = to_wire(info);
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
      last_id_(options.store ? options.store->last_id() : 0),
      leases_([this] { run_leases(); }) {
  if (options_.store) images_ = std::thread([this] { run_images(); });
  if (!options_.offload) return;
  offloader_ = std::make_shared<Offloader>(options_.offload_after, [this] { return all(); });
  set_room_maker(offloader_);
}

Sessions::~Sessions() {
  if (offloader_) {
    set_room_maker(nullptr);
    offloader_->close();
  }
  end_all();
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  leases_.join();
  if (images_.joinable()) images_.join();
}

absl::Status Sessions::hello(const v1::HelloRequest& request, v1::HelloReply* reply, absl::string_view address,
                             const Principal& principal, uint64_t number) {
  Opened opened;
  absl::Status status = open(request, address, principal, number, &opened);
  if (absl::IsNotFound(status) && options_.store && !request.resume_key().empty()) {
    status = restore(digest_of_key(request.resume_key()), address, principal);
    if (status.ok()) status = open(request, address, principal, number, &opened);
  }
  if (!status.ok()) return status;
  Session& session = *opened.session;
  describe_engine(options_.limits, request.schema_digest(), reply);
  reply->set_session_key(opened.key);
  reply->set_session_id(session.id());
  reply->set_executed(session.executed());
  reply->set_lease_seconds(std::chrono::duration<double>(options_.lease).count());
  const auto& codecs = request.codecs();
  if (options_.compression && std::find(codecs.begin(), codecs.end(), v1::CODEC_ZSTD) != codecs.end()) {
    reply->set_codec(v1::CODEC_ZSTD);
  }
  reply->set_content_addressed(true);
  reply->set_default_dtypes(true);
  reply->set_size_expressions(true);
  if (request.shared_memory()) {
    if (auto segment = session.offer_segment()) *reply->mutable_shared_memory() = segment->describe();
  }
  return absl::OkStatus();
}

absl::Status Sessions::open(const v1::HelloRequest& request, absl::string_view address, const Principal& principal,
                            uint64_t number, Opened* opened) {
  MutexLock lock(mutex_);
  if (frozen_) return absl::UnavailableError("the engine is being replaced by another process");
  if (!request.resume_key().empty()) return resume(request, principal, opened);
  if (stopped_) return absl::UnavailableError("the engine is shutting down");
  if (absl::Status status = check_room(address, principal); !status.ok()) return status;
  absl::StatusOr<std::string> key = random_key();
  if (!key.ok()) return key.status();
  opened->key = *std::move(key);
  SessionRecord record;
  record.id = number != 0 ? number : ++last_id_;
  record.key_digest = digest_of_key(opened->key);
  record.client = printable(request.client());
  record.memory_limit = least_limit(request.memory_limit(), options_.session_memory_limit);
  opened->session = make(record, address, principal, request.traceparent());
  ++ended_[principal.name].opened;
  add(opened->session, address).quota = principal.quota;
  log_sessions().info(absl::StrCat("session ", record.id, " opened by ", record.client),
                      {record.id, principal.name, address});
  return absl::OkStatus();
}

absl::Status Sessions::resume(const v1::HelloRequest& request, const Principal& principal, Opened* opened) {
  const std::string digest = digest_of_key(request.resume_key());
  if (parked_.contains(digest)) return absl::UnavailableError("the engine is shutting down");
  if (stopped_) return absl::NotFoundError("the session has ended: the engine is shutting down");
  auto found = entries_.find(digest);
  const bool is_own = found != entries_.end() && found->second.session->principal() == principal.name;
  if (!is_own) return absl::NotFoundError("the session has ended");
  if (found->second.attachment == 0) start_lease(found->second);
  *opened = {found->second.session, request.resume_key()};
  return absl::OkStatus();
}

absl::Status Sessions::check_room(absl::string_view address, const Principal& principal) const {
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
  return absl::OkStatus();
}

std::shared_ptr<Session> Sessions::make(const SessionRecord& record, absl::string_view address,
                                        const Principal& principal, const std::string& traceparent) {
  std::shared_ptr<ContentIndex>& contents = contents_[principal.name];
  if (!contents) contents = std::make_shared<ContentIndex>();
  std::shared_ptr<SharedTensors>& shared = shared_[principal.name];
  if (!shared) shared = std::make_shared<SharedTensors>();
  Usage& usage = ended_[principal.name];
  usage.quota = principal.quota;
  if (principal.share) usage.share = principal.share;
  if (!usage.share) usage.share = std::make_shared<Share>(principal.name);
  Session::Options made(Session::Options{record.id,
                                         record.key_digest,
                                         record.client,
                                         record.memory_limit,
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
                                         programs_,
                                         principal.role,
                                         /*trace=*/nullptr,
                                         options_.offload});
  if (options_.tracer) {
    made.trace =
        std::make_shared<SessionTrace>(options_.tracer, traceparent, made.id, principal.name, std::string(address));
  }
  auto session = std::make_shared<Session>(std::move(made));
  if (windows_) session->compile_windows(windows_);
  return session;
}

Sessions::Entry& Sessions::add(const std::shared_ptr<Session>& session, absl::string_view address) {
  Entry& entry = entries_[session->key()];
  entry.session = session;
  entry.address = std::string(address);
  start_lease(entry);
  return entry;
}

absl::Status Sessions::adopt(const SessionRecord& record, const Principal& principal, ImageSource* source,
                             ImageBlocks* blocks) {
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    last_id_ = std::max(last_id_, record.id);
    session = make(record, "", principal, "");
  }
  try {
    session->read_image(source, blocks);
  } catch (const Error& error) {
    return absl::DataLossError(absl::StrCat("session ", record.id, ": ", error.message()));
  }
  session->set_persistence(record.persistence);
  if (options_.store) options_.store->keep(record.key_digest);
  MutexLock lock(mutex_);
  if (stopped_) return absl::UnavailableError("the engine is shutting down");
  add(session, "").quota = principal.quota;
  return absl::OkStatus();
}

absl::Status Sessions::restore(const std::string& key_digest, absl::string_view address, const Principal& principal) {
  absl::StatusOr<SessionStore::Stored> stored = options_.store->find(key_digest);
  if (absl::IsNotFound(stored.status())) return absl::NotFoundError("the session has ended");
  if (!stored.ok()) {
    return absl::NotFoundError(absl::StrCat("the session cannot be restored: ", stored.status().message()));
  }
  if (stored->record.principal != principal.name) return absl::NotFoundError("the session has ended");
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    if (stopped_) return absl::UnavailableError("the engine is shutting down");
    if (entries_.contains(key_digest)) return absl::OkStatus();
    if (absl::Status status = check_room(address, principal); !status.ok()) return status;
    if (!restoring_.insert(key_digest).second) return absl::UnavailableError("the session is being restored");
    session = make(stored->record, address, principal, "");
  }
  absl::Status status;
  try {
    session->read_image(stored->source.get());
  } catch (const Error& error) {
    const std::string why = absl::StrCat("the session cannot be restored: ", stored->path, ": ", error.message());
    status = error.kind() == ErrorKind::kOutOfMemory ? absl::ResourceExhaustedError(why) : absl::NotFoundError(why);
    log_line(LogLevel::kError, {session->id(), session->principal(), address}, why);
  }
  session->set_persistence(stored->record.persistence);
  session->set_persisted(stored->record.executed);
  MutexLock lock(mutex_);
  restoring_.erase(key_digest);
  if (!status.ok()) return status;
  options_.store->keep(key_digest);
  Entry& entry = add(session, address);
  entry.quota = principal.quota;
  entry.next_image = Clock::now();
  log_sessions().info(
      absl::StrCat("session ", session->id(), " continues from its image of frame ", session->executed()),
      {session->id(), principal.name, address});
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Sessions::write_image(Session& session, const std::shared_ptr<Quota>& quota,
                                               std::chrono::milliseconds wait, bool keep_held) {
  MutexLock writing(image_mutex_);
  {
    MutexLock lock(mutex_);
    if (frozen_) return absl::UnavailableError("the engine is being replaced by another process");
  }
  if (absl::Status status = session.hold(Clock::now() + wait); !status.ok()) return status;
  const uint64_t frame = session.executed();
  bool held = true;
  const auto release = [&] {
    if (std::exchange(held, false)) session.release();
  };
  try {
    absl::StatusOr<std::unique_ptr<SessionStore::Writer>> writer = options_.store->begin(session.record(), quota);
    if (!writer.ok()) {
      release();
      return writer.status();
    }
    session.write_image(writer->get());
    if (!keep_held) release();  // before the wait for the disk
    (*writer)->commit();
    session.set_persisted(frame);
    return (*writer)->bytes();
  } catch (const Error& error) {
    release();
    return absl::FailedPreconditionError(error.message());
  }
}

absl::Status Sessions::persist(Session& session, const Persistence& persistence, v1::PersistReply* reply) {
  if (!options_.store) {
    return absl::FailedPreconditionError("the engine stores no sessions; start it with --state-dir");
  }
  if (!(persistence.every >= 0 && persistence.every <= kMaxInterval && persistence.wait >= 0 &&
        persistence.wait <= kMaxInterval)) {
    return absl::InvalidArgumentError(absl::StrCat("expected intervals of 0 to ", kMaxInterval, " seconds, got ",
                                                   persistence.every, " and ", persistence.wait));
  }
  std::shared_ptr<Quota> quota;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(session.key());
    if (found == entries_.end()) return absl::NotFoundError("the session has ended");
    quota = found->second.quota;
    found->second.next_image = Clock::now() + std::chrono::hours(24);  // not before the one below
  }
  const Persistence before = session.persistence();
  session.set_persistence(persistence);
  if (!persistence.is_on()) {
    session.set_persisted(0);
    options_.store->remove(session.key());
    return absl::OkStatus();
  }
  const absl::StatusOr<uint64_t> bytes = write_image(session, quota, kFirstImageTime);
  if (!bytes.ok()) session.set_persistence(before);
  const std::chrono::duration<double> every(session.persistence().every);
  MutexLock lock(mutex_);
  const auto found = entries_.find(session.key());
  if (found == entries_.end()) {  // it has ended meanwhile
    options_.store->remove(session.key());
    return absl::NotFoundError("the session has ended");
  }
  if (before.is_on() || bytes.ok()) found->second.next_image = Clock::now() + to_clock(every.count());
  changed_.notify_all();
  if (!bytes.ok()) return absl::FailedPreconditionError(bytes.status().message());
  reply->set_persisted(session.persisted());
  reply->set_bytes(*bytes);
  return absl::OkStatus();
}

// Writes the images that are due, one after the other.
void Sessions::run_images() {
  MutexLock lock(mutex_);
  while (!ending_) {
    std::shared_ptr<Session> due;
    std::shared_ptr<Quota> quota;
    bool any = false;
    const auto now = Clock::now();
    for (auto& [key, entry] : entries_) {
      const Persistence persistence = entry.session->persistence();
      if (stopped_ || frozen_ || !persistence.is_on()) continue;
      any = true;
      if (entry.session->executed() == entry.session->persisted()) continue;
      if (now < entry.next_image && !entry.session->wants_image()) continue;
      entry.next_image = now + to_clock(persistence.every);
      due = entry.session;
      quota = entry.quota;
      break;
    }
    if (!due) {
      changed_.wait_for(mutex_, any ? kImageInterval : std::chrono::milliseconds(std::chrono::hours(1)));
      continue;
    }
    lock.unlock();
    const absl::StatusOr<uint64_t> bytes = write_image(*due, quota, kImageTime);
    if (!bytes.ok()) {
      log_sessions().warn(absl::StrCat("session ", due->id(), ": no image was stored: ", bytes.status().message()),
                          {due->id(), due->principal()});
    }
    lock.lock();
    if (!entries_.contains(due->key()) && !parked_.contains(due->key())) options_.store->remove(due->key());
  }
}

// Persistent sessions continue after the engine's next start.
void Sessions::park_persistent(std::chrono::milliseconds timeout) {
  if (!options_.store) return;
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries_) {
    if (entry.session->persistence().is_on()) keys.push_back(key);
  }
  const auto deadline = Clock::now() + timeout;
  for (const std::string& key : keys) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) continue;
    const std::shared_ptr<Session> session = found->second.session;
    const std::shared_ptr<Quota> quota = found->second.quota;
    absl::StatusOr<uint64_t> bytes = 0;
    {
      MutexUnlock unlocked(mutex_);
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      bytes = write_image(*session, quota, left, /*keep_held=*/true);
    }
    if (!bytes.ok()) {
      spdlog::warn("session {}: the engine ends without a new image: {}", session->id(),
                   std::string(bytes.status().message()));
      if (session->persisted() == 0) continue;
    }
    const auto again = entries_.find(key);
    if (again == entries_.end()) continue;
    session->park();
    if (again->second.cancel) again->second.cancel();
    parked_.emplace(key, std::move(again->second));
    entries_.erase(again);
  }
}

std::shared_ptr<Session> Sessions::find(absl::string_view key) const {
  const std::string digest = digest_of_key(key);
  MutexLock lock(mutex_);
  auto found = entries_.find(digest);
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
  if (options_.store) options_.store->remove(ended->key());
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
    usage.offloaded += status.offloaded_bytes();
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

std::vector<std::shared_ptr<Session>> Sessions::all() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Session>> all;
  for (const auto& [key, entry] : entries_) all.push_back(entry.session);
  return all;
}

void Sessions::freeze(bool frozen) {
  MutexLock writing(image_mutex_);  // waits for an image that is being written
  MutexLock lock(mutex_);
  frozen_ = frozen;
  for (auto& [key, entry] : entries_) {
    if (entry.attachment == 0) start_lease(entry);
  }
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

void Sessions::end_streams() {
  if (options_.store) options_.store->release_lock();
  MutexLock lock(mutex_);
  for (auto& [key, entry] : entries_) {
    entry.session->park();
    if (entry.cancel) entry.cancel();
  }
}

void Sessions::stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
}

void Sessions::end_all(std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  stopped_ = true;
  park_persistent(timeout);
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
    if (options_.store) options_.store->remove(key);
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
  if (frozen_) return;
  if (options_.store) *next = std::min(*next, options_.store->remove_expired());
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
