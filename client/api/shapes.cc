#include "client/api/shapes.h"

#include <algorithm>
#include <string>

#include "client/api/errors.h"
#include "client/api/functions.h"
#include "client/api/operators.h"
#include "client/api/session.h"

namespace teletensor {
namespace {

using Function = Tensor (*)(const Tensor&);

std::vector<Tensor> mapped(TensorList tensors, Function function) {
  std::vector<Tensor> results;
  results.reserve(tensors.size());
  for (const Tensor& tensor : tensors) results.push_back(function(tensor));
  return results;
}

Tensor as_columns(const Tensor& tensor) { return tensor.dim() > 1 ? tensor : tensor.reshape({tensor.numel(), 1}); }

std::vector<Tensor> equal_parts(const char* function, const Tensor& input, int64_t dim, int64_t least_dims,
                                int64_t sections) {
  const std::string name(function);
  if (input.dim() < least_dims) {
    throw RuntimeError(name + " requires a tensor with at least " + std::to_string(least_dims) +
                       " dimension, but got a tensor with " + std::to_string(input.dim()) + " dimensions!");
  }
  const int64_t size = input.size(dim);
  if (sections <= 0 || size % sections != 0) {
    throw RuntimeError(name + " attempted to split along dimension " + std::to_string(dim) +
                       ", but the size of the dimension " + std::to_string(size) +
                       " is not divisible by the split_size " + std::to_string(sections) + "!");
  }
  return size == 0 ? std::vector<Tensor>(static_cast<size_t>(sections), input) : input.split(size / sections, dim);
}

Tensor triangle_indices(const char* function, const Tensor& triangle, const TensorOptions& options) {
  const Dtype dtype = options.dtype_opt().value_or(kLong);
  if (dtype != kLong && dtype != kInt) {
    throw RuntimeError(std::string("[") + function + "] expected dtype int64 or int32, got " +
                       std::string(tt::name(dtype)));
  }
  return triangle.nonzero().t().contiguous().to(dtype);
}

Tensor ones_of(const char* function, int64_t row, int64_t col, const TensorOptions& options) {
  if (row < 0 || col < 0) {
    throw RuntimeError(std::string("[") + function + "] expected sizes that are not negative, got " +
                       std::to_string(row) + " and " + std::to_string(col));
  }
  return ones({row, col}, options.dtype(kByte));
}

}  // namespace

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  std::vector<int64_t> sizes;  // from the last
  for (const Tensor& tensor : tensors) {
    const auto own = tensor.sizes();
    for (size_t i = 0; i < own.size(); ++i) {
      const int64_t size = own[own.size() - 1 - i];
      if (i == sizes.size()) {
        sizes.push_back(size);
      } else if (sizes[i] == 1) {
        sizes[i] = size;
      } else if (size != 1 && size != sizes[i]) {
        throw RuntimeError("[broadcast_tensors] expected sizes that are equal or 1 at dimension " +
                           std::to_string(i + 1) + " from the last, got " + std::to_string(sizes[i]) + " and " +
                           std::to_string(size));
      }
    }
  }
  std::reverse(sizes.begin(), sizes.end());
  std::vector<Tensor> expanded;
  expanded.reserve(tensors.size());
  for (const Tensor& tensor : tensors) expanded.push_back(tensor.expand(sizes));
  return expanded;
}

std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  if (tensors.empty()) throw RuntimeError("[meshgrid] expected at least one tensor, got none");
  if (indexing != "ij" && indexing != "xy") {
    throw RuntimeError("[meshgrid] expected indexing \"ij\" or \"xy\", got \"" + std::string(indexing) + "\"");
  }
  const bool exchanged = indexing == "xy" && tensors.size() > 1;
  std::vector<int64_t> sizes;
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() > 1) {
      throw RuntimeError("[meshgrid] expected vectors, got a tensor with " + std::to_string(tensor.dim()) +
                         " dimensions");
    }
    if (tensor.dtype() != tensors[0].dtype()) throw RuntimeError("[meshgrid] expected tensors of one dtype");
    sizes.push_back(tensor.numel());
  }
  if (exchanged) std::swap(sizes[0], sizes[1]);
  std::vector<Tensor> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<int64_t> view(sizes.size(), 1);
    view[exchanged && i < 2 ? 1 - i : i] = tensors[i].numel();
    grids.push_back(tensors[i].reshape(view).expand(sizes));
  }
  return grids;
}

Tensor cartesian_prod(TensorList tensors) {
  if (tensors.size() == 1 && tensors[0].dim() == 1) return tensors[0];
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() != 1) {
      throw RuntimeError("[cartesian_prod] expected vectors, got a tensor with " + std::to_string(tensor.dim()) +
                         " dimensions");
    }
  }
  std::vector<Tensor> columns = meshgrid(tensors);
  for (Tensor& column : columns) column = column.reshape({-1});
  return stack(columns, 1);
}

Tensor block_diag(TensorList tensors) {
  if (tensors.empty()) throw RuntimeError("[block_diag] expected at least one tensor, got none");
  int64_t columns = 0, before = 0;
  std::vector<Tensor> blocks;
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() > 2) {
      throw RuntimeError("[block_diag] expected tensors of at most 2 dimensions, got " + std::to_string(tensor.dim()));
    }
    blocks.push_back(atleast_2d(tensor));
    columns += blocks.back().size(1);
  }
  for (Tensor& block : blocks) {
    const int64_t width = block.size(1);
    const SessionGuard session(block.session());
    const auto zeros_of = [&](int64_t size) { return zeros({block.size(0), size}, block.options()); };
    block = cat({zeros_of(before), block, zeros_of(columns - before - width)}, 1);
    before += width;
  }
  return cat(blocks, 0);
}

Tensor atleast_1d(const Tensor& input) { return input.dim() > 0 ? input : input.reshape({1}); }

Tensor atleast_2d(const Tensor& input) { return input.dim() > 1 ? input : atleast_1d(input).unsqueeze(0); }

Tensor atleast_3d(const Tensor& input) { return input.dim() > 2 ? input : atleast_2d(input).unsqueeze(-1); }

Tensor column_stack(TensorList tensors) { return cat(mapped(tensors, as_columns), 1); }

Tensor row_stack(TensorList tensors) { return vstack(tensors); }

Tensor dstack(TensorList tensors) { return cat(mapped(tensors, atleast_3d), 2); }

std::vector<Tensor> hsplit(const Tensor& input, int64_t sections) {
  return equal_parts("torch.hsplit", input, input.dim() == 1 ? 0 : 1, 1, sections);
}

std::vector<Tensor> vsplit(const Tensor& input, int64_t sections) {
  return equal_parts("torch.vsplit", input, 0, 2, sections);
}

std::vector<Tensor> dsplit(const Tensor& input, int64_t sections) {
  return equal_parts("torch.dsplit", input, 2, 3, sections);
}

Tensor fliplr(const Tensor& input) {
  if (input.dim() < 2) throw RuntimeError("Input must be >= 2-d.");
  return input.flip({1});
}

Tensor flipud(const Tensor& input) {
  if (input.dim() < 1) throw RuntimeError("Input must be >= 1-d.");
  return input.flip({0});
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
  return triangle_indices("tril_indices", ones_of("tril_indices", row, col, options).tril(offset), options);
}

Tensor triu_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
  return triangle_indices("triu_indices", ones_of("triu_indices", row, col, options).triu(offset), options);
}

Tensor argwhere(const Tensor& input) { return input.nonzero(); }

std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& input, bool /*sorted*/, bool return_inverse,
                                            bool return_counts) {
  auto [values, inverse, counts] = ops::unique_values(input);
  return {values, return_inverse ? inverse : Tensor(), return_counts ? counts : Tensor()};
}

}  // namespace teletensor
