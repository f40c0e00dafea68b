#include "server/rpc/auth.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file_descriptor.h"
#include "server/random_key.h"

namespace tt::server {
namespace {

constexpr size_t kMinTokenBytes = 16;
constexpr size_t kMaxTokenBytes = 4096;

absl::Status failed(absl::string_view what, const std::filesystem::path& file) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", what, " the token file ", file.native(), ": ", std::strerror(errno)));
}

// Writes a new token to a temporary file and links it into place, so that if two engines start together, the file
// contains exactly one complete token.
absl::Status create(const std::filesystem::path& file) {
  const absl::StatusOr<std::string> key = random_key();
  if (!key.ok()) return key.status();
  const std::string token = absl::StrCat(*key, "\n");
  std::error_code error;
  if (std::filesystem::create_directories(file.parent_path(), error)) chmod(file.parent_path().c_str(), 0700);
  std::string draft = absl::StrCat(file.native(), ".", getpid());
  FileDescriptor fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return failed("write", file);
  bool written = write(fd.get(), token.data(), token.size()) == static_cast<ssize_t>(token.size());
  bool linked = written && (link(draft.c_str(), file.c_str()) == 0 || errno == EEXIST);
  absl::Status status = linked ? absl::OkStatus() : failed("write", file);
  unlink(draft.c_str());
  return status;
}

absl::StatusOr<std::string> read_token(int fd, const std::filesystem::path& file) {
  struct stat info;
  if (fstat(fd, &info) != 0) return failed("read", file);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("the token file ", file.native(), " is not a regular file"));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the token file ", file.native(), " is accessible to other users; use 'chmod 600'"));
  }
  std::string text(kMaxTokenBytes, '\0');
  ssize_t got = read(fd, text.data(), text.size());
  if (got < 0) return failed("read", file);
  text.resize(static_cast<size_t>(got));
  std::string token(absl::StripAsciiWhitespace(text));
  if (token.size() < kMinTokenBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("the token in ", file.native(), " has fewer than ", kMinTokenBytes, " characters"));
  }
  return token;
}

// Reads the token in `file`, creating the file if it does not exist.
absl::StatusOr<std::string> read_or_create(const std::filesystem::path& file) {
  for (bool created = false;; created = true) {
    FileDescriptor fd(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // does not wait for a pipe's writer
    if (fd) return read_token(fd.get(), file);
    if (errno != ENOENT || created) return failed("read", file);
    if (absl::Status status = create(file); !status.ok()) return status;
  }
}

bool same(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

absl::StatusOr<std::string> read_token_file(const std::filesystem::path& file) {
  const FileDescriptor fd(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // does not wait for a pipe's writer
  return fd ? read_token(fd.get(), file) : failed("read", file);
}

absl::StatusOr<Auth> Auth::from_files(const std::filesystem::path& user, const std::filesystem::path& admin,
                                      std::shared_ptr<Principals> principals) {
  absl::StatusOr<std::string> user_token = read_or_create(user);
  if (!user_token.ok()) return user_token.status();
  absl::StatusOr<std::string> admin_token = read_or_create(admin);
  if (!admin_token.ok()) return admin_token.status();
  if (*user_token == *admin_token) {
    return absl::FailedPreconditionError(
        absl::StrCat(user.native(), " and ", admin.native(), " have the same token; remove one of them"));
  }
  return Auth(*std::move(user_token), *std::move(admin_token), std::move(principals));
}

Auth Auth::closed() {
  Auth auth("", "", nullptr);
  auth.closed_ = true;
  return auth;
}

absl::StatusOr<Principal> Auth::caller(const Credentials& credentials) const {
  if (closed_) return absl::UnauthenticatedError("this is a worker, which accepts no token; connect to its engine");
  if (!required()) return Principal{"admin", Role::kOperator};
  absl::string_view token = credentials.authorization;
  if (!absl::ConsumePrefix(&token, "Bearer ")) {
    if (principals_ && !credentials.certificate_names.empty()) {
      absl::StatusOr<Principal> found = principals_->by_certificate(credentials.certificate_names);
      if (!absl::IsNotFound(found.status())) return found;
    }
    return absl::UnauthenticatedError("missing bearer token; pass the contents of the engine's token file");
  }
  const bool user = same(token, user_), admin = same(token, admin_);
  if (admin) return Principal{"admin", Role::kOperator};
  if (user) return Principal{"user", Role::kUser};
  if (principals_) {
    absl::StatusOr<Principal> found = principals_->by_token(token);
    if (!absl::IsNotFound(found.status())) return found;
  }
  return absl::UnauthenticatedError("the token does not belong to this engine");
}

absl::StatusOr<Principal> Auth::named(absl::string_view name) const {
  if (name == "admin") return Principal{"admin", Role::kOperator};
  if (name == "user" && required()) return Principal{"user", Role::kUser};
  if (principals_) return principals_->by_name(name);
  return absl::NotFoundError(absl::StrCat("this engine has no principal ", name));
}

absl::Status Auth::check(const Credentials& credentials, Role least) const {
  const absl::StatusOr<Principal> found = caller(credentials);
  if (!found.ok()) return found.status();
  if (found->role >= least) return absl::OkStatus();
  if (least == Role::kOperator && found->name == "user") {
    return absl::PermissionDeniedError("this call requires the engine's admin token, got its user token");
  }
  return absl::PermissionDeniedError(absl::StrCat("this call requires the role ", role_name(least), "; ", found->name,
                                                  " has the role ", role_name(found->role)));
}

}  // namespace tt::server
