// Calls of operators for the generated functions. Errors are translated (client/api/errors.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "client/api/tensor.h"
#include "engine/schema/arg.h"

namespace teletensor::internal {

// A list of tensors as an argument, valid as long as this object. An undefined tensor is an absent entry.
class ListArg {
 public:
  explicit ListArg(TensorList list) {
    for (const Tensor& t : list) metas_.push_back(t.handle().get());
  }
  tt::Arg arg() const { return tt::Arg(absl::Span<const tt::TensorMeta* const>(metas_)); }

 private:
  absl::InlinedVector<const tt::TensorMeta*, 8> metas_;
};

// A list of integers of which a single one is repeated, valid as long as this object.
class RepeatedArg {
 public:
  RepeatedArg(const IntArrayRef& list, size_t size) { set(list, size); }
  RepeatedArg(const OptionalIntArrayRef& list, size_t size) : has_value_(list.has_value()) {
    if (has_value_) set(list.value(), size);
  }
  tt::Arg arg() const { return has_value_ ? tt::Arg(tt::SizesView(values_)) : tt::Arg(); }

 private:
  void set(const IntArrayRef& list, size_t size) {
    if (list.size() == 1) {
      values_.assign(size, list[0]);
    } else {
      values_.assign(list.begin(), list.end());
    }
  }
  tt::Sizes values_;
  bool has_value_ = true;
};

inline tt::Arg arg(const std::optional<ArrayRef<double>>& list) { return list ? list->arg() : tt::Arg(); }

// Calls an operator in the session of its first tensor, or in the current session if there is none.
tt::client::Tensors call_all(uint16_t op, tt::Args args);
// An operator with one result.
Tensor call(uint16_t op, tt::Args args);
std::vector<Tensor> call_list(uint16_t op, tt::Args args);
// Writes the result to `into`, and returns it.
Tensor call_into(uint16_t op, tt::Args args, const tt::client::Tensor& into);

// Stores the results, of which there are `count`.
void call_to(uint16_t op, tt::Args args, Tensor* results, size_t count);

template <size_t N>
auto call_tuple(uint16_t op, tt::Args args) {
  std::array<Tensor, N> results;
  call_to(op, args, results.data(), N);
  return std::tuple_cat(std::move(results));
}

// Sets what the options say about a new tensor and no argument of its operator does.
inline Tensor with_options(Tensor tensor, const TensorOptions& options) {
  if (options.requires_grad()) tensor.set_requires_grad(true);
  return tensor;
}

}  // namespace teletensor::internal
