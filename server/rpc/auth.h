// Auth: who may use this engine, and who may administer it.
//
// Two tokens: the user token opens sessions and shows the engine's own figures; the admin token is needed for calls
// that show other sessions' work or end it, and is accepted wherever the user token is. Each is in a file that only its
// owner can read. Immutable after construction; thread-safe.
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

  // Admits everybody, as administrator: --no-auth, and private engines, whose socket only their owner can reach.
  static Auth nobody() { return Auth("", ""); }
  // Reads each token, or creates it (file 0600, folder 0700). Fails where a file cannot be read or written or is
  // readable by others, and where both files have the same token.
  static absl::StatusOr<Auth> from_files(const std::filesystem::path& user, const std::filesystem::path& admin);
  static Auth with_tokens(std::string user, std::string admin) { return Auth(std::move(user), std::move(admin)); }

  bool required() const { return !user_.empty(); }
  // `authorization` is the metadata's value, "Bearer <token>"; empty where the call has none. UNAUTHENTICATED where it
  // is neither token. Takes the same time however much of a token is right.
  absl::StatusOr<Role> role(absl::string_view authorization) const;
  // OK for either token.
  absl::Status check(absl::string_view authorization) const { return role(authorization).status(); }
  // PERMISSION_DENIED for the user token.
  absl::Status check_admin(absl::string_view authorization) const;

 private:
  Auth(std::string user, std::string admin) : user_(std::move(user)), admin_(std::move(admin)) {}
  std::string user_;
  std::string admin_;
};

}  // namespace tt::server
