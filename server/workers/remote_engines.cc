#include "server/workers/remote_engines.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/certificate.h"
#include "proto/credentials.h"
#include "proto/keepalive.h"
#include "server/convert.h"
#include "server/random_key.h"
#include "server/rpc/address.h"
#include "server/workers/worker_service.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

// Of an engine's answers. Together less than the 10 seconds for which a client waits for its first Hello, for a few
// engines that do not answer.
constexpr std::chrono::milliseconds kStatusTimeout{1'500}, kAdmitTimeout{2'000}, kRevokeTimeout{2'000};
constexpr std::chrono::milliseconds kPlaceTimeout{8'000};
// A client opens its session right after the answer.
constexpr std::chrono::milliseconds kKeyLifetime{30'000};

// A number that names an engine by its address, in every process.
uint64_t number_of(const std::string& address) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(address.data()), address.size(), digest);
  uint64_t number = 0;
  std::memcpy(&number, digest, sizeof number);
  return std::max<uint64_t>(number, 1);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials_for(const RemoteEngines::Engine& engine,
                                                                          const std::string& authorities) {
  if (!engine.tls) return plain_channel_credentials();
  TlsFiles files;
  files.authorities = authorities;
  return engine.fingerprint.empty() ? channel_credentials(files) : pinned_credentials(engine.fingerprint, files);
}

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMilliseconds);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);  // an engine that starts again is used within seconds
  return arguments;
}

// The device with the smallest part of its memory in use, among the GPUs if there are any.
const v1::DeviceStatus* least_loaded(const v1::StatusReply& status) {
  const auto memory = [](const v1::DeviceStatus& each) {
    const uint64_t limit = each.memory().limit();
    const uint64_t total = limit != 0 ? limit : each.device().total_memory();
    return total == 0 ? 0.0 : static_cast<double>(each.memory().allocated()) / static_cast<double>(total);
  };
  const auto is_gpu = [](const v1::DeviceStatus& each) { return !each.device().compute_capability().empty(); };
  const v1::DeviceStatus* found = nullptr;
  for (const v1::DeviceStatus& each : status.devices()) {
    const bool better =
        found == nullptr || std::pair(!is_gpu(each), memory(each)) < std::pair(!is_gpu(*found), memory(*found));
    if (better) found = &each;
  }
  return found;
}

}  // namespace

absl::StatusOr<RemoteEngines::Engine> RemoteEngines::parse(absl::string_view text) {
  Engine engine;
  absl::string_view rest = text;
  engine.tls = absl::ConsumePrefix(&rest, "teletensors://");
  if (const size_t mark = rest.find('#'); engine.tls && mark != rest.npos) {
    absl::StatusOr<std::string> fingerprint = parse_fingerprint(rest.substr(mark + 1));
    if (!fingerprint.ok()) return fingerprint.status();
    engine.fingerprint = *std::move(fingerprint);
    rest = rest.substr(0, mark);
  }
  const absl::StatusOr<Address> address = parse_address(rest);
  if (!address.ok() || address->is_unix() || address->port == "0" ||
      address->host.find_first_of("/# ") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected HOST:PORT, teletensors://HOST:PORT or teletensors://HOST:PORT#sha256:..., got '", text, "'"));
  }
  engine.address = address->to_string();
  return engine;
}

absl::StatusOr<std::unique_ptr<RemoteEngines>> RemoteEngines::start(Options options) {
  std::unique_ptr<RemoteEngines> engines(new RemoteEngines(std::move(options)));
  {
    MutexLock lock(engines->mutex_);
    for (const Engine& each : engines->options_.engines) {
      auto credentials = credentials_for(each, engines->options_.authorities);
      if (!credentials.ok()) return credentials.status();
      const std::shared_ptr<grpc::Channel> channel =
          grpc::CreateCustomChannel(absl::StrCat("dns:///", each.address), *credentials, channel_arguments());
      Entry& entry = engines->entries_.emplace_back();
      entry.engine = each;
      entry.number = number_of(each.address);
      entry.admin = v1::Admin::NewStub(channel);
      entry.status.set_address(each.tls ? absl::StrCat("teletensors://", each.address) : each.address);
    }
  }
  engines->thread_ = std::thread([engines = engines.get()] { engines->run(); });
  return engines;
}

RemoteEngines::~RemoteEngines() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void RemoteEngines::stop() {
  MutexLock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void RemoteEngines::prepare(grpc::ClientContext* context, std::chrono::milliseconds timeout) const {
  context->AddMetadata("authorization", absl::StrCat("Bearer ", options_.token));
  context->set_deadline(std::chrono::system_clock::now() + timeout);
}

// ---- Opening sessions

RemoteEngines::Load RemoteEngines::load_of(const Entry& entry) {
  const v1::PlacedEngineStatus& status = entry.status;
  const uint64_t total = std::max<uint64_t>(status.total_bytes(), 1);
  const auto tenths =
      static_cast<uint64_t>(10.0 * static_cast<double>(status.used_bytes()) / static_cast<double>(total));
  return {tenths, status.working(), status.sessions() + entry.recent, status.placed()};
}

std::optional<size_t> RemoteEngines::best(const Principal& principal, const std::set<size_t>& tried) const {
  std::optional<size_t> found;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (!entry.status.answers() || tried.contains(i) || entry.not_revoked.contains(principal.name)) continue;
    if (!found || load_of(entry) < load_of(entries_[*found])) found = i;
  }
  return found;
}

absl::Status RemoteEngines::admit(v1::Admin::Stub& admin, const Principal& principal, const std::string& key) const {
  v1::AdmitRequest request;
  request.set_key(key);
  request.set_milliseconds(static_cast<uint32_t>(kKeyLifetime.count()));
  request.set_principal(principal.name);
  *request.mutable_limits() = to_wire(principal);
  v1::AdmitReply ignored;
  grpc::ClientContext context;
  prepare(&context, kAdmitTimeout);
  const grpc::Status status = admin.Admit(&context, request, &ignored);
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

absl::Status RemoteEngines::place(const Principal& principal, bool /*by_socket*/, v1::HelloReply* reply) {
  const absl::StatusOr<std::string> random = random_key();
  if (!random.ok()) return random.status();
  const std::string& key = *random;
  const auto deadline = std::chrono::steady_clock::now() + kPlaceTimeout;
  std::set<size_t> tried;
  absl::Status full;  // why an engine that answers opens no session
  while (std::chrono::steady_clock::now() < deadline) {
    std::optional<size_t> index;
    v1::Admin::Stub* admin = nullptr;
    {
      MutexLock lock(mutex_);
      changed_.wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return checked_ || stopping_; });
      if (stopping_) return absl::UnavailableError("the engine is shutting down");
      index = best(principal, tried);
      if (!index) break;
      Entry& entry = entries_[*index];
      ++entry.recent;  // before the answer, so that sessions that are opened at the same time are distributed
      admin = entry.admin.get();
    }
    tried.insert(*index);
    const absl::Status status = admit(*admin, principal, key);
    MutexLock lock(mutex_);
    Entry& entry = entries_[*index];
    if (status.ok()) {
      entry.status.set_placed(entry.status.placed() + 1);
      v1::Redirect* redirect = reply->mutable_redirect();
      redirect->set_worker(entry.number);
      redirect->set_address(entry.engine.address);
      redirect->set_tls(entry.engine.tls);
      redirect->set_fingerprint(entry.engine.fingerprint);
      redirect->set_key(key);
      return absl::OkStatus();
    }
    if (absl::IsResourceExhausted(status)) {
      full = status;
      continue;
    }
    spdlog::warn("the engine at {} opens no session for {}: {}", entry.status.address(), principal.name,
                 std::string(status.message()));
    entry.status.set_answers(false);
    entry.status.set_failure(std::string(status.message()));
  }
  if (!full.ok()) return full;
  MutexLock lock(mutex_);
  std::vector<std::string> reasons;
  reasons.reserve(entries_.size());
  for (const Entry& each : entries_)
    reasons.push_back(absl::StrCat(each.status.address(), " (", each.status.failure(), ")"));
  return absl::UnavailableError(absl::StrCat("no engine can open a session: ", absl::StrJoin(reasons, ", ")));
}

absl::Status RemoteEngines::locate(const Principal&, uint64_t engine, bool /*by_socket*/, v1::HelloReply* reply) {
  MutexLock lock(mutex_);
  for (const Entry& each : entries_) {
    if (each.number != engine) continue;
    reply->mutable_redirect()->set_worker(each.number);
    reply->mutable_redirect()->set_address(each.engine.address);
    return absl::OkStatus();
  }
  return absl::NotFoundError("the session was in an engine that is not one of this engine's --engines any more");
}

// ---- Revocation

size_t RemoteEngines::revoke(absl::string_view principal) {
  size_t engines = 0, ended = 0;
  {
    MutexLock lock(mutex_);
    engines = entries_.size();
    for (Entry& each : entries_) each.not_revoked.insert(std::string(principal));
  }
  for (size_t i = 0; i < engines; ++i) ended += revoke_in(i, std::string(principal));
  return ended;
}

size_t RemoteEngines::revoke_in(size_t index, const std::string& principal) {
  v1::Admin::Stub* admin = nullptr;
  {
    MutexLock lock(mutex_);
    admin = entries_[index].admin.get();
  }
  v1::RevokeRequest request;
  request.set_principal(principal);
  v1::RevokeReply reply;
  grpc::ClientContext context;
  prepare(&context, kRevokeTimeout);
  const grpc::Status status = admin->Revoke(&context, request, &reply);
  MutexLock lock(mutex_);
  Entry& entry = entries_[index];
  if (status.ok()) {
    entry.not_revoked.erase(principal);
    return reply.sessions();
  }
  spdlog::warn("the access of {} is not revoked in the engine at {} yet: {}", principal, entry.status.address(),
               status.error_message());
  return 0;
}

void RemoteEngines::retry_revocations() {
  std::vector<std::pair<size_t, std::string>> all;
  {
    MutexLock lock(mutex_);
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!entries_[i].status.answers()) continue;
      for (const std::string& principal : entries_[i].not_revoked) all.emplace_back(i, principal);
    }
  }
  for (const auto& [index, principal] : all) revoke_in(index, principal);
}

// ---- The thread

void RemoteEngines::set_status(Entry& entry, const grpc::Status& status, const v1::StatusReply& reply) {
  v1::PlacedEngineStatus& known = entry.status;
  if (!status.ok()) {
    const std::string why =
        status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ? "does not answer" : status.error_message();
    if (known.answers() || known.failure().empty())
      spdlog::warn("the engine at {} is not used: {}", known.address(), why);
    known.set_answers(false);
    known.set_failure(why);
    return;
  }
  if (!known.answers()) spdlog::info("sessions are placed in the engine at {}", known.address());
  known.set_answers(true);
  known.clear_failure();
  known.set_engine_version(reply.engine_version());
  known.set_sessions(static_cast<uint64_t>(reply.sessions_size()));
  known.set_working(static_cast<uint64_t>(
      std::count_if(reply.sessions().begin(), reply.sessions().end(),
                    [](const v1::SessionStatus& each) { return !each.state().empty() && each.state() != "idle"; })));
  entry.recent = 0;
  const v1::DeviceStatus* device = least_loaded(reply);
  if (device == nullptr) return;
  known.set_device(device->device().name());
  known.set_used_bytes(device->memory().allocated());
  known.set_total_bytes(device->memory().limit() != 0 ? device->memory().limit() : device->device().total_memory());
}

void RemoteEngines::check_engines() {
  struct Call {
    grpc::ClientContext context;
    v1::StatusReply reply;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::StatusReply>> reader;
  };
  std::vector<std::unique_ptr<Call>> calls;
  grpc::CompletionQueue queue;
  {
    MutexLock lock(mutex_);
    for (const Entry& each : entries_) {
      Call& call = *calls.emplace_back(std::make_unique<Call>());
      prepare(&call.context, kStatusTimeout);
      call.reader = each.admin->AsyncStatus(&call.context, v1::StatusRequest(), &queue);
      call.reader->Finish(&call.reply, &call.status, &call);
    }
  }
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < calls.size(); ++i) queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  MutexLock lock(mutex_);
  for (size_t i = 0; i < calls.size(); ++i) set_status(entries_[i], calls[i]->status, calls[i]->reply);
  checked_ = true;
  changed_.notify_all();
}

void RemoteEngines::run() {
  for (;;) {
    check_engines();
    retry_revocations();
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, options_.interval, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
    if (stopping_) return;
  }
}

void RemoteEngines::describe(v1::StatusReply* reply) const {
  MutexLock lock(mutex_);
  for (const Entry& each : entries_) *reply->add_engines() = each.status;
}

}  // namespace tt::server
