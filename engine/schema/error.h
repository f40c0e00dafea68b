// Error: the one exception of rules, engine, kernels and autograd.
//
// Messages read "[op] what, got values". The server turns an Error into the wire's error, the
// Python client into the exception PyTorch raises; that happens in one place on each side.
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

// The numbers travel on the wire (proto ErrorKind has the same ones).
enum class ErrorKind : uint8_t {
  kRuntime = 1,
  kIndex = 2,
  kType = 3,
  kValue = 4,
  kNotImplemented = 5,
  kOutOfMemory = 6,
  kConnection = 7,  // made by clients only: the engine is gone
  kLinAlg = 8,      // a matrix that has no such decomposition
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }
  // Puts "[op] " in front, once: rules do not know which operator they serve, and of nested
  // calls the innermost is the one to blame.
  void set_op(std::string_view op);
  // For what only a caller further out knows: "; held by: session 3 400 MiB".
  void append(std::string_view text) { message_ += text; }

 private:
  ErrorKind kind_;
  std::string message_;
  bool has_op_ = false;
};

// What a message can be made of, formatted only where one is made: check(ok, "got ", t.sizes) costs
// nothing while all is well, check(ok, "got ", to_string(t.sizes)) formats each time.
// Abseil may have been built with a string_view of its own, which std::string_view is not.
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
// The usual case. check(x, ...) formats only when it fails.
template <typename... Parts>
void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(ErrorKind::kRuntime, parts...);
}
template <typename... Parts>
void check_as(ErrorKind kind, bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(kind, parts...);
}

}  // namespace tt
