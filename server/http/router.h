// Router: answers the text of an HTTP request, without a connection.
//
// cpp-httplib parses the request, finds the handler, and writes the answer. Of the headers only those that a handler
// reads are passed to it, and only GET and HEAD: its code for bodies, ranges and compression never sees a peer's bytes
// (ranges, for example, are matched by std::regex, which recurses once per character). answer() is thread-safe if the
// handlers are.
#pragma once

#define CPPHTTPLIB_OPENSSL_SUPPORT  // as the packaged library was compiled
#include <httplib.h>

#include <string>

#include "absl/strings/string_view.h"

namespace tt::server {

class Router : public httplib::Server {
 public:
  Router();

  // Returns the bytes of the answer, after which the connection is to be closed; empty if there is none. `request` ends
  // with an empty line. Handlers find `peer` as request.remote_addr.
  std::string answer(absl::string_view request, const std::string& peer);
};

}  // namespace tt::server
