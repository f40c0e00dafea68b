// Selection: the elements that advanced indexing (x[i, :, mask]) selects.
#pragma once

#include "engine/schema/rules/shape_rules.h"
#include "kernels/common/index/index_values.h"
#include "kernels/common/iteration/operands.h"

namespace tt {

// One index that the user gave, and its contribution to the offset of a selected element.
struct SelectionTerm {
  Tensor values;  // int64
  int64_t dim;    // the indexed dimension, for messages
  int64_t size;   // the dimension's size; -1: values are offsets already
  int64_t stride;
};
using SelectionTerms = absl::InlinedVector<SelectionTerm, 4>;

enum class IndexRange {
  kEitherEnd,  // negative indices count from the end
  kFromZero,   // negative indices are errors, "out of range in self" as in index_select
};

// A backend's kernels over the elements of indices.
struct SelectionKernels {
  ContiguousAs contiguous_as;
  // The offsets, over `strides`, of mask's elements that are not 0, in row-major order.
  Tensor (*offsets_of_true)(const Tensor& mask, SizesView strides);
  // The sum of the terms' contributions: contiguous, of `sizes`, to which the terms broadcast. Reports indices that are
  // out of range.
  Tensor (*add_up)(const SelectionTerms& terms, SizesView sizes, IndexRange range, Device device);
};

// The sizes of the result, and for each point in it the offset of the selected element:
//   x[sum of point * steps + offsets[sum of point * offset_strides]]
// Offsets are checked when they are computed, and no client can write them.
struct Selection {
  Sizes sizes;           // sizes of the result, by NumPy's rules
  Sizes steps;           // in elements of x
  Sizes offset_strides;  // in elements of `offsets`
  Tensor offsets;        // int64, contiguous

  // Each of `indices` applies to the next dimension of x: it contains integers, is a mask (which applies to as many
  // dimensions as it has), or is undefined, which selects the whole dimension. Throws Error (IndexError) if they do not
  // fit x or do not broadcast to each other.
  Selection(const SelectionKernels& kernels, const Tensor& x, const Tensors& indices, IndexRange range);
  // The elements at `offsets`, which has one dimension.
  explicit Selection(Tensor offsets)
      : sizes(offsets.sizes()), steps(sizes.size(), 0), offset_strides(offsets.strides()), offsets(offsets) {}
  // The elements at `index` of dimension `dim`, which is kept if the index is a single number.
  static Selection in_dim(const SelectionKernels& kernels, const Tensor& x, int64_t dim, const Tensor& index,
                          IndexRange range);

  // Throws Error (RuntimeError) if the values do not broadcast to `sizes`.
  void check_values(const Tensor& values) const;
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t size : sizes) n *= size;
    return n;
  }
};

// ---- Implementation ----------------------------------------------------------------------------

inline void check_mask(const Tensor& x, const Tensor& mask, int64_t dim) {
  check(ErrorKind::kIndex, dim + mask.dim() <= x.dim(), "too many indices for tensor of dimension ", x.dim());
  for (int64_t d = 0; d < mask.dim(); ++d) {
    check(ErrorKind::kIndex, mask.size(d) == x.size(dim + d), "The shape of the mask ", to_string(mask.sizes()),
          " at index ", d, " does not match the shape of the indexed tensor ", to_string(x.sizes()), " at index ",
          dim + d);
  }
}

// The sizes that all terms broadcast to.
inline Sizes common_sizes(const SelectionTerms& terms) {
  Sizes sizes;
  for (const SelectionTerm& term : terms) {
    const Sizes& other = term.values.sizes();
    if (other.size() > sizes.size()) sizes.insert(sizes.begin(), other.size() - sizes.size(), 1);
    for (size_t d = 0; d < other.size(); ++d) {
      int64_t& size = sizes[sizes.size() - other.size() + d];
      check(ErrorKind::kIndex, size == other[d] || size == 1 || other[d] == 1,
            "shape mismatch: indexing tensors could not be broadcast together with shapes ", to_string(sizes), ", ",
            to_string(other));
      if (size == 1) size = other[d];
    }
  }
  return sizes;
}

inline Selection::Selection(const SelectionKernels& kernels, const Tensor& x, const Tensors& indices,
                            IndexRange range) {
  SelectionTerms terms;
  absl::InlinedVector<int64_t, 8> kept;    // dimensions without an index
  int64_t dim = 0, first = -1, last = -1;  // next dimension; first indexed dimension; end of the last one
  bool adjacent = true;
  for (const Tensor& index : indices) {
    if (!index) {
      check(ErrorKind::kIndex, dim < x.dim(), "too many indices for tensor of dimension ", x.dim());
      kept.push_back(dim++);
      continue;
    }
    const bool mask = index.dtype() == DType::kBool || index.dtype() == DType::kUInt8;  // PyTorch accepts both
    if (mask) {
      check_mask(x, index, dim);
      auto strides = absl::MakeConstSpan(x.strides()).subspan(dim, index.dim());
      terms.push_back({kernels.offsets_of_true(index, strides), dim, -1, 1});
    } else {
      check(ErrorKind::kIndex, dim < x.dim(), "too many indices for tensor of dimension ", x.dim());
      check_index_dtype(index);
      check_indexable(dim, x.size(dim), index.numel());
      terms.push_back({index_values(kernels.contiguous_as, index), dim, x.size(dim), x.stride(dim)});
    }
    adjacent &= first < 0 || last == dim;
    if (first < 0) first = dim;
    dim += mask ? index.dim() : 1;
    last = dim;
  }
  for (; dim < x.dim(); ++dim) kept.push_back(dim);

  const Sizes common = common_sizes(terms);
  offsets = kernels.add_up(terms, common, range, x.device());
  const auto add_dim = [&](int64_t size, int64_t step, int64_t offset_stride) {
    sizes.push_back(size);
    steps.push_back(step);
    offset_strides.push_back(offset_stride);
  };
  // If the indices are adjacent, their dimensions replace the indexed ones; otherwise they come first.
  size_t k = 0;
  for (; adjacent && k < kept.size() && kept[k] < first; ++k) add_dim(x.size(kept[k]), x.stride(kept[k]), 0);
  for (size_t d = 0; d < common.size(); ++d) add_dim(common[d], 0, offsets.strides()[d]);
  for (; k < kept.size(); ++k) add_dim(x.size(kept[k]), x.stride(kept[k]), 0);
}

inline Selection Selection::in_dim(const SelectionKernels& kernels, const Tensor& x, int64_t dim, const Tensor& index,
                                   IndexRange range) {
  Tensors indices(shape_rules::wrap_dim(dim, x.dim()));
  indices.push_back(at_least_1d(index));
  return Selection(kernels, x, indices, range);
}

inline void Selection::check_values(const Tensor& values) const {
  const SizesView own = values.sizes();
  bool fits = own.size() <= sizes.size();
  for (size_t d = 0; fits && d < own.size(); ++d) {
    const int64_t size = own[own.size() - 1 - d];
    fits = size == 1 || size == sizes[sizes.size() - 1 - d];
  }
  check(fits, "shape mismatch: value tensor of shape ", to_string(values.sizes()),
        " cannot be broadcast to indexing result of shape ", to_string(sizes));
}

}  // namespace tt
