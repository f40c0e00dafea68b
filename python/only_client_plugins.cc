// Replaces functions of a gRPC that is linked into a module (python/Install.cmake), which register parts that a client
// of one address does not use: xDS, and policies that distribute calls over servers. The linker then omits them and
// their messages, a third of gRPC. This file precedes libgrpc.a, whose files with these functions are then not
// searched; a shared gRPC does not see them.

namespace grpc_core {

class CoreConfiguration {
 public:
  class Builder;
};

void RegisterExtraFilters(CoreConfiguration::Builder* /*builder*/) {}  // xDS
void FaultInjectionFilterRegister(CoreConfiguration::Builder* /*builder*/) {}
void RegisterGrpcLbPolicy(CoreConfiguration::Builder* /*builder*/) {}
void RegisterOutlierDetectionLbPolicy(CoreConfiguration::Builder* /*builder*/) {}
void RegisterPriorityLbPolicy(CoreConfiguration::Builder* /*builder*/) {}
void RegisterRingHashLbPolicy(CoreConfiguration::Builder* /*builder*/) {}
void RegisterRlsLbPolicy(CoreConfiguration::Builder* /*builder*/) {}
void RegisterWeightedTargetLbPolicy(CoreConfiguration::Builder* /*builder*/) {}

}  // namespace grpc_core
