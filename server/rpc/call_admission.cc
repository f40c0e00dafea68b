#include "server/rpc/call_admission.h"

#include <arpa/inet.h>
#include <grpc/grpc.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/log.h"

namespace tt::server {
namespace {

struct Quota {
  const char* what;
  int all;
  int of_holder;
};

// Indexed by CallAdmission::Kind. A holder is an address, or a session for streams and transfers. A session has one
// current stream. Older streams may still exist: one that executes a frame, and those that end at this moment.
constexpr Quota kQuotas[CallAdmission::kKinds] = {
    {"Hello calls", 64, 16},
    {"streams", 1100, 8},
    {"transfers", 640, 128},
    {"requests", 64, 16},
    {"inference calls", 512, 256},
    {"Admin calls", 64, 16},
    {"reflection calls and probes", 16, 4},
};
// Threads for calls that are refused when their metadata arrives: 64 calls on each of the 8 connections without a token
// that one address may have (acceptor.cc, listener.cc), and 64 more.
constexpr int kSpareThreads = 8 * 64 + 64;

const Quota& quota(CallAdmission::Kind kind) { return kQuotas[static_cast<size_t>(kind)]; }

}  // namespace

int CallAdmission::max_threads() {
  int threads = kSpareThreads;
  for (const Quota& quota : kQuotas) threads += quota.all;
  return threads;
}

CallAdmission::Slot::Slot(Slot&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)), kind_(other.kind_), holder_(std::move(other.holder_)) {}

CallAdmission::Slot::~Slot() {
  if (admission_ != nullptr) admission_->release(kind_, holder_);
}

// The reference keeps the call valid as long as it may be cancelled, even after gRPC has released it.
CallAdmission::Deadline::Deadline(CallAdmission& admission, grpc_call* call, std::chrono::milliseconds timeout,
                                  const char* message)
    : admission_(admission), call_(call), message_(message) {
  grpc_call_ref(call_);
  MutexLock lock(admission_.mutex_);
  position_ = admission_.deadlines_.emplace(Clock::now() + timeout, this);
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

absl::StatusOr<CallAdmission::Slot> CallAdmission::admit(Kind kind, std::string holder) {
  MutexLock lock(mutex_);
  Count& count = counts_[static_cast<size_t>(kind)];
  const Quota& limit = quota(kind);
  // Peers on a unix socket cannot be distinguished. The socket's folder excludes other users.
  const int of_holder = holder == "unix" ? limit.all : limit.of_holder;
  if (count.all >= limit.all) {
    return absl::UnavailableError(absl::StrCat("the engine has ", limit.all, " ", limit.what, " in progress"));
  }
  int& held = count.by_holder[holder];
  if (held >= of_holder) {
    return absl::UnavailableError(absl::StrCat(holder, " has ", held, " ", limit.what, " in progress"));
  }
  ++held;
  ++count.all;
  return Slot(this, kind, std::move(holder));
}

absl::StatusOr<CallAdmission::Slot> CallAdmission::admit(Kind kind, const grpc::ServerContextBase& context) {
  const std::string peer = context.peer();
  authenticated(peer);
  return admit(kind, address_of(peer));
}

void CallAdmission::release(Kind kind, const std::string& holder) {
  MutexLock lock(mutex_);
  Count& count = counts_[static_cast<size_t>(kind)];
  --count.all;
  auto found = count.by_holder.find(holder);
  if (--found->second == 0) count.by_holder.erase(found);
  released_.notify_all();
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
      auto first = deadlines_.begin();
      Deadline& deadline = *first->second;
      deadlines_.erase(first);
      deadline.admission_.mutex_.assume_held();  // is this object's mutex_
      deadline.pending_ = false;
      grpc_call_cancel_with_status(deadline.call_, GRPC_STATUS_DEADLINE_EXCEEDED, deadline.message_, nullptr);
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
