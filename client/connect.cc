#include "client/connect.h"

#include <cstdlib>
#include <memory>
#include <string_view>

#include "client/connection/address.h"
#include "client/connection/private_engine.h"
#include "client/transport/grpc_transport.h"
#include "client/transport/shared_memory.h"

namespace tt::client {

Ref<Session> connect(const ConnectOptions& options) {
  std::string address = options.address;
  if (address.empty()) {
    const char* named = std::getenv("TELETENSOR_ADDRESS");
    address = named ? named : "";
  }
  const char* sharing = std::getenv("TELETENSOR_SHARED_MEMORY");
  const bool shared_memory = options.shared_memory && (!sharing || std::string_view(sharing) != "0");
  SharedMemory::allowed_threads();  // reports an invalid setting here instead of in a transfer
  std::unique_ptr<Transport> transport;
  if (address.empty()) {
    auto engine = std::make_unique<PrivateEngine>();
    Address own = parse_address(engine->address());
    transport = std::make_unique<GrpcTransport>(std::move(own), "", shared_memory, std::move(engine));
  } else {
    transport = std::make_unique<GrpcTransport>(parse_address(address), find_token(options.token), shared_memory);
  }
  return Session::connect(std::move(transport), options.client_name, options.memory_limit);
}

}  // namespace tt::client
