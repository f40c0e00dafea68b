// Auth: who may talk to this engine: whoever shows its token.
//
// The token lies in a file that only its owner reads. Immutable after it is made; thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tt::server {

class Auth {
 public:
  // Lets everybody in: --no-auth, and private engines, whose socket lies where only its owner gets.
  static Auth nobody() { return Auth(""); }
  // Reads the token, or makes one up and writes it (file 0600, folder 0700). Fails where that is not possible, or
  // where the file is open to others.
  static absl::StatusOr<Auth> from_file(const std::filesystem::path& file);
  static Auth with_token(std::string token) { return Auth(std::move(token)); }

  bool required() const { return !token_.empty(); }
  // `authorization` is the metadata's value, "Bearer <token>"; empty where there is none. UNAUTHENTICATED tells what
  // to do. Takes the same time however much of the token is right.
  absl::Status check(absl::string_view authorization) const;

 private:
  explicit Auth(std::string token) : token_(std::move(token)) {}
  std::string token_;
};

}  // namespace tt::server
