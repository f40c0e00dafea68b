#include "server/daemon/operator_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file_descriptor.h"
#include "base/text.h"
#include "engine/extension/library.h"
#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

namespace fs = std::filesystem;

absl::Status refused(const fs::path& path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("--operators: ", path.native(), ": ", why));
}

// Whether only this user and the superuser may change what `status` describes.
bool is_protected(const struct stat& status) {
  return (status.st_uid == geteuid() || status.st_uid == 0) && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// An error if another user may replace the folder `path`, or one of those that it is in, by a folder of its own between
// these checks and the load: a folder that others may write keeps entries from them only if it is sticky, like /tmp.
absl::Status check_parents(const fs::path& path) {
  for (fs::path at = path; at.has_relative_path();) {
    at = at.parent_path();
    struct stat status {};
    if (stat(at.c_str(), &status) != 0) return refused(at, std::strerror(errno));
    const bool is_owned = status.st_uid == geteuid() || status.st_uid == 0;
    if (!is_owned || ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0)) {
      return refused(path, absl::StrCat("other users may replace this folder, because they may change ", at.native()));
    }
  }
  return absl::OkStatus();
}

absl::Status check_folder(const fs::path& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return refused(folder, std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) return refused(folder, "expected a folder");
  if (!is_protected(status)) {
    return refused(folder,
                   "other users may change this folder; its owner has to be this user or root, and 'chmod go-w'");
  }
  return check_parents(folder);
}

// A digest of the file's bytes (FNV-1a).
absl::Status digest_of(const fs::path& file, uint64_t* digest) {
  const FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd || fstat(fd.get(), &status) != 0) return refused(file, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refused(file, "expected a regular file");
  if (!is_protected(status)) {
    return refused(file, "other users may change this file; its owner has to be this user or root, and 'chmod go-w'");
  }
  *digest = 0xcbf29ce484222325;
  std::vector<unsigned char> buffer(size_t{1} << 16);
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refused(file, std::strerror(errno));
    if (count == 0) return absl::OkStatus();
    for (ssize_t i = 0; i < count; ++i) *digest = (*digest ^ buffer[static_cast<size_t>(i)]) * 0x100000001b3;
  }
}

// Clients receive these texts.
absl::Status check_texts(const extension::OperatorLibrary& library) {
  bool valid = valid_utf8(library.name) == library.name;
  for (const std::string& name : library.operators) {
    const std::string doc(find_custom_op(std::string_view(name))->doc());
    valid = valid && valid_utf8(doc) == doc;
  }
  return valid ? absl::OkStatus() : refused(library.path, "its name or a doc is not UTF-8");
}

// "id=digest=name" of an operator.
std::string numbered(const CustomOperator& op) {
  return absl::StrCat(op.op().id, "=", absl::Hex(op.declaration().digest()), "=", message_part(op.name()));
}

}  // namespace

absl::Status load_operators(const fs::path& folder, Dispatcher& dispatcher) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) return refused(folder, error.message());
  if (absl::Status status = check_folder(real); !status.ok()) return status;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(real, error)) {
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  }
  if (error) return refused(folder, error.message());
  std::sort(files.begin(), files.end());
  if (files.empty()) return refused(folder, "expected at least one shared object, *.so");
  for (const fs::path& file : files) {
    // The file itself, of which a symbolic link may be outside of the folder.
    const fs::path target = fs::canonical(file, error);
    if (error) return refused(file, error.message());
    if (absl::Status status = check_folder(target.parent_path()); !status.ok()) return status;
    uint64_t digest = 0;
    if (absl::Status status = digest_of(target, &digest); !status.ok()) return status;
    try {
      const extension::OperatorLibrary library = extension::load_library(target.native(), digest, dispatcher);
      if (absl::Status status = check_texts(library); !status.ok()) return status;
      spdlog::info("loaded {} ({}): {}", library.path, library.name.empty() ? "without a name" : library.name,
                   absl::StrJoin(library.operators, ", "));
    } catch (const Error& failure) {
      return absl::FailedPreconditionError(absl::StrCat("--operators: ", failure.message()));
    }
  }
  return absl::OkStatus();
}

std::string loaded_operators() {
  std::vector<std::string> all;
  for (const extension::OperatorLibrary& library : extension::loaded_libraries()) {
    for (const std::string& name : library.operators) {
      all.push_back(numbered(*find_custom_op(std::string_view(name))));
    }
  }
  return absl::StrJoin(all, ",");
}

absl::Status check_loaded_operators(std::string_view operators) {
  for (absl::string_view each :
       absl::StrSplit(absl::string_view(operators.data(), operators.size()), ',', absl::SkipEmpty())) {
    uint32_t id = 0;
    const CustomOperator* const op = absl::SimpleAtoi(each.substr(0, each.find('=')), &id) && id <= UINT16_MAX
                                         ? find_custom_op(static_cast<uint16_t>(id))
                                         : nullptr;
    if (op == nullptr || numbered(*op) != each) {
      return absl::FailedPreconditionError(absl::StrCat("the new process has not the operator ",
                                                        each.substr(each.rfind('=') + 1),
                                                        " of --operators, or with another declaration"));
    }
  }
  return absl::OkStatus();
}

}  // namespace tt::server
