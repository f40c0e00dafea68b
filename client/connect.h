// connect: a session with the engine that the caller, the environment, or nobody named.
#pragma once

#include <cstdint>
#include <string>

#include "client/session.h"

namespace tt::client {

struct ConnectOptions {
  // "host:port" or "unix:PATH". Empty: TELETENSOR_ADDRESS; where that is empty too, a private
  // engine is started beside the caller and ends with the session.
  std::string address;
  // Empty: TELETENSOR_TOKEN, then the token file of this user's engine (TELETENSOR_TOKEN_FILE).
  std::string token;
  std::string client_name = "c++";
  uint64_t memory_limit = 0;  // bytes the session asks to be held to; 0: the engine's default
  bool shared_memory = true;  // for bulk bytes, where the engine is on the same host
};

// Throws Error (kConnection) where no engine answers, is refused, or cannot be started.
Ref<Session> connect(const ConnectOptions& options = {});

}  // namespace tt::client
