// Fuzz target: what a client does with an engine's answer to Hello, and an engine with the version in a Hello. Whatever
// a redirect says, it leads to the engine's own host and by the same way, or by TLS to another one; a malformed answer
// is an error.
#include <google/protobuf/stubs/logging.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <string>

#include "client/connection/redirect.h"
#include "client/session/engine_operators.h"
#include "engine/schema/error.h"
#include "proto/version.h"
#include "proto/wire.h"
#include "tests/fuzz/require.h"

namespace {

using tt::client::Address;
using tt::client::parse_address;

void follow(const Address& engine, const tt::v1::Redirect& redirect) {
  const absl::StatusOr<Address> next = tt::client::redirected_address(engine, redirect);
  if (!next.ok()) return tt::fuzz::require(!next.status().message().empty(), "a refusal has a reason");
  tt::fuzz::require(next->tls || !engine.tls, "a connection with TLS leads to another with TLS");
  tt::fuzz::require(!next->trust.is_new, "a fingerprint of a redirect is not remembered");
  if (redirect.address().empty()) {
    tt::fuzz::require(next->host == engine.host && next->tls == engine.tls, "a worker is on the engine's host");
    tt::fuzz::require(next->socket.empty() == engine.socket.empty(), "a worker is reached as the engine is");
    tt::fuzz::require(next->trust.fingerprint == engine.trust.fingerprint, "a worker has the engine's certificate");
  } else {
    tt::fuzz::require(next->socket.empty() && next->port > 0 && next->port < 65536, "another engine is reached by TCP");
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("TELETENSOR_KNOWN_ENGINES", "/dev/null", 1);
  google::protobuf::SetLogHandler(nullptr);  // a line per text that is not UTF-8
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tt::v1::HelloReply reply;
  if (!reply.ParseFromArray(data, static_cast<int>(size))) return -1;
  static const Address engines[] = {parse_address("unix:/run/engine.sock"), parse_address("127.0.0.1:7070"),
                                    parse_address("teletensors://gpu-box:7070")};
  for (const Address& engine : engines) follow(engine, reply.redirect());
  if (tt::client::check_key(reply.redirect()).ok()) {
    tt::fuzz::require(reply.redirect().key().find_first_of("\r\n") == std::string::npos, "a key is one line");
  }
  (void)tt::check_engine_version(reply.engine_version(), "engine");
  (void)tt::check_client_version(reply.engine_version());
  try {
    const tt::client::EngineOperators operators(reply);
    for (const tt::Op* op : tt::all_ops().subspan(0, 8)) operators.require(*op, {});
  } catch (const tt::Error&) {
  }
  return 0;
}
