// Functions that `composite` declarations may call in addition to operators, and the registration of composites.
//
// A composite runs before the autograd key: its gradient comes from the operators that it calls. The functions here
// compute what the expression language cannot express.
#pragma once

#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/expression.h"

namespace tt {

// Registers every composite operator. Generated.
void register_composites(Dispatcher& dispatcher);

// Converts the results to the inferred dtype and strides and stores them in the call. Throws Error if their sizes
// differ from the inferred ones. Called by the generated functions.
void finish_composite(Call& call, Tensor result);
void finish_composite(Call& call, Tensors results);

namespace composites {

int64_t product(SizesView list);
// Returns `list`, extended with leading ones to n entries.
Sizes prepend_ones(SizesView list, int64_t n);

// Return `given`, or `otherwise` if nothing is given.
DType dtype_or(std::optional<DType> given, DType otherwise);
Device device_or(std::optional<Device> given, Device otherwise);

// Random and pointwise operators.
Tensor normal_from_tensors(const Operand& mean, const Operand& std);
Tensor to_double(const Operand& value);
Tensor next_representable(const Operand& input, const Operand& other);
Tensor clamped(const Operand& input, const Operand& min, const Operand& max);
Tensor clamp_to_unit(const Tensor& input, std::optional<double> eps);  // clamps to [eps, 1 - eps]
Tensor round_decimals(const Tensor& input, int64_t decimals);
Tensor multivariate_lgamma(const Tensor& input, int64_t p);
Tensor channel_weight(const Tensor& weight, const Tensor& input);  // reshapes weight to broadcast along dimension 1
Tensor load_exponent(const Tensor& input, const Tensor& other);  // input * 2^other
Tensor first_half(const Tensor& input, int64_t dim);
Tensor second_half(const Tensor& input, int64_t dim);

// Returns n / (n - correction), where n is the number of elements per result; infinity if n - correction is not
// positive.
double bessel_factor(SizesView sizes, std::optional<absl::Span<const int64_t>> dims, std::optional<double> correction);

// Joining, rearranging and indexing.
Tensor shuffle_channels(const Tensor& input, int64_t groups);
Tensors at_least_1d(const Tensors& tensors);
Tensors at_least_2d(const Tensors& tensors);  // vectors become rows
Tensor repeat_each(const Tensor& input, int64_t repeats, std::optional<int64_t> dim);
// Expands to other's sizes, except in dimension `dim`.
Tensor broadcast_except(const Tensor& input, const Tensor& other, int64_t dim);

}  // namespace composites
}  // namespace tt
