#include "server/serving/models_service.h"

#include "server/rpc/engine_service.h"
#include "server/rpc/unary.h"

namespace tt::server {
namespace {

constexpr size_t kMaxPublishBytes = ModelFile::kMaxBytes + ModelSettings::kMaxBytes + (size_t{64} << 10);

// Whether the call goes on, and its caller still has the right to it.
ModelLoads::IsWanted wanted(const Auth& auth, const grpc::ServerContext& context) {
  return [&auth, &context] { return !context.IsCancelled() && auth.check(credentials_of(context), Role::kUser).ok(); };
}

}  // namespace

// In the order of the service's declaration, because gRPC identifies methods by index.
ModelsService::ModelsService(ModelPublisher& publisher, const Auth& auth, CallAdmission& admission) {
  using namespace teletensor::v1;  // NOLINT: the messages of the calls below
  const auto check = [&auth](const grpc::ServerContext& context) {
    return holder_of_caller(auth, context, Role::kUser);
  };
  const RequestLimits limits{kMaxPublishBytes, CallAdmission::kChunkTimeout};
  MarkMethodStreamed(0, unary_handler<PublishModelRequest, PublishModelReply>(
                            admission, CallAdmission::Kind::kInference, check,
                            [&publisher, &auth](grpc::ServerContext* context, const PublishModelRequest* request,
                                                PublishModelReply* reply) {
                              const absl::StatusOr<Principal> caller = auth.caller(credentials_of(*context));
                              if (!caller.ok()) return to_grpc(caller.status());
                              const absl::StatusOr<int64_t> version =
                                  publisher.publish(*caller, *request, wanted(auth, *context));
                              if (!version.ok()) return to_grpc(version.status());
                              reply->set_version(*version);
                              return grpc::Status::OK;
                            },
                            limits));
  MarkMethodStreamed(1, unary_handler<WithdrawModelRequest, WithdrawModelReply>(
                            admission, CallAdmission::Kind::kInference, check,
                            [&publisher, &auth](grpc::ServerContext* context, const WithdrawModelRequest* request,
                                                WithdrawModelReply*) {
                              const absl::StatusOr<Principal> caller = auth.caller(credentials_of(*context));
                              if (!caller.ok()) return to_grpc(caller.status());
                              return to_grpc(publisher.withdraw(*caller, *request));
                            }));
}

}  // namespace tt::server
