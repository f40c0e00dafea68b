// Auth: who a caller is, by its token or its certificate.
//
// Two tokens always exist, each in a file that only the file's owner can read: the user token opens sessions, and the
// admin token is an operator's. A file of principals adds others (server/rpc/principals.h). Immutable after
// construction except for the principals' file; thread-safe.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/rpc/principals.h"
#include "server/session/principal.h"

namespace tt::server {

class Auth {
 public:
  // What a call presents.
  struct Credentials {
    absl::string_view authorization;  // the call's metadata, "Bearer <token>", or empty
    // Of a verified client certificate: its alternative names, or its common name.
    std::vector<std::string> certificate_names{};
  };

  // Accepts every caller as operator: for --no-auth, and for private engines, whose socket only their owner can reach.
  static Auth disabled() { return Auth("", "", nullptr); }
  // Knows no caller: for workers, whose clients have keys (server/rpc/admissions.h).
  static Auth closed();
  // Reads each token, or creates it (file 0600, folder 0700). Fails if a file cannot be read or written or is
  // accessible to other users, or if both files have the same token. `principals` may be null.
  static absl::StatusOr<Auth> from_files(const std::filesystem::path& user, const std::filesystem::path& admin,
                                         std::shared_ptr<Principals> principals = nullptr);
  static Auth with_tokens(std::string user, std::string admin, std::shared_ptr<Principals> principals = nullptr) {
    return Auth(std::move(user), std::move(admin), std::move(principals));
  }

  bool required() const { return closed_ || !user_.empty(); }
  // Returns the caller, by its token, or without one by its certificate. UNAUTHENTICATED if it is unknown or has
  // expired. Compares in constant time.
  absl::StatusOr<Principal> caller(const Credentials& credentials) const;
  // The principal with this name, for a session that an earlier process opened for it; errors as in caller().
  absl::StatusOr<Principal> named(absl::string_view name) const;
  // Returns OK if the caller may do what `least` and higher roles may; PERMISSION_DENIED if it is known, but may not.
  absl::Status check(const Credentials& credentials, Role least = Role::kObserver) const;

 private:
  Auth(std::string user, std::string admin, std::shared_ptr<Principals> principals)
      : user_(std::move(user)), admin_(std::move(admin)), principals_(std::move(principals)) {}
  bool closed_ = false;
  std::string user_;
  std::string admin_;
  std::shared_ptr<Principals> principals_;
};

// Returns the token in a file that only its owner can read. FAILED_PRECONDITION otherwise.
absl::StatusOr<std::string> read_token_file(const std::filesystem::path& file);

}  // namespace tt::server
