#include "kernels/cpu/selection.h"

#include <algorithm>

#include "kernels/common/element.h"
#include "kernels/cpu/index_values.h"
#include "kernels/cpu/nest.h"
#include "kernels/cpu/truth.h"

namespace tt::cpu {

namespace {

void add_term(const SelectionTerm& term, IndexRange allowed, Tensor& offsets) {
  const int64_t lowest = allowed == IndexRange::kEitherEnd ? -term.size : 0;
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
  allowed == IndexRange::kEitherEnd ? range.rethrow() : range.rethrow_in_self();
}

Tensor add_up(const SelectionTerms& terms, SizesView sizes, IndexRange range, Device device) {
  Tensor offsets = empty(sizes, DType::kInt64, device);
  std::fill_n(offsets.data_as<int64_t>(), offsets.numel(), 0);
  for (const SelectionTerm& term : terms) add_term(term, range, offsets);
  return offsets;
}

}  // namespace

Tensor offsets_of_true(const Tensor& mask, SizesView strides) {
  const int64_t count = count_true(mask);
  Tensor offsets = empty({count}, DType::kInt64, mask.device());
  int64_t* out = offsets.data_as<int64_t>();
  with_any_element(mask.dtype(), [&]<typename T>(std::type_identity<T>) {
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

const SelectionKernels kSelectionKernels = {&index_values, &offsets_of_true, &add_up};

}  // namespace tt::cpu
