#include "client/admin.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>

#include "client/address.h"
#include "engine/rules/error.h"
#include "teletensor/v1/admin.grpc.pb.h"

namespace tt::client {
namespace {

std::string chosen(const std::string& given) {
  if (!given.empty()) return given;
  const char* named = std::getenv("TELETENSOR_ADDRESS");
  return named && *named ? named : "127.0.0.1:" + std::to_string(kDefaultPort);
}

}  // namespace

struct Admin::Impl {
  Address address;
  std::string token;
  std::string admin_token;
  double deadline_seconds;
  std::unique_ptr<v1::Admin::Stub> stub;

  template <typename Request, typename Reply>
  using Method = grpc::Status (v1::Admin::Stub::*)(grpc::ClientContext*, const Request&, Reply*);

  template <typename Request, typename Reply>
  grpc::Status attempt(Method<Request, Reply> method, const std::string& shown, const Request& request,
                       Reply* reply) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(static_cast<int64_t>(deadline_seconds * 1000)));
    if (!shown.empty()) context.AddMetadata("authorization", "Bearer " + shown);
    return (stub.get()->*method)(&context, request, reply);
  }

  // With the admin token, and with the user token where there is none or it is another engine's.
  template <typename Request, typename Reply>
  Reply call(Method<Request, Reply> method, const Request& request) const {
    Reply reply;
    grpc::Status status = attempt(method, admin_token.empty() ? token : admin_token, request, &reply);
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED && !admin_token.empty() && token != admin_token) {
      status = attempt(method, token, request, &reply);
    }
    check_as(ErrorKind::kConnection, status.error_code() != grpc::StatusCode::PERMISSION_DENIED, "[admin] ",
             address.text, ": ", status.error_message(),
             "; set TELETENSOR_ADMIN_TOKEN, or TELETENSOR_ADMIN_TOKEN_FILE to the engine's --admin-token-file");
    check_as(ErrorKind::kValue, status.error_code() != grpc::StatusCode::NOT_FOUND, "[admin] ", status.error_message());
    check_as(ErrorKind::kConnection, status.ok(), "[admin] no answer from the engine at ", address.text, ": ",
             status.error_message());
    return reply;
  }
};

Admin::Admin(const std::string& address, const std::string& token, double deadline_seconds,
             const std::string& admin_token)
    : impl_(std::make_unique<Impl>()) {
  impl_->address = parse_address(chosen(address));
  impl_->token = find_token(token);
  impl_->admin_token = find_admin_token(admin_token, impl_->address);
  impl_->deadline_seconds = deadline_seconds;
  impl_->stub = v1::Admin::NewStub(grpc::CreateChannel(impl_->address.target, grpc::InsecureChannelCredentials()));
}

Admin::~Admin() = default;

v1::StatusReply Admin::status() const { return impl_->call(&v1::Admin::Stub::Status, v1::StatusRequest()); }

v1::EmptyCacheReply Admin::empty_cache() const {
  return impl_->call(&v1::Admin::Stub::EmptyCache, v1::EmptyCacheRequest());
}

v1::SnapshotReply Admin::snapshot(Device device) const {
  v1::SnapshotRequest request;
  request.set_device(device.encode());
  return impl_->call(&v1::Admin::Stub::Snapshot, request);
}

void Admin::drain(double seconds) const {
  v1::DrainRequest request;
  request.set_deadline_seconds(seconds);
  impl_->call(&v1::Admin::Stub::Drain, request);
}

void Admin::end_session(uint64_t id) const {
  v1::EndSessionRequest request;
  request.set_id(id);
  impl_->call(&v1::Admin::Stub::EndSession, request);
}

const std::string& Admin::address() const { return impl_->address.text; }

}  // namespace tt::client
