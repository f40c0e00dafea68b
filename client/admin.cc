#include "client/admin.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "client/connection/address.h"
#include "client/connection/busy_retry.h"
#include "client/connection/channel.h"
#include "client/connection/metadata.h"
#include "client/transport/call_events.h"
#include "engine/schema/error.h"
#include "proto/default_socket.h"
#include "teletensor/v1/admin.grpc.pb.h"

namespace tt::client {
namespace {

std::string resolve_address(const std::string& given) {
  if (!given.empty()) return given;
  const char* named = std::getenv("TELETENSOR_ADDRESS");
  return named && *named ? named : "unix:" + default_socket();
}

}  // namespace

struct Admin::Impl {
  Address address;
  std::string token;
  std::string admin_token;
  double deadline_seconds;

  template <typename Request, typename Reply>
  using Method = std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> (v1::Admin::Stub::*)(grpc::ClientContext*,
                                                                                              const Request&,
                                                                                              grpc::CompletionQueue*);

  template <typename Request, typename Reply>
  grpc::Status attempt(v1::Admin::Stub& stub, Method<Request, Reply> method, const std::string& shown,
                       const Request& request, Reply* reply) const {
    auto prepare = [&](grpc::ClientContext& context) {
      if (!shown.empty()) add_metadata(context, "authorization", "Bearer " + shown);
    };
    auto start = [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
      return (stub.*method)(context, request, queue);
    };
    BusyRetry retry(std::chrono::milliseconds(static_cast<int64_t>(deadline_seconds * 1000)));
    for (;;) {
      grpc::Status status = call_unary(retry.left(), prepare, start, reply);
      const bool is_unavailable = status.error_code() == grpc::StatusCode::UNAVAILABLE;
      if (!BusyRetry::is_busy(is_unavailable, status.error_message()) || !retry.pause()) return status;
    }
  }

  // Calls with the admin token. Falls back to the user token if there is no admin token or the engine does not accept
  // it.
  template <typename Request, typename Reply>
  Reply call(Method<Request, Reply> method, const Request& request) const {
    // Opens a new channel per call, so that a restarted engine is reached at once.
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = open_channel(address);
    check(ErrorKind::kConnection, channel.ok(), "[admin] no answer from the engine at ", address.text, ": ",
          channel.status().message());
    v1::Admin::Stub stub(*channel);
    Reply reply;
    grpc::Status status = attempt(stub, method, admin_token.empty() ? token : admin_token, request, &reply);
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED && !admin_token.empty() && token != admin_token) {
      status = attempt(stub, method, token, request, &reply);
    }
    check(ErrorKind::kConnection, status.error_code() != grpc::StatusCode::PERMISSION_DENIED, "[admin] ", address.text,
          ": ", status.error_message(),
          "; set TELETENSOR_ADMIN_TOKEN, or TELETENSOR_ADMIN_TOKEN_FILE to the engine's --admin-token-file");
    check(ErrorKind::kValue, status.error_code() != grpc::StatusCode::FAILED_PRECONDITION, "[admin] ",
          status.error_message());
    check(ErrorKind::kValue, status.error_code() != grpc::StatusCode::NOT_FOUND, "[admin] ", status.error_message());
    if (!status.ok()) {
      const bool unreachable = status.error_code() == grpc::StatusCode::UNAVAILABLE;
      const std::string why = unreachable ? explain_failure(address) : "";
      fail(ErrorKind::kConnection, "[admin] no answer from the engine at ", address.text, ": ",
           why.empty() ? status.error_message() : why);
    }
    remember(address);
    return reply;
  }
};

Admin::Admin(const std::string& address, const std::string& token, double deadline_seconds,
             const std::string& admin_token, const TrustOptions& trust)
    : impl_(std::make_unique<Impl>()) {
  impl_->address = parse_address(resolve_address(address));
  choose_trust(trust, &impl_->address);
  impl_->token = find_token(token);
  impl_->admin_token = find_admin_token(admin_token, impl_->address);
  impl_->deadline_seconds = deadline_seconds;
}

Admin::~Admin() = default;

v1::StatusReply Admin::status() const { return impl_->call(&v1::Admin::Stub::AsyncStatus, v1::StatusRequest()); }

v1::EmptyCacheReply Admin::empty_cache() const {
  return impl_->call(&v1::Admin::Stub::AsyncEmptyCache, v1::EmptyCacheRequest());
}

v1::SnapshotReply Admin::snapshot(Device device) const {
  v1::SnapshotRequest request;
  request.set_device(device.encode());
  return impl_->call(&v1::Admin::Stub::AsyncSnapshot, request);
}

void Admin::drain(double seconds) const {
  v1::DrainRequest request;
  request.set_deadline_seconds(seconds);
  impl_->call(&v1::Admin::Stub::AsyncDrain, request);
}

void Admin::end_session(uint64_t id) const {
  v1::EndSessionRequest request;
  request.set_id(id);
  impl_->call(&v1::Admin::Stub::AsyncEndSession, request);
}

v1::UpgradeReply Admin::upgrade(double seconds, bool force) const {
  v1::UpgradeRequest request;
  request.set_wait_seconds(seconds);
  request.set_force(force);
  return impl_->call(&v1::Admin::Stub::AsyncUpgrade, request);
}

v1::ProfileReply Admin::profile() const { return impl_->call(&v1::Admin::Stub::AsyncProfile, v1::ProfileRequest()); }

const std::string& Admin::address() const { return impl_->address.text; }

}  // namespace tt::client
