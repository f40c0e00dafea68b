// connect: opens a session with a named engine, the environment's engine or a new private engine.
#pragma once

#include <cstdint>
#include <string>

#include "client/connection/trust.h"
#include "client/session/session.h"

namespace tt::client {

struct ConnectOptions {
  // "host:port", "teletensors://host:port" (with TLS) or "unix:PATH". If empty, TELETENSOR_ADDRESS is used. If that
  // variable is empty too, connect() starts a private engine, which ends with the session.
  std::string address;
  // If empty, TELETENSOR_TOKEN is used, then the token file of this user's engine (TELETENSOR_TOKEN_FILE).
  std::string token;
  TrustOptions trust{};  // for an engine with TLS
  std::string client_name = "c++";
  uint64_t memory_limit = 0;  // requested limit in bytes; 0: the engine's default
  bool shared_memory = true;  // use shared memory for bulk bytes if the engine is on the same host
  // Compression of bulk bytes on the connection: "auto" if it shortens their transfer over the link, as measured;
  // "zstd" always; "none" never. TELETENSOR_COMPRESSION, with the same values, replaces "auto".
  std::string compression = "auto";
  // Do not send uploads of more than 1 MiB whose bytes a tensor of the same user in the engine has: the engine copies
  // them. TELETENSOR_CONTENT_ADDRESSED=1 requests it too.
  bool content_addressed = false;
  // W3C trace context of the span in which the session is opened, which becomes the parent of the session's span.
  // Session::set_trace_context() sets that of calls.
  std::string traceparent;
  // The program of a private engine that is installed elsewhere than beside this library (PrivateEngine::find_binary).
  std::string engine_binary;
};

// Throws Error (kValue) if an option has an unknown value, (kConnection) if no engine answers, the engine refuses, or
// none can be started. `used_address`, if not null, receives the engine's address, by which other processes of this
// user on the same host can open sessions with it.
Ref<Session> connect(const ConnectOptions& options = {}, std::string* used_address = nullptr);

}  // namespace tt::client
