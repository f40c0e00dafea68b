// What `composite` declarations may call beside operators, and how composites are registered.
//
// A composite runs before autograd sees the call: it differentiates because the operators that
// it calls do. The functions here are for what the expressions' language does not say.
#pragma once

#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/expression.h"

namespace tt {

// Generated: every composite operator.
void register_composites(Dispatcher& dispatcher);

// For the generated functions: gives the call its results, made to be what infer() promised the client: of that
// dtype, and contiguous where it said so. Throws Error where the sizes are others.
void finish_composite(Call& call, Tensor result);
void finish_composite(Call& call, Tensors results);

namespace composites {

int64_t product(SizesView list);
// `list` with ones before it until it has n entries.
Sizes leading_ones(SizesView list, int64_t n);

// What was given, or something else.
DType dtype_or(std::optional<DType> given, DType otherwise);
Device device_or(std::optional<Device> given, Device otherwise);
DType number_dtype(const Scalar& number);

// Random and pointwise operators.
Tensor normal_from_tensors(const Operand& mean, const Operand& std);
Tensor to_double(const Operand& value);
Tensor clamp_to_unit(const Tensor& input, std::optional<double> eps);  // to [eps, 1 - eps]
Tensor round_decimals(const Tensor& input, int64_t decimals);
Tensor multivariate_lgamma(const Tensor& input, int64_t p);
Tensor channel_weight(const Tensor& weight, const Tensor& input);  // lies along dimension 1
Tensor first_half(const Tensor& input, int64_t dim);
Tensor second_half(const Tensor& input, int64_t dim);

// elements / (elements - correction), of the elements that one result stands for; infinite where none are left.
double fraction_of_freedom(SizesView sizes, std::optional<absl::Span<const int64_t>> dims,
                           std::optional<double> correction);

// Joining and indexing.
Tensors at_least_1d(const Tensors& tensors);
Tensors at_least_2d(const Tensors& tensors);  // vectors become rows
Tensor repeat_each(const Tensor& input, int64_t repeats, std::optional<int64_t> dim);
Tensor broadcast_but(const Tensor& input, const Tensor& other, int64_t dim);  // to other's sizes, outside dim

}  // namespace composites
}  // namespace tt
