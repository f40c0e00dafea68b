#include "distributed/pull/pull_server.h"

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "distributed/pull/wire.h"
#include "distributed/store/grpc_options.h"

namespace tt::distributed {
namespace {

constexpr std::chrono::milliseconds kShutdownGrace{200};  // for sending the last status of each call
constexpr size_t kMaxRequestBytes = 1024;
constexpr int kMaxCallsPerConnection = 4096;

// Cancels a call that makes no progress, or when the offered value's owner ends. Thread-safe.
class StallTimer : public std::enable_shared_from_this<StallTimer> {
 public:
  StallTimer(grpc::GenericCallbackServerContext* context, std::chrono::milliseconds limit)
      : limit_(limit), context_(context) {}
  void start() {
    MutexLock lock(mutex_);
    set();
  }
  void cancel() {
    MutexLock lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }
  void on_progress() { progressed_.store(true, std::memory_order_relaxed); }
  // After this, the context is not used.
  void stop() {
    MutexLock lock(mutex_);
    context_ = nullptr;
    alarm_ = nullptr;
  }

 private:
  void set() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    alarm_ = std::make_unique<grpc::Alarm>();  // not the one whose function is running
    alarm_->Set(std::chrono::system_clock::now() + limit_,
                [self = shared_from_this()](bool expired) { self->check(expired); });
  }
  void check(bool expired) {
    MutexLock lock(mutex_);
    if (!expired || context_ == nullptr) return;
    if (!progressed_.exchange(false, std::memory_order_relaxed)) return context_->TryCancel();
    set();
  }

  const std::chrono::milliseconds limit_;
  std::atomic<bool> progressed_{false};
  Mutex mutex_;
  grpc::GenericCallbackServerContext* context_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);  // null: not started, or stopped
};

v1::PullReply first_reply(const OfferedValue& value) {
  v1::PullReply reply;
  if (value.error) {
    reply.mutable_error()->set_kind(static_cast<uint32_t>(value.error->kind()));
    reply.mutable_error()->set_message(value.error->message().substr(0, kMaxErrorBytes));
  } else {
    reply.mutable_header()->set_dtype(static_cast<uint32_t>(value.tensor.dtype()));
    for (int64_t size : value.tensor.sizes()) reply.mutable_header()->add_sizes(size);
  }
  return reply;
}

// One call of Pull.Pull. gRPC calls OnDone() after Finish() or StartWriteAndFinish(), on any thread.
class TransferCall final : public grpc::ServerGenericBidiReactor {
 public:
  TransferCall(OfferTable& offers, std::chrono::milliseconds stall_limit, grpc::GenericCallbackServerContext* context)
      : offers_(offers), timer_(std::make_shared<StallTimer>(context, stall_limit)) {
    { MutexLock lock(mutex_); }  // ThreadSanitizer does not see that gRPC calls OnCancel() after the constructor
    StartRead(&buffer_);
  }

  void OnReadDone(bool ok) override {
    v1::PullRequest request;
    if (!ok || !deserialize(&buffer_, &request)) {
      return Finish(to_grpc(absl::InvalidArgumentError("[pull] malformed request: it is not a PullRequest")));
    }
    if (absl::Status status = OfferTable::check_capability(request.capability()); !status.ok()) {
      return Finish(to_grpc(status));
    }
    const auto longest = static_cast<uint64_t>(OfferTable::kMaxTimeout.count());
    const OfferTable::Milliseconds timeout(std::min(request.timeout_milliseconds(), longest));
    const uint64_t wait = offers_.take(request.capability(), timeout,
                                       [this](absl::StatusOr<OfferTable::Value> value) { send(std::move(value)); });
    if (wait == 0) return;
    // gRPC calls OnDone() only after this function has returned.
    bool cancelled;
    {
      MutexLock lock(mutex_);
      wait_ = wait;
      cancelled = cancelled_;
    }
    if (cancelled && offers_.cancel(wait)) Finish(grpc::Status::CANCELLED);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    timer_->on_progress();
    send_next();
  }

  // May run concurrently with the other functions.
  void OnCancel() override {
    uint64_t wait;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      wait = wait_;
    }
    if (wait != 0 && offers_.cancel(wait)) Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    timer_->stop();
    if (stop_ != 0) value_->owner_end->remove(stop_);
    delete this;
  }

 private:
  void send(absl::StatusOr<OfferTable::Value> value) {
    if (!value.ok()) return Finish(to_grpc(value.status()));
    value_ = *std::move(value);
    serialize(first_reply(*value_), &buffer_);
    if (value_->error) return StartWriteAndFinish(&buffer_, grpc::WriteOptions(), grpc::Status::OK);
    if (value_->owner_end) {
      stop_ = value_->owner_end->add([timer = timer_] { timer->cancel(); });
      if (stop_ == 0) return Finish(grpc::Status::CANCELLED);
    }
    const Tensor& tensor = value_->tensor;
    rest_ = {tensor.data_as<const char>(), static_cast<size_t>(tensor.numel()) * item_size(tensor.dtype())};
    timer_->start();
    StartWrite(&buffer_);
  }

  void send_next() {
    if (rest_.empty()) return Finish(grpc::Status::OK);
    const absl::Span<const char> part = rest_.subspan(0, kDataBytes);
    rest_.remove_prefix(part.size());
    buffer_ = data_reply(value_, part);
    StartWrite(&buffer_);
  }

  OfferTable& offers_;
  const std::shared_ptr<StallTimer> timer_;
  grpc::ByteBuffer buffer_;
  OfferTable::Value value_;
  uint64_t stop_ = 0;            // in the value's OwnerEnd
  absl::Span<const char> rest_;  // of the value's bytes: not sent yet
  Mutex mutex_;
  uint64_t wait_ ABSL_GUARDED_BY(mutex_) = 0;  // in the OfferTable
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

class Service final : public grpc::CallbackGenericService {
 public:
  Service(OfferTable& offers, absl::string_view token, std::chrono::milliseconds stall_limit, const ServerPort& port)
      : offers_(offers), token_("pull server", token), stall_limit_(stall_limit), port_(port) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const absl::Status status = port_.checked(*context, token_.check(*context));
    if (!status.ok()) return new RefusedCall(to_grpc(status));
    if (context->method() == kPullMethod) return new TransferCall(offers_, stall_limit_, context);
    return new RefusedCall(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "unknown method"));
  }

 private:
  OfferTable& offers_;
  const RequiredToken token_;
  const std::chrono::milliseconds stall_limit_;
  const ServerPort& port_;
};

absl::StatusOr<std::string> random_token() {
  char bits[16];
  if (getrandom(bits, sizeof bits, 0) != sizeof bits) return absl::UnavailableError("[pull] getrandom failed");
  return std::string(absl::BytesToHexString(absl::string_view(bits, sizeof bits)));
}

}  // namespace

class PullServer::Impl {
 public:
  Impl(std::string token, std::chrono::milliseconds stall_limit)
      : token_(std::move(token)), offers_(OfferTable::shared()), service_(*offers_, token_, stall_limit, port_) {}
  ~Impl() {
    port_.stop();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  }

  absl::Status start(const std::string& host, const PeerPolicy& peers, const OpenGate& open_gate) {
    const std::string bracketed = absl::StrContains(host, ":") ? absl::StrCat("[", host, "]") : host;
    return peers.listen(absl::StrCat(bracketed, ":0"), [&](const std::string& at) { return listen(at, open_gate); });
  }

  const std::string& address() const { return address_; }
  const std::string& token() const { return token_; }

 private:
  absl::Status listen(const std::string& at, const OpenGate& open_gate) {
    grpc::ServerBuilder builder;
    if (absl::Status status = port_.open(&builder, at, "pull", open_gate); !status.ok()) return status;
    builder.RegisterCallbackGenericService(&service_);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
    server_ = builder.BuildAndStart();
    if (!server_ || !port_.start()) {
      return absl::UnavailableError(
          absl::StrCat("[pull] cannot listen on ", at, ": expected the name or the address of an interface"));
    }
    address_ = absl::StrCat(at.substr(0, at.rfind(':') + 1), port_.number());
    return absl::OkStatus();
  }

  // In this order: the server's calls use the service and the table.
  const std::string token_;
  const std::shared_ptr<OfferTable> offers_;
  ServerPort port_;
  Service service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

absl::StatusOr<std::shared_ptr<PullServer>> PullServer::shared(const std::string& host, const PeerPolicy& peers,
                                                               const OpenGate& open_gate,
                                                               std::chrono::milliseconds stall_limit) {
  static Mutex mutex;
  static auto& servers = *new absl::flat_hash_map<std::string, std::weak_ptr<PullServer>>;
  MutexLock lock(mutex);
  absl::erase_if(servers, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = servers.find(host); found != servers.end()) {
    if (std::shared_ptr<PullServer> server = found->second.lock()) return server;
  }
  absl::StatusOr<std::string> token = random_token();
  if (!token.ok()) return token.status();
  auto impl = std::make_unique<Impl>(*std::move(token), stall_limit);
  if (absl::Status status = impl->start(host, peers, open_gate); !status.ok()) return status;
  std::shared_ptr<PullServer> server(new PullServer(std::move(impl)));
  servers[host] = server;
  return server;
}

PullServer::PullServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PullServer::~PullServer() = default;

const std::string& PullServer::address() const { return impl_->address(); }
const std::string& PullServer::token() const { return impl_->token(); }

}  // namespace tt::distributed
