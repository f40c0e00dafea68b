// RemoteError: an error of the engine, as thrown by the client.
#pragma once

#include <string>
#include <utility>

#include "engine/schema/error.h"

namespace tt::client {

// The message ends with the source line that issued the failed call.
class RemoteError : public Error {
 public:
  RemoteError(ErrorKind kind, std::string message, std::string site, bool retriable)
      : Error(kind, std::move(message)), site_(std::move(site)), retriable_(retriable) {}
  const std::string& site() const { return site_; }  // "train.py:12 in step", may be empty
  bool retriable() const { return retriable_; }

 private:
  std::string site_;
  bool retriable_;
};

}  // namespace tt::client
