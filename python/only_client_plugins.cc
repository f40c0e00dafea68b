// Replaces gRPC's registration of xDS in a module that contains gRPC (python/Install.cmake): a client's addresses never
// have the scheme xds. Without it, the linker omits xDS and its messages, a third of gRPC. Linked before libgrpc.a, whose
// file with this function is then not used; without libgrpc.a the function is not called.

namespace grpc_core {

class CoreConfiguration {
 public:
  class Builder;
};

void RegisterExtraFilters(CoreConfiguration::Builder* /*builder*/) {}

}  // namespace grpc_core
