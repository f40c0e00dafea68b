#include "kernels/cpu/index/selection.h"

#include <algorithm>

#include "kernels/common/iteration/element.h"
#include "kernels/cpu/index/out_of_range.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/strided_loop.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/reduce/count_nonzero.h"

namespace tt::cpu {

namespace {

// Sets to[i] to the contribution of places[i * step] to an offset if `first`, else adds it. Returns false if an index
// is out of range.
TT_CLONES bool add_offsets(int64_t* __restrict to, int64_t to_step, const int64_t* __restrict places, int64_t step,
                           int64_t n, const SelectionTerm& term, IndexRange allowed, bool first) {
  const int64_t size = term.size, stride = term.stride, lowest = allowed == IndexRange::kEitherEnd ? -size : 0;
  int64_t bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t place = places[i * step];
    const bool outside = (place < lowest) | (place >= size);
    bad |= outside;
    const int64_t offset = outside ? 0 : (place < 0 ? place + size : place) * stride;
    to[i * to_step] = first ? offset : to[i * to_step] + offset;
  }
  return bad == 0;
}

void report_row(OutOfRange& range, const int64_t* places, int64_t step, int64_t n, int64_t lowest, int64_t size) {
  for (int64_t i = 0; i < n; ++i) {
    if (places[i * step] < lowest || places[i * step] >= size) return range.report(places[i * step]);
  }
}

void add_term(const SelectionTerm& term, IndexRange allowed, bool first, Tensor& offsets) {
  OutOfRange range(term.dim, term.size);
  const Sizes strides = broadcast_strides(term.values.sizes(), term.values.strides(), offsets.sizes());
  const StridedLoop<2> loop(offsets.sizes(), {offsets.strides(), strides});
  loop.parallel_for_row_pieces([&](const StridedLoop<2>::Offsets& at, int64_t n) {
    int64_t* to = offsets.data_as<int64_t>() + at[0];
    const int64_t* from = term.values.data_as<int64_t>() + at[1];
    const int64_t step = loop.stride(1), to_step = loop.stride(0);
    if (term.size < 0) {  // values are offsets already
      for (int64_t i = 0; i < n; ++i) to[i * to_step] = (first ? 0 : to[i * to_step]) + from[i * step];
    } else if (!add_offsets(to, to_step, from, step, n, term, allowed, first)) {
      report_row(range, from, step, n, allowed == IndexRange::kEitherEnd ? -term.size : 0, term.size);
    }
  });
  allowed == IndexRange::kEitherEnd ? range.rethrow() : range.rethrow_index_select();
}

Tensor add_up(const SelectionTerms& terms, SizesView sizes, IndexRange range, Device device) {
  if (terms.size() == 1 && terms[0].size < 0) return terms[0].values;
  Tensor offsets = empty(sizes, DType::kInt64, device);
  if (terms.empty()) std::fill_n(offsets.data_as<int64_t>(), offsets.numel(), 0);
  for (const SelectionTerm& term : terms) add_term(term, range, &term == &terms[0], offsets);
  return offsets;
}

}  // namespace

Tensor offsets_of_true(const Tensor& mask, SizesView strides) {
  const int64_t count = count_true(mask);
  Tensor offsets = empty({count}, DType::kInt64, mask.device());
  int64_t* out = offsets.data_as<int64_t>();
  with_any_element(mask.dtype(), [&]<typename T>(std::type_identity<T>) {
    int64_t n = 0;
    const StridedLoop<2> loop(mask.sizes(), {mask.strides(), strides});
    loop.for_rows(0, loop.rows(), [&](const StridedLoop<2>::Offsets& at, int64_t) {
      const T* row = mask.data_as<T>() + at[0];
      for (int64_t i = 0; i < loop.length() && n < count; ++i) {
        out[n] = at[1] + i * loop.stride(1);
        n += row[i * loop.stride(0)] != T(0);
      }
    });
  });
  return offsets;
}

const SelectionKernels kSelectionKernels = {&contiguous_as, &offsets_of_true, &add_up};

}  // namespace tt::cpu
