#include "server/session/sessions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "engine/device/devices.h"
#include "engine/schema/op.h"
#include "server/convert.h"
#include "server/random_key.h"
#include "server/session/place_share.h"
#include "server/session/session_key.h"
#include "server/session/session_log.h"
#include "server/version.h"

namespace tt::server {
namespace {

constexpr size_t kMaxClientBytes = 256;

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
  reply->set_update_errors(true);
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
  if (absl::Status status = check_room(principal); !status.ok()) return status;
  absl::StatusOr<std::string> key = random_key();
  if (!key.ok()) return key.status();
  opened->key = *std::move(key);
  SessionRecord record;
  record.id = number != 0 ? number : ++last_id_;
  record.key_digest = digest_of_key(opened->key);
  record.client = printable(request.client(), kMaxClientBytes);
  record.memory_limit = least_limit(request.memory_limit(), options_.session_memory_limit);
  opened->session = make(record, address, principal, request.traceparent());
  ++ended_[principal.name].opened;
  add(opened->session, address).quota = opened->session->account()->quota();
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

absl::Status Sessions::check_room(const Principal& principal) const {
  const size_t sessions = entries_.size() + closing_.size();
  if (sessions >= options_.max_sessions) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the engine has ", options_.max_sessions, " sessions, its maximum"));
  }
  auto is_own = [&](const auto& at) { return at.second.session->principal() == principal.name; };
  const auto own = static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), is_own));
  if (principal.max_sessions != 0 && own >= principal.max_sessions) {
    return absl::ResourceExhaustedError(absl::StrCat(principal.name, " may have ", principal.max_sessions,
                                                     " sessions at a time; end one of them first"));
  }
  if (!may_take_place(options_.max_sessions, sessions, own, principal.role == Role::kOperator)) {
    return absl::ResourceExhaustedError(absl::StrCat("the engine has ", sessions, " sessions, and ", principal.name,
                                                     " has ", own, " of them, its share of ", options_.max_sessions,
                                                     "; end one of them first"));
  }
  const auto known = ended_.find(principal.name);
  const Quota* const quota = principal.quota         ? principal.quota.get()
                             : known != ended_.end() ? known->second.quota.get()
                                                     : nullptr;
  if (quota != nullptr && quota->host_room() < Session::kHostBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for another session: ", quota->bookkeeping_refusal(Session::kHostBytes)));
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
  if (principal.quota) usage.quota = principal.quota;
  if (!usage.quota) {  // without limits of its own
    usage.quota = std::make_shared<Quota>(principal.name, QuotaLimits{}, std::vector<std::shared_ptr<Quota>>(), false);
  }
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
                                         usage.quota,
                                         options_.queues,
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

std::shared_ptr<Session> Sessions::find(absl::string_view key) const {
  const std::string digest = digest_of_key(key);
  MutexLock lock(mutex_);
  auto found = entries_.find(digest);
  return found == entries_.end() ? nullptr : found->second.session;
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

}  // namespace tt::server
