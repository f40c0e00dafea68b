#include "distributed/store/remote_store.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "distributed/store/grpc_options.h"
#include "distributed/store/limits.h"
#include "distributed/store/peer_tls.h"
#include "distributed/store/wire.h"

namespace tt::distributed {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = Store::Milliseconds;

constexpr Milliseconds kInterruptInterval{50};
constexpr Milliseconds kRetryInterval{100};
constexpr Milliseconds kMaxTimeout = std::chrono::hours(24 * 365);  // so that deadlines do not overflow
// How long the end of a membership waits for the server's confirmation, which means that the other members receive the
// reason of leave().
constexpr Milliseconds kLeaveGrace{500};

// The store's own errors have a prefix; all others are gRPC's, and mean that the store was not reached.
absl::Status error_of(const grpc::Status& status, const std::string& address) {
  if (status.ok() || absl::StartsWith(status.error_message(), "[store]")) return from_grpc(status);
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) return from_grpc(status);
  return absl::UnavailableError(
      absl::StrCat("[store] the store at ", address, " cannot be reached: ", status.error_message()));
}

absl::Status interrupted_error() { return absl::CancelledError("[store] the call was interrupted"); }

// Waits until `done` is true, which callbacks set under `mutex`. Returns false as soon as `interrupted` returns true.
bool wait_until_done(Mutex& mutex, CondVar& changed, const bool& done, const RemoteStore::Interrupted& interrupted) {
  while (true) {
    {
      MutexLock lock(mutex);
      if (!interrupted) {
        changed.wait(mutex, [&] { return done; });
        return true;
      }
      if (changed.wait_for(mutex, kInterruptInterval, [&] { return done; })) return true;
    }
    if (interrupted()) return false;
  }
}

Milliseconds until(Clock::time_point deadline) {
  return std::max(Milliseconds::zero(), std::chrono::ceil<Milliseconds>(deadline - Clock::now()));
}

// Returns the end of the longest range of keys from `begin` that fits into a message with its values, at least one.
size_t part_end(absl::Span<const std::string> keys, absl::Span<const std::string> values, size_t begin) {
  size_t end = begin, bytes = 0;
  for (; end < keys.size(); ++end) {
    bytes += keys[end].size() + (values.empty() ? 0 : values[end].size()) + 8;
    if (bytes > kMaxPartBytes && end > begin) break;
  }
  return end;
}

}  // namespace

// The process's connection to one address.
class RemoteStore::Connection {
 public:
  explicit Connection(const std::string& address)
      : channel_(grpc::CreateCustomChannel(channel_target(address), peer_channel_credentials(), channel_arguments())),
        stub_(v1::Store::NewStub(channel_)),
        process_(getpid()) {}

  static std::shared_ptr<Connection> to(const std::string& address) {
    static Mutex mutex;
    static auto& connections = *new absl::flat_hash_map<std::string, std::weak_ptr<Connection>>;
    MutexLock lock(mutex);
    std::weak_ptr<Connection>& entry = connections[address];
    std::shared_ptr<Connection> connection = entry.lock();
    if (!connection) entry = connection = std::make_shared<Connection>(address);
    return connection;
  }

  v1::Store::Stub& stub() { return *stub_; }
  // Prepares `context`, executes one call and waits for its end.
  grpc::Status call(grpc::ClientContext* context, const std::string& authorization, const v1::StoreRequest& request,
                    v1::StoreReply* reply, const Interrupted& interrupted) {
    context->AddMetadata("authorization", authorization);
    Mutex mutex;
    CondVar changed;
    bool done = false;
    grpc::Status result;
    stub_->async()->Call(context, &request, reply, [&](grpc::Status status) {
      MutexLock lock(mutex);
      result = std::move(status);
      done = true;
      changed.notify_one();
    });
    if (wait_until_done(mutex, changed, done, interrupted)) return result;
    context->TryCancel();
    wait_until_done(mutex, changed, done, nullptr);
    return to_grpc(interrupted_error());
  }
  // gRPC's threads do not exist in a forked process, so calls would wait for ever.
  absl::Status check_process() const {
    if (getpid() == process_) return absl::OkStatus();
    return absl::FailedPreconditionError("[store] the store was connected before fork(); connect in the new process");
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Store::Stub> stub_;
  const pid_t process_;
};

// One call of Store.Join.
class RemoteStore::JoinStream final : public Membership, grpc::ClientBidiReactor<v1::JoinRequest, v1::JoinEvent> {
 public:
  JoinStream(std::shared_ptr<Connection> connection, const std::string& authorization, v1::JoinRequest request,
             MemberLeft left, std::string address)
      : connection_(std::move(connection)),
        address_(std::move(address)),
        member_left_(std::move(left)),
        join_(std::move(request)) {
    context_.AddMetadata("authorization", authorization);
    connection_->stub().async()->Join(&context_, this);
    StartWrite(&join_);
    StartRead(&event_);
    AddHold();  // for the write that leave() starts
    StartCall();
  }

  ~JoinStream() override {
    leave("it left the group");
    bool cancel, drop_hold;
    {
      MutexLock lock(mutex_);
      if (joined_)
        changed_.wait_for(mutex_, kLeaveGrace, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; });
      cancel = !done_;
      drop_hold = cancel && std::exchange(held_, false);
    }
    if (cancel) context_.TryCancel();
    if (drop_hold) RemoveHold();
    MutexLock lock(mutex_);
    changed_.wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; });
  }

  // Waits for the server's first message.
  absl::Status wait_until_joined(const Interrupted& interrupted) {
    if (!wait_until_done(mutex_, changed_, answered_, interrupted)) return interrupted_error();
    MutexLock lock(mutex_);
    return joined_ ? absl::OkStatus() : error_of(status_, address_);
  }

  void leave(const std::string& reason) override {
    {
      MutexLock lock(mutex_);
      if (silent_) return;
      silent_ = true;
      leave_.mutable_leave()->set_reason(reason.substr(0, kMaxReasonBytes));
      if (writing_) return;  // OnWriteDone() sends it
    }
    send_leave();
  }

 private:
  void OnReadDone(bool ok) override {
    bool drop_hold = false;
    {
      MutexLock lock(mutex_);
      if (ok) {
        joined_ = answered_ = true;
        changed_.notify_all();
      } else {
        drop_hold = std::exchange(held_, false);
      }
    }
    if (ok) {
      for (const v1::MemberLeft& member : event_.left()) report(static_cast<int>(member.rank()), member.reason());
      StartRead(&event_);
    } else if (drop_hold) {
      RemoveHold();
    }
  }

  void OnWriteDone(bool ok) override {
    bool leaving;
    {
      MutexLock lock(mutex_);
      writing_ = false;
      leaving = ok && leave_.has_leave();
    }
    if (leaving) send_leave();
  }

  void OnDone(const grpc::Status& status) override {
    bool lost;
    {
      MutexLock lock(mutex_);
      lost = joined_;
    }
    const std::string reason(error_of(status, address_).message());
    if (lost) report(-1, reason.empty() ? "[store] the store ended the membership" : reason);
    MutexLock lock(mutex_);
    status_ = status;
    answered_ = done_ = true;
    changed_.notify_all();
  }

  void report(int rank, const std::string& reason) {
    {
      MutexLock lock(mutex_);
      if (silent_) return;
    }
    member_left_(rank, reason);  // the destructor waits for OnDone(), which follows
  }

  void send_leave() {
    {
      MutexLock lock(mutex_);
      if (!std::exchange(held_, false)) return;  // the stream has ended, or this has been called
    }
    StartWriteLast(&leave_, grpc::WriteOptions());
    RemoveHold();
  }

  const std::shared_ptr<Connection> connection_;
  const std::string address_;
  const MemberLeft member_left_;
  grpc::ClientContext context_;
  v1::JoinRequest join_;
  v1::JoinRequest leave_;  // constant once it is being sent
  v1::JoinEvent event_;
  Mutex mutex_;
  CondVar changed_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = true;
  bool held_ ABSL_GUARDED_BY(mutex_) = true;     // gRPC calls OnDone() only without the hold
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;  // leave() was called: member_left_ is not called any more
  bool joined_ ABSL_GUARDED_BY(mutex_) = false;
  bool answered_ = false;  // the first message was received, or the call has ended; guarded by mutex_
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<RemoteStore>> RemoteStore::connect(const std::string& address, const std::string& token,
                                                                  Milliseconds timeout, Interrupted interrupted) {
  if (absl::Status status = check_address(address, false); !status.ok()) return status;
  if (absl::Status status = check_token(token); !status.ok()) return status;
  std::unique_ptr<RemoteStore> store(new RemoteStore(address, token, std::move(interrupted)));
  if (absl::Status status = store->connect(std::min(timeout, kMaxTimeout)); !status.ok()) return status;
  return store;
}

RemoteStore::RemoteStore(std::string address, const std::string& token, Interrupted interrupted)
    : address_(std::move(address)),
      authorization_(absl::StrCat("Bearer ", token)),
      interrupted_(std::move(interrupted)),
      connection_(Connection::to(address_)) {}

RemoteStore::~RemoteStore() = default;

absl::Status RemoteStore::connect(Milliseconds timeout) {
  if (absl::Status status = connection_->check_process(); !status.ok()) return status;
  const auto deadline = std::chrono::system_clock::now() + timeout;
  v1::StoreRequest request;
  request.mutable_size();
  while (true) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(deadline);
    v1::StoreReply reply;
    const grpc::Status status = connection_->call(&context, authorization_, request, &reply, interrupted_);
    if (status.ok()) {
      store_id_ = reply.store_id();
      return absl::OkStatus();
    }
    const bool expired = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                         std::chrono::system_clock::now() + kRetryInterval >= deadline;
    absl::Status error = error_of(status, address_);
    if (!absl::IsUnavailable(error)) return error;
    if (expired) {
      return absl::UnavailableError(absl::StrCat("[store] the store at ", address_, " cannot be reached within ",
                                                 timeout.count(), " ms: ", status.error_message()));
    }
    std::this_thread::sleep_for(kRetryInterval);  // the connection was lost during the call
    if (interrupted_ && interrupted_()) return interrupted_error();
  }
}

absl::Status RemoteStore::call(v1::StoreRequest& request, v1::StoreReply* reply) {
  if (absl::Status status = connection_->check_process(); !status.ok()) return status;
  grpc::ClientContext context;
  request.set_store_id(store_id_);
  return error_of(connection_->call(&context, authorization_, request, reply, interrupted_), address_);
}

absl::Status RemoteStore::set(absl::Span<const std::string> keys, absl::Span<const std::string> values) {
  if (absl::Status status = check_pairs(keys, values); !status.ok()) return status;
  for (size_t begin = 0, end; begin < keys.size(); begin = end) {
    end = part_end(keys, values, begin);
    v1::StoreRequest request;
    v1::StoreReply reply;
    assign(request.mutable_set()->mutable_keys(), keys.subspan(begin, end - begin));
    assign(request.mutable_set()->mutable_values(), values.subspan(begin, end - begin));
    if (absl::Status status = call(request, &reply); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> RemoteStore::wait_for(Wanted wanted, absl::Span<const std::string> keys,
                                                               Milliseconds timeout) {
  if (absl::Status status = check_keys(keys); !status.ok()) return status;
  const Clock::time_point deadline = Clock::now() + std::min(timeout, kMaxTimeout);
  std::vector<std::string> values;
  values.reserve(wanted == Wanted::kValues ? keys.size() : 0);
  for (size_t begin = 0, end; begin < keys.size(); begin = end) {
    end = part_end(keys, {}, begin);
    const auto remaining =
        static_cast<uint64_t>((begin == 0 ? std::max(timeout, Milliseconds::zero()) : until(deadline)).count());
    v1::StoreRequest request;
    v1::StoreReply reply;
    if (wanted == Wanted::kValues) {
      assign(request.mutable_get()->mutable_keys(), keys.subspan(begin, end - begin));
      request.mutable_get()->set_timeout_milliseconds(remaining);
    } else {
      assign(request.mutable_wait()->mutable_keys(), keys.subspan(begin, end - begin));
      request.mutable_wait()->set_timeout_milliseconds(remaining);
    }
    if (absl::Status status = call(request, &reply); !status.ok()) return status;
    if (wanted == Wanted::kExistence) continue;
    const auto received = static_cast<size_t>(reply.values_size());
    if (received == 0 || received > end - begin) {
      return absl::InternalError(
          absl::StrCat("[store] expected from 1 to ", end - begin, " values, received ", received));
    }
    for (std::string& value : *reply.mutable_values()) values.push_back(std::move(value));
    end = begin + received;
  }
  return values;
}

absl::StatusOr<std::vector<std::string>> RemoteStore::get(absl::Span<const std::string> keys, Milliseconds timeout) {
  return wait_for(Wanted::kValues, keys, timeout);
}

absl::Status RemoteStore::wait(absl::Span<const std::string> keys, Milliseconds timeout) {
  return wait_for(Wanted::kExistence, keys, timeout).status();
}

absl::StatusOr<int64_t> RemoteStore::add(const std::string& key, int64_t amount) {
  if (absl::Status status = check_key(key); !status.ok()) return status;
  v1::StoreRequest request;
  v1::StoreReply reply;
  request.mutable_add()->set_key(key);
  request.mutable_add()->set_amount(amount);
  if (absl::Status status = call(request, &reply); !status.ok()) return status;
  return reply.number();
}

absl::Status RemoteStore::append(const std::string& key, const std::string& value) {
  if (absl::Status status = check_key(key); !status.ok()) return status;
  if (absl::Status status = check_value(value); !status.ok()) return status;
  v1::StoreRequest request;
  v1::StoreReply reply;
  request.mutable_append()->set_key(key);
  request.mutable_append()->set_value(value);
  return call(request, &reply);
}

absl::StatusOr<std::string> RemoteStore::compare_set(const std::string& key, const std::string& expected,
                                                     const std::string& desired) {
  if (absl::Status status = check_key(key); !status.ok()) return status;
  if (absl::Status status = check_value(expected); !status.ok()) return status;
  if (absl::Status status = check_value(desired); !status.ok()) return status;
  v1::StoreRequest request;
  v1::StoreReply reply;
  request.mutable_compare_set()->set_key(key);
  request.mutable_compare_set()->set_expected(expected);
  request.mutable_compare_set()->set_desired(desired);
  if (absl::Status status = call(request, &reply); !status.ok()) return status;
  if (reply.values_size() != 1) {
    return absl::InternalError(absl::StrCat("[store] expected 1 value, received ", reply.values_size()));
  }
  return std::move(*reply.mutable_values(0));
}

absl::StatusOr<bool> RemoteStore::erase(const std::string& key) {
  if (absl::Status status = check_key(key); !status.ok()) return status;
  v1::StoreRequest request;
  v1::StoreReply reply;
  request.mutable_erase()->set_key(key);
  if (absl::Status status = call(request, &reply); !status.ok()) return status;
  return reply.exists();
}

absl::StatusOr<bool> RemoteStore::check(absl::Span<const std::string> keys) {
  if (absl::Status status = check_keys(keys); !status.ok()) return status;
  for (size_t begin = 0, end; begin < keys.size(); begin = end) {
    end = part_end(keys, {}, begin);
    v1::StoreRequest request;
    v1::StoreReply reply;
    assign(request.mutable_check()->mutable_keys(), keys.subspan(begin, end - begin));
    if (absl::Status status = call(request, &reply); !status.ok()) return status;
    if (!reply.exists()) return false;
  }
  return true;
}

absl::StatusOr<int64_t> RemoteStore::size() {
  v1::StoreRequest request;
  v1::StoreReply reply;
  request.mutable_size();
  if (absl::Status status = call(request, &reply); !status.ok()) return status;
  return reply.number();
}

absl::StatusOr<std::unique_ptr<Membership>> RemoteStore::join(const std::string& group, int rank, MemberLeft left) {
  if (absl::Status status = check_member(group, rank); !status.ok()) return status;
  if (absl::Status status = connection_->check_process(); !status.ok()) return status;
  v1::JoinRequest request;
  request.set_store_id(store_id_);
  request.mutable_join()->set_group(group);
  request.mutable_join()->set_rank(static_cast<uint32_t>(rank));
  auto stream =
      std::make_unique<JoinStream>(connection_, authorization_, std::move(request), std::move(left), address_);
  if (absl::Status status = stream->wait_until_joined(interrupted_); !status.ok()) return status;
  return stream;
}

}  // namespace tt::distributed
