// Operand: the argument of an operator that takes a tensor or a number.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>

#include "client/api/array_ref.h"
#include "client/api/options.h"
#include "client/session/tensor.h"
#include "engine/schema/arg.h"

namespace teletensor {

/// What every Tensor is: a counted reference to a tensor in an engine.
class TensorBase {
 public:
  TensorBase() = default;
  /// A tensor of the layer beneath (`tt::client`).
  explicit TensorBase(tt::client::Tensor handle) : handle_(std::move(handle)) {}
  /// The tensor in the layer beneath; null for an undefined tensor.
  const tt::client::Tensor& handle() const { return handle_; }
  /// Whether this refers to a tensor.
  bool defined() const { return static_cast<bool>(handle_); }
  /// The tensor as an operator's argument.
  tt::Arg arg() const { return tt::Arg(static_cast<const tt::TensorMeta*>(handle_.get())); }

 protected:
  tt::Arg self() const { return arg(); }
  tt::client::Tensor handle_;
};

/// A tensor, a number, or nothing. Valid until the end of the full expression.
class Operand {
 public:
  Operand() = default;
  Operand(const TensorBase& tensor) : arg_(tensor.arg()) {}  // NOLINT: an argument
  Operand(const Scalar& number) : arg_(number) {}            // NOLINT
  template <typename T>
  requires std::is_arithmetic_v<T> Operand(T number) : arg_(from(number)) {}  // NOLINT
  const tt::Arg& arg() const { return arg_; }

 private:
  template <typename T>
  static tt::Arg from(T number) {
    if constexpr (std::same_as<T, bool>) {
      return tt::Arg(number);
    } else if constexpr (std::is_floating_point_v<T>) {
      return tt::Arg(static_cast<double>(number));
    } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      return tt::Arg(Scalar::of_unsigned(number));
    } else {
      return tt::Arg(static_cast<int64_t>(number));
    }
  }
  tt::Arg arg_;
};

/// A bool, and no number that converts to one.
class OnlyBool {
 public:
  template <std::same_as<bool> B>
  OnlyBool(B value) : value_(value) {}                  // NOLINT
  operator bool() const { return value_; }              // NOLINT
  operator tt::Arg() const { return tt::Arg(value_); }  // NOLINT

 private:
  bool value_;
};

}  // namespace teletensor
