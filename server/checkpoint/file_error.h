// Conversion of errors of the operating system for a path.
#pragma once

#include <cerrno>
#include <cstring>
#include <string_view>

#include "engine/schema/error.h"

namespace tt::server {

inline ErrorKind kind_of_errno(int error) {
  switch (error) {
    case ENOENT: return ErrorKind::kFileNotFound;
    case EISDIR: return ErrorKind::kIsADirectory;
    case ENOTDIR: return ErrorKind::kNotADirectory;
    case EACCES:
    case EPERM: return ErrorKind::kPermission;
    default: return ErrorKind::kRuntime;
  }
}

// Throws Error: "cannot open 'x': No such file or directory". `error` is a value of errno.
[[noreturn]] inline void fail_with(int error, std::string_view verb, std::string_view path) {
  fail(kind_of_errno(error), "cannot ", verb, " '", path, "': ", std::strerror(error));
}

}  // namespace tt::server
