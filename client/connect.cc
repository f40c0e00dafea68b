#include "client/connect.h"

#include <cstdlib>
#include <memory>
#include <string_view>

#include "client/connection/address.h"
#include "client/connection/private_engine.h"
#include "client/transport/grpc_transport.h"
#include "client/transport/shared_memory.h"

namespace tt::client {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && std::string_view(value) != "0";
}

CompressionMode compression_mode(const std::string& option) {
  const char* variable = option == "auto" ? std::getenv("TELETENSOR_COMPRESSION") : nullptr;
  const std::string name = variable ? variable : option;
  if (name == "auto") return CompressionMode::kAuto;
  if (name == "zstd") return CompressionMode::kAlways;
  check(ErrorKind::kValue, name == "none", "[connect] expected ", variable ? "TELETENSOR_COMPRESSION" : "compression",
        " to be auto, zstd or none, got ", name);
  return CompressionMode::kNone;
}

}  // namespace

Ref<Session> connect(const ConnectOptions& options, std::string* used_address) {
  std::string address = options.address;
  if (address.empty()) {
    const char* named = std::getenv("TELETENSOR_ADDRESS");
    address = named ? named : "";
  }
  const char* sharing = std::getenv("TELETENSOR_SHARED_MEMORY");
  const bool shared_memory = options.shared_memory && (!sharing || std::string_view(sharing) != "0");
  const TransferOptions transfers{
      .shared_memory = shared_memory,
      .compression = compression_mode(options.compression),
      .content_addressed = options.content_addressed || is_set("TELETENSOR_CONTENT_ADDRESSED")};
  SharedMemory::allowed_threads();  // reports an invalid setting here instead of in a transfer
  if (address.empty()) {
    auto engine = std::make_unique<PrivateEngine>(options.engine_binary);
    if (used_address) *used_address = engine->address();
    Address own = parse_address(engine->address());
    auto transport = std::make_unique<GrpcTransport>(std::move(own), "", transfers, std::move(engine));
    return Session::connect(std::move(transport), options.client_name, options.memory_limit, options.traceparent);
  }
  if (used_address) *used_address = address;
  Address named = parse_address(address);
  choose_trust(options.trust, &named);
  auto transport = std::make_unique<GrpcTransport>(named, find_token(options.token), transfers);
  Ref<Session> session =
      Session::connect(std::move(transport), options.client_name, options.memory_limit, options.traceparent);
  remember(named);
  return session;
}

}  // namespace tt::client
