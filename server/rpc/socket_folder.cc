#include "server/rpc/socket_folder.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

constexpr int kMaxLinks = 40;  // equal to the kernel's limit

absl::Status refuse(const std::filesystem::path& path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(path.native(), " ", why));
}

std::string user_name(uid_t user) {
  char buffer[1024];
  passwd entry;
  passwd* found = nullptr;
  getpwuid_r(user, &entry, buffer, sizeof buffer, &found);
  return found ? absl::StrCat(found->pw_name, " (uid ", user, ")") : absl::StrCat("uid ", user);
}

// Checks one entry of a folder that has been checked.
absl::Status check_entry(const std::filesystem::path& path, uid_t system_owner, struct stat* info) {
  if (lstat(path.c_str(), info) != 0) return refuse(path, std::strerror(errno));
  if (info->st_uid != getuid() && info->st_uid != 0 && info->st_uid != system_owner) {
    return refuse(path,
                  absl::StrCat("belongs to ", user_name(info->st_uid), ", expected ", user_name(getuid()), " or root"));
  }
  if (S_ISLNK(info->st_mode)) return absl::OkStatus();
  if (!S_ISDIR(info->st_mode)) return refuse(path, "is not a folder");
  if ((info->st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info->st_mode & S_ISVTX) == 0) {
    return refuse(path,
                  absl::StrCat("is writable by other users; use 'chmod go-w ", path.native(), "' or another folder"));
  }
  return absl::OkStatus();
}

absl::Status check_path(const std::filesystem::path& folder, uid_t system_owner, int* links) {
  std::filesystem::path path;
  for (auto part = folder.begin(); part != folder.end(); ++part) {
    if (part->empty() || *part == ".") continue;
    path /= *part;
    struct stat info;
    if (absl::Status status = check_entry(path, system_owner, &info); !status.ok()) return status;
    if (!S_ISLNK(info.st_mode)) continue;
    if (++*links > kMaxLinks) return refuse(path, "leads through too many symbolic links");
    std::error_code error;
    std::filesystem::path rest = path.parent_path() / std::filesystem::read_symlink(path, error);
    if (error) return refuse(path, error.message());
    for (++part; part != folder.end(); ++part) rest /= *part;
    return check_path(rest, system_owner, links);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_private_path(const std::filesystem::path& folder) {
  struct stat root;
  if (stat("/", &root) != 0) return refuse("/", std::strerror(errno));
  int links = 0;
  return check_path(std::filesystem::absolute(folder), root.st_uid, &links);
}

}  // namespace tt::server
