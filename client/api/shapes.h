// Functions composed in the client that rearrange tensors, combine them into larger ones or list positions and values,
// with libtorch's names and results. Invalid arguments throw RuntimeError or IndexError.
#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include "client/api/tensor.h"

namespace teletensor {

/// Views of all tensors, expanded to one size.
std::vector<Tensor> broadcast_tensors(TensorList tensors);
/// Grids of the coordinates of vectors; with "xy" the first two dimensions are exchanged.
std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing = "ij");
/// All tuples of elements of vectors, one per row.
Tensor cartesian_prod(TensorList tensors);
/// A matrix with the given ones along its diagonal, and zeros.
Tensor block_diag(TensorList tensors);

/// Views with at least so many dimensions.
Tensor atleast_1d(const Tensor& input);
Tensor atleast_2d(const Tensor& input);
Tensor atleast_3d(const Tensor& input);
/// Vectors as columns, and matrices, one beside the other.
Tensor column_stack(TensorList tensors);
Tensor row_stack(TensorList tensors);
Tensor dstack(TensorList tensors);
/// Equal parts along the second dimension (of a vector, the only one), the first one and the third one.
std::vector<Tensor> hsplit(const Tensor& input, int64_t sections);
std::vector<Tensor> vsplit(const Tensor& input, int64_t sections);
std::vector<Tensor> dsplit(const Tensor& input, int64_t sections);
Tensor fliplr(const Tensor& input);
Tensor flipud(const Tensor& input);

/// The rows and columns of a triangle of a matrix, int64 [2, n] unless the options name another dtype.
Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, const TensorOptions& options = {});
Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, const TensorOptions& options = {});
/// The positions of the elements that are not 0, one per row. Waits for their number.
Tensor argwhere(const Tensor& input);
/// The sorted distinct values, and on request the index of each element's value among them, and each value's count;
/// undefined tensors otherwise. Waits for the number of values.
std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& input, bool sorted = true, bool return_inverse = false,
                                            bool return_counts = false);

}  // namespace teletensor
