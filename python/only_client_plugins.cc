// Replaces functions of a gRPC that is linked into a module (python/Install.cmake), which lead to parts that a client
// of one address with a bearer token or certificates does not use: xDS, policies that distribute calls over servers,
// and the credentials of Google's and Amazon's clouds. The linker then omits them and their messages, a third of gRPC.
// This file precedes libgrpc.a, whose files with these functions are then not searched; a shared gRPC does not see
// them.

namespace grpc_core {

class CoreConfiguration {
 public:
  class Builder;
};

void RegisterExtraFilters(CoreConfiguration::Builder* /*builder*/) {}  // xDS
void RegisterFakeResolver(CoreConfiguration::Builder* /*builder*/) {}
void FaultInjectionFilterRegister(CoreConfiguration::Builder* /*builder*/) {}
void RegisterGrpcLbPolicy(CoreConfiguration::Builder* /*builder*/) {}
void RegisterOutlierDetectionLbPolicy(CoreConfiguration::Builder* /*builder*/) {}
void RegisterPriorityLbPolicy(CoreConfiguration::Builder* /*builder*/) {}
void RegisterRingHashLbPolicy(CoreConfiguration::Builder* /*builder*/) {}
void RegisterRlsLbPolicy(CoreConfiguration::Builder* /*builder*/) {}
void RegisterWeightedTargetLbPolicy(CoreConfiguration::Builder* /*builder*/) {}

}  // namespace grpc_core

// Only libgrpc++.a's functions of the same subject refer to these, and nothing calls those. A null pointer is what they
// return when they fail.
struct grpc_call_credentials;
struct grpc_channel_credentials;
struct grpc_server_credentials;

extern "C" {

grpc_channel_credentials* grpc_alts_credentials_create(const void* /*options*/) { return nullptr; }
grpc_server_credentials* grpc_alts_server_credentials_create(const void* /*options*/) { return nullptr; }
grpc_channel_credentials* grpc_google_default_credentials_create(grpc_call_credentials* /*call*/) { return nullptr; }
grpc_call_credentials* grpc_access_token_credentials_create(const char* /*token*/, void* /*reserved*/) {
  return nullptr;
}
grpc_call_credentials* grpc_external_account_credentials_create(const char* /*json*/, const char* /*scopes*/) {
  return nullptr;
}
grpc_call_credentials* grpc_google_compute_engine_credentials_create(void* /*reserved*/) { return nullptr; }
grpc_call_credentials* grpc_google_iam_credentials_create(const char* /*token*/, const char* /*selector*/,
                                                          void* /*reserved*/) {
  return nullptr;
}
grpc_call_credentials* grpc_google_refresh_token_credentials_create(const char* /*json*/, void* /*reserved*/) {
  return nullptr;
}
grpc_call_credentials* grpc_sts_credentials_create(const void* /*options*/, void* /*reserved*/) { return nullptr; }
// gRPC's has a gpr_timespec, which is not needed to say that there are none.
grpc_call_credentials* grpc_service_account_jwt_access_credentials_create() { return nullptr; }

}  // extern "C"
