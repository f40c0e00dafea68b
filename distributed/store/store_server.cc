#include "distributed/store/store_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "distributed/store/grpc_options.h"
#include "distributed/store/wire.h"

namespace tt::distributed {
namespace {

constexpr size_t kMaxDeparturesPerMessage = 1024;
constexpr std::chrono::milliseconds kShutdownGrace{200};  // for sending the last status of each call

// A store, and the id that distinguishes it from earlier and later stores at the same address.
struct Served {
  explicit Served(MemoryStore::Charge charge) : store(std::move(charge)) {}

  MemoryStore store;
  uint64_t id = 0;
};

absl::Status malformed(absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("[store] malformed request: ", reason));
}

absl::Status check_store_id(const Served& served, uint64_t id) {
  if (id == 0 || id == served.id) return absl::OkStatus();
  return absl::FailedPreconditionError("[store] the store was lost; a new, empty store serves its address");
}

// Executes an operation that does not wait.
absl::StatusOr<v1::StoreReply> execute(MemoryStore& store, v1::StoreRequest& request) {
  v1::StoreReply reply;
  absl::Status status;
  switch (request.operation_case()) {
    case v1::StoreRequest::kSet:
      status = store.set(take(request.mutable_set()->mutable_keys()), take(request.mutable_set()->mutable_values()));
      break;
    case v1::StoreRequest::kAdd: {
      const absl::StatusOr<int64_t> sum = store.add(request.add().key(), request.add().amount());
      if (sum.ok()) reply.set_number(*sum);
      status = sum.status();
      break;
    }
    case v1::StoreRequest::kAppend: status = store.append(request.append().key(), request.append().value()); break;
    case v1::StoreRequest::kCompareSet: {
      const v1::CompareSetRequest& operation = request.compare_set();
      absl::StatusOr<std::string> value = store.compare_set(operation.key(), operation.expected(), operation.desired());
      if (value.ok()) reply.add_values(*std::move(value));
      status = value.status();
      break;
    }
    case v1::StoreRequest::kErase: {
      const absl::StatusOr<bool> existed = store.erase(request.erase().key());
      if (existed.ok()) reply.set_exists(*existed);
      status = existed.status();
      break;
    }
    case v1::StoreRequest::kCheck: {
      const absl::StatusOr<bool> exist = store.check(take(request.mutable_check()->mutable_keys()));
      if (exist.ok()) reply.set_exists(*exist);
      status = exist.status();
      break;
    }
    case v1::StoreRequest::kSize: {
      const absl::StatusOr<int64_t> size = store.size();
      if (size.ok()) reply.set_number(*size);
      status = size.status();
      break;
    }
    default: status = malformed("it has no operation, or one that this version does not have");
  }
  if (!status.ok()) return status;
  return reply;
}

// One call of Store.Call. gRPC calls OnDone() after Finish() or StartWriteAndFinish(), on any thread.
class OperationCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit OperationCall(Served& served) : served_(served) {
    { MutexLock lock(mutex_); }  // ThreadSanitizer does not see that gRPC calls OnCancel() after the constructor
    StartRead(&buffer_);
  }

  void OnReadDone(bool ok) override {
    v1::StoreRequest request;
    if (!ok) return Finish(to_grpc(malformed("the call ended before it")));
    if (!deserialize(&buffer_, &request)) return Finish(to_grpc(malformed("it is not a StoreRequest")));
    if (absl::Status status = check_store_id(served_, request.store_id()); !status.ok()) {
      return Finish(to_grpc(status));
    }
    if (request.has_get()) {
      start_get(request.mutable_get()->mutable_keys(), request.get().timeout_milliseconds(), kMaxPartBytes);
    } else if (request.has_wait()) {
      start_get(request.mutable_wait()->mutable_keys(), request.wait().timeout_milliseconds(), 0);
    } else {
      answer(execute(served_.store, request));
    }
  }

  // May run concurrently with the other functions.
  void OnCancel() override {
    uint64_t id;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      id = get_id_;
    }
    if (id != 0 && served_.store.cancel(id)) Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override { delete this; }

 private:
  // Called by OnReadDone(): gRPC does not call OnDone() before that has returned.
  void start_get(RepeatedBytes* keys, uint64_t timeout, size_t max_bytes) {
    constexpr uint64_t kMaxMilliseconds = uint64_t{1} << 40;  // decades; the store has a smaller maximum
    const uint64_t id = served_.store.async_get(take(keys), Store::Milliseconds(std::min(timeout, kMaxMilliseconds)),
                                                max_bytes, [this](MemoryStore::Values values) {
                                                  v1::StoreReply reply;
                                                  if (!values.ok()) return answer(values.status());
                                                  for (std::string& value : *values) reply.add_values(std::move(value));
                                                  answer(std::move(reply));
                                                });
    bool cancelled;
    {
      MutexLock lock(mutex_);
      get_id_ = id;
      cancelled = cancelled_;
    }
    if (cancelled && id != 0 && served_.store.cancel(id)) Finish(grpc::Status::CANCELLED);
  }

  void answer(absl::StatusOr<v1::StoreReply> reply) {
    if (!reply.ok()) return Finish(to_grpc(reply.status()));
    reply->set_store_id(served_.id);
    serialize(*reply, &buffer_);
    StartWriteAndFinish(&buffer_, grpc::WriteOptions(), grpc::Status::OK);
  }

  Served& served_;
  grpc::ByteBuffer buffer_;
  Mutex mutex_;
  uint64_t get_id_ ABSL_GUARDED_BY(mutex_) = 0;  // in the MemoryStore
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

// One call of Store.Join. A read is always outstanding until the member leaves; it fails if the connection is lost.
class JoinCall final : public grpc::ServerGenericBidiReactor {
 public:
  JoinCall(Served& served, const grpc::GenericCallbackServerContext* context) : served_(served), context_(context) {
    StartRead(&in_);
  }

  void OnReadDone(bool ok) override {
    // member_ is set by this function only.
    if (member_) {
      end_membership(ok);
    } else if (absl::Status status = join(ok); !status.ok()) {
      finish(to_grpc(status));
    } else {
      send();
      StartRead(&in_);
    }
  }

  void OnWriteDone(bool ok) override {
    std::optional<grpc::Status> end;
    {
      MutexLock lock(mutex_);
      writing_ = false;
      end = end_;
    }
    if (end) return Finish(*end);
    if (ok) send();  // otherwise the read fails too
  }

  void OnDone() override {
    if (member_) {
      served_.store.leave(*member_, "its connection to the store was lost");
      MemoryStore::stop_notifying(*member_);
    }
    delete this;
  }

 private:
  absl::Status join(bool ok) {
    v1::JoinRequest request;
    if (!ok) return malformed("the call ended before it");
    if (!deserialize(&in_, &request) || !request.has_join()) return malformed("expected a `join` first");
    if (absl::Status status = check_store_id(served_, request.store_id()); !status.ok()) return status;
    const int rank = static_cast<int>(std::min<uint32_t>(request.join().rank(), kMaxRank + 1));
    absl::StatusOr<std::shared_ptr<MemoryStore::Member>> member =
        served_.store.async_join(request.join().group(), rank, [this] { send(); });
    if (!member.ok()) return member.status();
    MutexLock lock(mutex_);
    member_ = *std::move(member);
    return absl::OkStatus();
  }

  void end_membership(bool ok) {
    v1::JoinRequest request;
    std::string reason = context_->IsCancelled() ? "its connection to the store was lost" : "it left the group";
    if (ok && deserialize(&in_, &request) && request.has_leave()) reason = request.leave().reason();
    served_.store.leave(*member_, reason);
    finish(grpc::Status::OK);
  }

  // Sends the members that have left since the last message, unless a message is being sent.
  void send() {
    std::optional<grpc::Status> lost;
    {
      MutexLock lock(mutex_);
      if (!member_ || writing_ || end_) return;
      absl::StatusOr<std::vector<MemoryStore::Departure>> left =
          served_.store.departures(*member_, kMaxDeparturesPerMessage);
      if (!left.ok()) {
        lost = end_ = to_grpc(left.status());
      } else {
        if (left->empty() && announced_) return;
        v1::JoinEvent event;
        event.set_joined(!announced_);
        for (MemoryStore::Departure& departure : *left) {
          v1::MemberLeft* entry = event.add_left();
          entry->set_rank(static_cast<uint32_t>(departure.rank));
          entry->set_reason(std::move(departure.reason));
        }
        announced_ = writing_ = true;
        serialize(event, &out_);
        StartWrite(&out_);
      }
    }
    if (lost) Finish(*lost);
  }

  // Ends the call after the message that is being sent.
  void finish(const grpc::Status& status) {
    {
      MutexLock lock(mutex_);
      if (end_) return;
      end_ = status;
      if (writing_) return;
    }
    Finish(status);
  }

  Served& served_;
  const grpc::GenericCallbackServerContext* const context_;
  grpc::ByteBuffer in_;
  grpc::ByteBuffer out_;                         // the message that is being sent
  std::shared_ptr<MemoryStore::Member> member_;  // set once, under mutex_
  Mutex mutex_;
  bool announced_ ABSL_GUARDED_BY(mutex_) = false;  // the first message has been sent
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);  // the call's status; set once
};

// Serves both methods without generated code, which would read requests before the token is checked.
class Service final : public grpc::CallbackGenericService {
 public:
  Service(Served& served, absl::string_view token, const ServerPort& port)
      : served_(served), token_("store", token), port_(port) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const absl::Status status = port_.checked(*context, token_.check(*context));
    if (!status.ok()) return new RefusedCall(to_grpc(status));
    if (context->method() == "/teletensor.v1.Store/Call") return new OperationCall(served_);
    if (context->method() == "/teletensor.v1.Store/Join") return new JoinCall(served_, context);
    return new RefusedCall(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "unknown method"));
  }

 private:
  Served& served_;
  const RequiredToken token_;
  const ServerPort& port_;
};

absl::StatusOr<uint64_t> random_id() {
  uint64_t id = 0;
  while (id == 0) {
    if (getrandom(&id, sizeof id, 0) != sizeof id) return absl::UnavailableError("[store] getrandom failed");
  }
  return id;
}

}  // namespace

class StoreServer::Impl {
 public:
  Impl(const std::string& token, MemoryStore::Charge charge)
      : served_(std::move(charge)), service_(served_, token, port_) {}
  ~Impl() {
    port_.stop();
    served_.store.close("the store has stopped");
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  }

  absl::Status start(const std::string& address, const OpenGate& open_gate) {
    absl::StatusOr<uint64_t> id = random_id();
    if (!id.ok()) return id.status();
    served_.id = *id;
    grpc::ServerBuilder builder;
    if (absl::Status status = port_.open(&builder, address, "store", open_gate); !status.ok()) return status;
    builder.RegisterCallbackGenericService(&service_);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    server_ = builder.BuildAndStart();
    if (server_ && port_.start()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("[store] cannot listen on ", address, ": it is in use, or not an address of this host"));
  }

  int port() const { return port_.number(); }
  MemoryStore& store() { return served_.store; }

 private:
  // In this order: the server's calls use the service and the store.
  Served served_;
  ServerPort port_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::start(const std::string& address, const std::string& token,
                                                                MemoryStore::Charge charge, const OpenGate& open_gate) {
  if (absl::Status status = check_address(address, true); !status.ok()) return status;
  if (absl::Status status = check_token(token); !status.ok()) return status;
  auto impl = std::make_unique<Impl>(token, std::move(charge));
  if (absl::Status status = impl->start(address, open_gate); !status.ok()) return status;
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(impl)));
}

StoreServer::StoreServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreServer::~StoreServer() = default;

int StoreServer::port() const { return impl_->port(); }
MemoryStore& StoreServer::store() { return impl_->store(); }

}  // namespace tt::distributed
