// A call between the two schemas (engine/schema/sym_int.h): types that neither of them defines.
#pragma once

#include <complex>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace symbolic {

// A TensorMeta. Sizes, strides and the offset are numbers (facts.h).
struct PlainMeta {
  uint8_t dtype = 0;
  int64_t device = 0;
  bool requires_grad = false, is_number = false;
  absl::InlinedVector<int64_t, 5> sizes, strides;
  int64_t offset = 0;
};

// An Arg by its kind: none, a tensor, a list of tensors of which some may be missing, a bool, an integer (a number),
// one above int64's, a float, a complex number, integers (numbers), floats, a string.
struct Unsigned {
  uint64_t value;
};
using PlainArg = std::variant<std::monostate, PlainMeta, std::vector<std::optional<PlainMeta>>, bool, int64_t, Unsigned,
                              double, std::complex<double>, std::vector<int64_t>, std::vector<double>, std::string>;

// A Param, as far as infer() reads it.
struct PlainParam {
  uint8_t type;
  bool differentiable;
};

// An operator, as far as infer() reads it, and its arguments, which Op::check_args() has accepted.
struct PlainCall {
  uint16_t op;
  bool is_pointwise, is_view, any_devices, takes_float8, differentiable;
  bool grad_enabled;
  uint8_t default_float;  // a dtype
  std::vector<PlainParam> params;
  std::vector<PlainArg> args;
};

// An Inference.
struct PlainInference {
  std::vector<PlainMeta> outputs;
  bool alias, requires_grad;
  uint8_t compute, backend;
  int64_t device;
};

// An Error.
class PlainError final : public std::exception {
 public:
  PlainError(uint8_t kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  uint8_t kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  uint8_t kind_;
  std::string message_;
};

// infer() of the symbolic schema, with the facts in scope. Throws PlainError, Undecided, and std::overflow_error for
// numbers beyond 64 bits.
PlainInference infer_symbolic(const PlainCall& call);

}  // namespace symbolic
