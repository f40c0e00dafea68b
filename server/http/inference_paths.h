// InferencePaths: requests below /v2 on the HTTP listener: admits their bodies, and writes their answers.
//
// Who calls is checked before a body is read. Thread-safe; answer() waits for the model.
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/audit.h"
#include "server/http/connections.h"
#include "server/rpc/auth.h"
#include "server/serving/rest.h"

namespace tt::server {

class InferencePaths {
 public:
  // `is_local`: the listener has a loopback address. The references must outlive the object.
  InferencePaths(InferenceServer& server, const Auth& auth, AuditLog& audit, bool is_local)
      : server_(server), auth_(auth), audit_(audit), is_local_(is_local) {}

  // Whether the request's path is below /v2.
  static bool has(absl::string_view request);
  // `head` is the request's line and headers, of any path.
  HttpConnections::Body admit(absl::string_view head, const std::string& peer) const;
  // Requires has(). `is_cancelled` is as HttpConnections::Answer has it.
  HttpConnections::Reply answer(const std::string& request, const std::string& peer,
                                const std::function<bool()>& is_cancelled);

 private:
  struct Head;
  absl::Status check(const Head& head) const;

  InferenceServer& server_;
  const Auth& auth_;
  AuditLog& audit_;
  const bool is_local_;
};

}  // namespace tt::server
