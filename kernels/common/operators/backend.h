// Functions that each backend provides to the operators in this folder.
//
// Each source of this folder is compiled once per backend, with TT_BACKEND defined as its namespace (cpu or cuda).
// Every backend defines these functions; a missing one is a link error.
#pragma once

#include <optional>

#include "absl/types/span.h"
#include "engine/schema/scalar.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/index/selection.h"
#include "kernels/common/random/random_ranges.h"

namespace tt::TT_BACKEND {

using OptionalDType = std::optional<DType>;
using OptionalDevice = std::optional<Device>;

// Copies src to dst, with broadcasting and conversion.
void copy(const Tensor& src, const Tensor& dst);
// Fills dst, of any layout, with one number.
void fill_with(const Tensor& dst, const Scalar& value);

// Advanced indexing. Values have out's dtype and broadcast to the selection.
extern const SelectionKernels kSelectionKernels;
// Copies the selected elements of x to out, which is contiguous and has the selection's sizes.
void copy_selected(const Tensor& x, const Selection& selection, Tensor& out);
// Sets the selected elements of out, of any layout, to values.
void replace_selected(const Tensor& out, const Selection& selection, const Tensor& values);
// accumulate_selected() adds values to the selected elements of out; add_selected() adds alpha * values. An element
// that is selected several times accumulates all of its values.
void accumulate_selected(const Tensor& out, const Selection& selection, const Tensor& values);
void add_selected(const Tensor& out, const Selection& selection, const Tensor& values, const Scalar& alpha);

// Writes `value` to out, which may be the input, at the indices along a dimension.
void scatter_value(const Tensor& input, int64_t dim, const Tensor& index, Scalar value, Tensor& out);

// Finds the largest (or smallest) elements along `dim`, or of all elements if `dim` is empty. Writes the positions of
// these elements to `indices` and, if `values` is not null, the elements to `values`.
void find_extrema(bool largest, const Tensor& input, const std::optional<int64_t>& dim, Tensor* values,
                  Tensor& indices);

// softmax_into() computes softmax (log_softmax if `log`) along `dim`. softmax_gradient() computes the input's gradient
// from the output and its gradient `grad`.
void softmax_into(const Tensor& input, int64_t dim, bool log, Tensor& out);
void softmax_gradient(const Tensor& grad, const Tensor& output, int64_t dim, bool log, Tensor& out);

// Fill out, of any layout, with random numbers: uniform in [from, to), normal, or integers in a range.
void draw_unit(const Tensor& out, double from, double to);
void draw_normal(const Tensor& out, double mean, double std);
void draw_integers(const Tensor& out, const IntegerRange& range);

}  // namespace tt::TT_BACKEND
