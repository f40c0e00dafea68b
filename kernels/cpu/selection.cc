#include "kernels/cpu/selection.h"

#include <algorithm>

#include "engine/rules/error.h"
#include "kernels/common/element.h"
#include "kernels/cpu/index_values.h"
#include "kernels/cpu/nest.h"
#include "kernels/cpu/truth.h"

namespace tt::cpu {

namespace {

// One index of the user's: what it adds to the offset.
struct Term {
  Tensor values;  // int64
  int64_t dim;    // for messages
  int64_t size;   // of the dimension; -1: values are offsets already
  int64_t stride;
};

void check_mask(const Tensor& x, const Tensor& mask, int64_t dim) {
  check_as(ErrorKind::kIndex, dim + mask.dim() <= x.dim(), "too many indices for tensor of dimension ", x.dim());
  for (int64_t d = 0; d < mask.dim(); ++d) {
    check_as(ErrorKind::kIndex, mask.size(d) == x.size(dim + d), "The shape of the mask ", to_string(mask.sizes()),
             " at index ", d, " does not match the shape of the indexed tensor ", to_string(x.sizes()), " at index ",
             dim + d);
  }
}

// The sizes that all terms broadcast to.
Sizes common_sizes(const absl::InlinedVector<Term, 4>& terms) {
  Sizes sizes;
  for (const Term& term : terms) {
    const Sizes& other = term.values.sizes();
    if (other.size() > sizes.size()) sizes.insert(sizes.begin(), other.size() - sizes.size(), 1);
    for (size_t d = 0; d < other.size(); ++d) {
      int64_t& size = sizes[sizes.size() - other.size() + d];
      check_as(ErrorKind::kIndex, size == other[d] || size == 1 || other[d] == 1,
               "shape mismatch: indexing tensors could not be broadcast together with shapes ", to_string(sizes), ", ",
               to_string(other));
      if (size == 1) size = other[d];
    }
  }
  return sizes;
}

void add_term(const Term& term, Selection::Range allowed, Tensor& offsets) {
  const int64_t lowest = allowed == Selection::kEitherEnd ? -term.size : 0;
  OutOfRange range(term.dim, term.size);
  const Sizes strides = broadcast_strides(term.values.sizes(), term.values.strides(), offsets.sizes());
  const Nest<2> nest(offsets.sizes(), {offsets.strides(), strides});
  nest.walk_in_parallel([&](const Nest<2>::Offsets& at, int64_t) {
    int64_t* to = offsets.data_as<int64_t>() + at[0];
    const int64_t* from = term.values.data_as<int64_t>() + at[1];
    const int64_t step = nest.stride(1), to_step = nest.stride(0);
    for (int64_t i = 0; i < nest.length(); ++i) {
      int64_t value = from[i * step];
      if (term.size >= 0) {
        if (value < lowest || value >= term.size) [[unlikely]] {
          range.report(value);
          value = 0;
        }
        value = (value < 0 ? value + term.size : value) * term.stride;
      }
      to[i * to_step] += value;
    }
  });
  allowed == Selection::kEitherEnd ? range.rethrow() : range.rethrow_in_self();
}

}  // namespace

Tensor offsets_of_true(const Tensor& mask, SizesView strides) {
  const int64_t count = count_true(mask);
  Tensor offsets = empty({count}, DType::kInt64, mask.device());
  int64_t* out = offsets.data_as<int64_t>();
  with_element(mask.dtype(), [&]<typename T>(std::type_identity<T>) {
    int64_t n = 0;
    const Nest<2> nest(mask.sizes(), {mask.strides(), strides});
    nest.walk(0, nest.rows(), [&](const Nest<2>::Offsets& at, int64_t) {
      const T* row = mask.data_as<T>() + at[0];
      for (int64_t i = 0; i < nest.length() && n < count; ++i) {
        out[n] = at[1] + i * nest.stride(1);
        n += row[i * nest.stride(0)] != T(0);
      }
    });
  });
  return offsets;
}

Selection::Selection(const Tensor& x, const Tensors& indices, Range range) {
  absl::InlinedVector<Term, 4> terms;
  absl::InlinedVector<int64_t, 8> kept;    // dimensions that no index names
  int64_t dim = 0, first = -1, last = -1;  // of the indexed ones
  bool adjacent = true;
  for (const Tensor& index : indices) {
    if (!index) {
      check_as(ErrorKind::kIndex, dim < x.dim(), "too many indices for tensor of dimension ", x.dim());
      kept.push_back(dim++);
      continue;
    }
    const bool mask = index.dtype() == DType::kBool || index.dtype() == DType::kUInt8;  // PyTorch takes both
    if (mask) {
      check_mask(x, index, dim);
      auto strides = absl::MakeConstSpan(x.strides()).subspan(dim, index.dim());
      terms.push_back({offsets_of_true(index, strides), dim, -1, 1});
    } else {
      check_as(ErrorKind::kIndex, dim < x.dim(), "too many indices for tensor of dimension ", x.dim());
      terms.push_back({index_values(index), dim, x.size(dim), x.stride(dim)});
    }
    adjacent &= first < 0 || last == dim;
    if (first < 0) first = dim;
    dim += mask ? index.dim() : 1;
    last = dim;
  }
  for (; dim < x.dim(); ++dim) kept.push_back(dim);

  const Sizes common = common_sizes(terms);
  offsets = empty(common, DType::kInt64, x.device());
  std::fill_n(offsets.data_as<int64_t>(), offsets.numel(), 0);
  for (const Term& term : terms) add_term(term, range, offsets);

  // Indices side by side: their dimensions stand where they stood; else in front.
  auto add_common = [&] {
    for (size_t d = 0; d < common.size(); ++d) {
      sizes.push_back(common[d]);
      steps.push_back(0);
      offset_strides.push_back(offsets.strides()[d]);
    }
  };
  size_t k = 0;
  for (; adjacent && k < kept.size() && kept[k] < first; ++k) {
    sizes.push_back(x.size(kept[k]));
    steps.push_back(x.stride(kept[k]));
    offset_strides.push_back(0);
  }
  add_common();
  for (; k < kept.size(); ++k) {
    sizes.push_back(x.size(kept[k]));
    steps.push_back(x.stride(kept[k]));
    offset_strides.push_back(0);
  }
}

}  // namespace tt::cpu
