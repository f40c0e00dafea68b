// Error: the exception type of rules, engine, kernels and autograd.
//
// Messages have the form "[op] expectation, got values". The server converts an Error to the wire's error, and the
// Python client converts that to the exception PyTorch raises; each conversion is in one place.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/schema/meta.h"

namespace tt {

// The numbers are part of the wire protocol (proto ErrorKind has the same ones).
enum class ErrorKind : uint8_t {
  kRuntime = 1,
  kIndex = 2,
  kType = 3,
  kValue = 4,
  kNotImplemented = 5,
  kOutOfMemory = 6,
  kConnection = 7,  // the engine is unreachable, or has ended the session
  kLinAlg = 8,      // a matrix does not have the requested decomposition
  // Errors of the operating system for a path on the engine's host.
  kFileNotFound = 9,
  kIsADirectory = 10,
  kNotADirectory = 11,
  kPermission = 12,
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }
  // Prepends "[op] ", at most once: rules do not know their operator, and in nested calls the innermost operator is
  // reported.
  void set_op(std::string_view op);
  // Appends context that only an outer caller has: "; held by: session 3 400 MiB".
  void append(std::string_view text) { message_ += text; }

 private:
  ErrorKind kind_;
  std::string message_;
  bool has_op_ = false;
};

// Converts a part of a message. Parts are converted only on failure: check(ok, "got ", t.sizes) costs nothing if ok,
// but check(ok, "got ", to_string(t.sizes)) always formats. Abseil may have been built with its own string_view type,
// different from std::string_view.
inline absl::string_view message_part(std::string_view part) { return {part.data(), part.size()}; }
inline std::string message_part(SizesView sizes) { return to_string(sizes); }
inline std::string message_part(const Sizes& sizes) { return to_string(SizesView(sizes)); }
inline std::string message_part(Device device) { return to_string(device); }
inline absl::string_view message_part(DType t) { return message_part(name(t)); }
inline std::string message_part(const TensorMeta& meta) { return describe(meta); }
template <typename T>
const T& message_part(const T& part) {
  return part;
}
template <typename... Parts>
[[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, absl::StrCat(message_part(parts)...));
}
// Throws Error (RuntimeError) if `ok` is false. Formats only then.
template <typename... Parts>
void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(ErrorKind::kRuntime, parts...);
}
// Throws Error of the given kind if `ok` is false. Formats only then.
template <typename... Parts>
void check(ErrorKind kind, bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(kind, parts...);
}

}  // namespace tt
