#include "server/rpc/call_admission.h"

#include <arpa/inet.h>
#include <grpc/grpc.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/log.h"
#include "server/session/place_share.h"

namespace tt::server {
namespace {

struct Quota {
  const char* what;
  size_t all;
  size_t of_part;  // 0: no limit but that of the holder
  bool is_short;   // requests arrive in one piece: calls give way to those of their own holder, too
};

// Indexed by CallAdmission::Kind. A part is a session for streams, transfers and requests, otherwise an address. A
// session has one current stream. Older streams may still exist: one that executes a frame, and those that end at this
// moment.
constexpr Quota kQuotas[CallAdmission::kKinds] = {
    {"Hello calls", 64, 0, true},
    {"streams", 1100, 8, true},
    {"transfers", 640, 128, false},
    {"requests", 64, 16, true},
    {"inference calls", 512, 0, false},
    {"Admin calls", 64, 0, true},
    {"reflection calls and probes", 16, 4, true},
};
// Threads for calls that are refused when their metadata arrives: 64 calls on each of the 8 connections without a token
// that one address may have (acceptor.cc, listener.cc), and 64 more.
constexpr int kSpareThreads = 8 * 64 + 64;
constexpr char kGaveWay[] = "the call gave way to another one, because its request was incomplete; try again later";
constexpr char kNoRequest[] = "the request, or the end of its stream, did not arrive within the deadline";
constexpr char kNotRead[] = "a response was not read within the deadline";

size_t calls_of(const absl::flat_hash_map<std::string, size_t>& counts, const std::string& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

const Quota& quota(CallAdmission::Kind kind) { return kQuotas[static_cast<size_t>(kind)]; }

}  // namespace

int CallAdmission::max_threads() {
  int threads = kSpareThreads;
  for (const Quota& quota : kQuotas) threads += static_cast<int>(quota.all);
  return threads;
}

CallAdmission::Slot::Slot(Slot&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)), kind_(other.kind_), holder_(std::move(other.holder_)) {}

CallAdmission::Slot::~Slot() {
  if (admission_ == nullptr) return;
  MutexLock lock(admission_->mutex_);
  admission_->mutex_.assume_held();  // clang does not recognise the pointer's mutex
  admission_->release(*this);
}

// The reference keeps the call valid as long as it may be cancelled, even after gRPC has released it.
CallAdmission::Deadline::Deadline(CallAdmission& admission, grpc_call* call, Awaited awaited,
                                  std::chrono::milliseconds timeout, Slot* slot)
    : admission_(admission), call_(call), awaited_(awaited), slot_(slot) {
  grpc_call_ref(call_);
  MutexLock lock(admission_.mutex_);
  position_ = admission_.deadlines_.emplace(since_ + timeout, this);
  // Most calls end long before their deadlines: the watching thread is not woken for each.
  if (position_->first < admission_.watched_until_) admission_.changed_.notify_all();
}

CallAdmission::Deadline::~Deadline() {
  {
    MutexLock lock(admission_.mutex_);
    if (pending_) admission_.deadlines_.erase(position_);
  }
  grpc_call_unref(call_);
}

CallAdmission::CallAdmission(Observer observer) : observer_(std::move(observer)), watcher_([this] { watch(); }) {}

CallAdmission::~CallAdmission() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  watcher_.join();
}

CallAdmission::Holder CallAdmission::holder_of(const Principal& principal, const grpc::ServerContextBase& context) {
  Holder holder = address_holder(context);
  if (principal.name.empty()) return holder;
  return {principal.name, principal.role == Role::kOperator, std::move(holder.part)};
}

CallAdmission::Holder CallAdmission::address_holder(const grpc::ServerContextBase& context) {
  std::string address = address_of(context.peer());
  return {absl::StrCat("address ", address), false, std::move(address)};  // no principal's name has a space
}

absl::Status CallAdmission::check_room(Kind kind, const Holder& holder, bool* is_part) {
  const Quota& limit = quota(kind);
  const Count& held = count(kind);
  const auto refusal = [&](absl::string_view who, size_t calls) {
    return absl::UnavailableError(absl::StrCat(who, " has ", calls, " ", limit.what, " in progress; try again later"));
  };
  // Peers on a unix socket cannot be distinguished. The socket's folder excludes other users.
  const bool has_limit = limit.of_part != 0 && !holder.part.empty() && holder.part != "unix";
  const size_t of_part = has_limit ? calls_of(held.by_part, holder.part) : 0;
  *is_part = has_limit && of_part >= limit.of_part;
  if (*is_part) return refusal(holder.part, of_part);
  const size_t own = calls_of(held.by_name, holder.name);
  if (may_take_place(limit.all, held.all, own, holder.is_operator)) return absl::OkStatus();
  return own == 0 ? refusal("the engine", held.all) : refusal(holder.name, own);
}

// Cancels the oldest call that waits for its peer, of the holder that has most calls, if that has more than the new
// call's holder or, for short requests, is the same; with `in_part` one of the same part. Operators' calls give way to
// those of operators only.
bool CallAdmission::make_room(Kind kind, const Holder& holder, bool in_part) {
  const auto& by_name = count(kind).by_name;
  const size_t own = calls_of(by_name, holder.name);
  const auto sending = Clock::now() - kSending;
  Deadline* chosen = nullptr;
  size_t most = 0;
  for (const auto& [time, each] : deadlines_) {
    if (each->slot_ == nullptr || each->slot_->kind_ != kind) continue;
    if (each->awaited_ == Awaited::kAnswer && each->since_ > sending) continue;
    const Holder& other = each->slot_->holder_;
    if ((other.is_operator && !holder.is_operator) || (in_part && other.part != holder.part)) continue;
    const size_t calls = calls_of(by_name, other.name);
    if (calls <= most || (calls <= own && !(other.name == holder.name && quota(kind).is_short))) continue;
    chosen = each;
    most = calls;
  }
  if (chosen == nullptr) return false;
  release(*chosen->slot_);
  chosen->slot_->admission_ = nullptr;
  cancel(*chosen, true);
  return true;
}

absl::StatusOr<CallAdmission::Slot> CallAdmission::admit(Kind kind, Holder holder) {
  MutexLock lock(mutex_);
  Count& held = count(kind);
  for (bool is_part = false;;) {
    absl::Status room = check_room(kind, holder, &is_part);
    if (room.ok()) break;
    if (!make_room(kind, holder, is_part)) return room;
  }
  ++held.all;
  ++held.by_name[holder.name];
  ++held.by_part[holder.part];
  return Slot(this, kind, std::move(holder));
}

void CallAdmission::release(const Slot& slot) {
  Count& held = count(slot.kind_);
  --held.all;
  const auto decrease = [](auto& counts, const std::string& key) {
    const auto found = counts.find(key);
    if (--found->second == 0) counts.erase(found);
  };
  decrease(held.by_name, slot.holder_.name);
  decrease(held.by_part, slot.holder_.part);
  released_.notify_all();
}

void CallAdmission::cancel(Deadline& deadline, bool gives_way) {
  deadline.admission_.mutex_.assume_held();  // is this object's mutex_
  deadlines_.erase(deadline.position_);
  deadline.pending_ = false;
  const bool has_run = deadline.awaited_ == Awaited::kAnswer;
  const bool is_repeated = gives_way && !has_run;
  const auto code = is_repeated ? GRPC_STATUS_UNAVAILABLE : GRPC_STATUS_DEADLINE_EXCEEDED;
  const char* const message = is_repeated ? kGaveWay : has_run ? kNotRead : kNoRequest;
  grpc_call_cancel_with_status(deadline.call_, code, message, nullptr);
}

void CallAdmission::wait_until_idle(std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto admin = counts_.begin() + static_cast<size_t>(Kind::kAdmin);
    return std::any_of(counts_.begin(), admin, [](const Count& count) { return count.all != 0; });
  };
  for (const auto deadline = Clock::now() + timeout; any() && Clock::now() < deadline;) {
    released_.wait_until(mutex_, deadline);
  }
}

void CallAdmission::wait_for_calls(Kind kind, std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  for (const auto deadline = Clock::now() + timeout;
       counts_[static_cast<size_t>(kind)].all != 0 && Clock::now() < deadline;) {
    released_.wait_until(mutex_, deadline);
  }
}

void CallAdmission::watch() {
  MutexLock lock(mutex_);
  while (!ending_) {
    watched_until_ = deadlines_.empty() ? Clock::time_point::max() : deadlines_.begin()->first;
    if (deadlines_.empty()) {
      changed_.wait(mutex_);
    } else if (Clock::now() < watched_until_) {
      changed_.wait_until(mutex_, watched_until_);
    } else {
      cancel(*deadlines_.begin()->second, false);
    }
  }
}

// If a handler only returns a status, its thread waits until the transport has written the status, which a peer that
// does not read can delay. Cancelling the call releases the thread, and the status is sent when the peer reads.
grpc::Status CallAdmission::refuse(grpc::ServerContext& context, const absl::Status& status) const {
  static LogLimit limit;
  const std::string message(status.message()), peer = context.peer();
  // Logged first: a client that has received the status finds the line in the log.
  limit.warn(absl::StrCat("refused ", peer, ": ", message), {.peer = peer});
  grpc_call_cancel_with_status(context.c_call(), static_cast<grpc_status_code>(status.code()), message.c_str(),
                               nullptr);
  observer_.refused(peer, status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message);
}

std::string connection_of(absl::string_view peer) {
  if (absl::StartsWith(peer, "unix")) return "unix";
  const size_t scheme = peer.find(':');
  if (scheme != absl::string_view::npos && absl::StartsWith(peer, "ipv")) peer.remove_prefix(scheme + 1);
  std::string text = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  // Remove the scope of a link-local address, because it has more than one notation.
  const size_t scope = text.find('%'), end = text.find(']');
  if (scope != std::string::npos && end != std::string::npos && scope < end) text.erase(scope, end - scope);
  return text;
}

std::string address_of(absl::string_view peer) {
  std::string text = connection_of(peer);
  text.erase(std::min(text.rfind(':'), text.size()));
  if (absl::StartsWith(text, "127.") || text == "[::1]") return "127.0.0.1";
  if (!absl::StartsWith(text, "[")) return text;
  in6_addr address{};
  if (inet_pton(AF_INET6, text.substr(1, text.size() - 2).c_str(), &address) != 1) return text;
  std::fill(address.s6_addr + 8, address.s6_addr + 16, uint8_t{0});
  char network[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, &address, network, sizeof network);
}

}  // namespace tt::server
