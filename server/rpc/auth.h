// Auth: checks the tokens of users and administrators.
//
// The user token opens sessions and reads the engine's own status. The admin token is required for calls that read or
// end other sessions, and is accepted wherever the user token is. Each token is in a file that only the file's owner
// can read. Immutable after construction; thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tt::server {

class Auth {
 public:
  enum class Role { kUser, kAdmin };

  // Accepts every caller as administrator: for --no-auth, and for private engines, whose socket only their owner can
  // reach.
  static Auth disabled() { return Auth("", ""); }
  // Reads each token, or creates it (file 0600, folder 0700). Fails if a file cannot be read or written or is
  // accessible to other users, or if both files have the same token.
  static absl::StatusOr<Auth> from_files(const std::filesystem::path& user, const std::filesystem::path& admin);
  static Auth with_tokens(std::string user, std::string admin) { return Auth(std::move(user), std::move(admin)); }

  bool required() const { return !user_.empty(); }
  // Returns the caller's role. `authorization` is the value of the call's metadata, "Bearer <token>", or empty. Returns
  // UNAUTHENTICATED if it matches neither token. Compares in constant time.
  absl::StatusOr<Role> role(absl::string_view authorization) const;
  // Returns OK for either token.
  absl::Status check(absl::string_view authorization) const { return role(authorization).status(); }
  // Returns PERMISSION_DENIED for the user token.
  absl::Status check_admin(absl::string_view authorization) const;

 private:
  Auth(std::string user, std::string admin) : user_(std::move(user)), admin_(std::move(admin)) {}
  std::string user_;
  std::string admin_;
};

}  // namespace tt::server
