#include "kernels/cuda/index/selection.h"

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/inclusive_scan.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

namespace {

struct LoadTruth {
  const uint8_t* truth;
  TT_FUNCTION int64_t operator()(int64_t i) const { return truth[i] != 0; }
};
struct StoreOffset {
  const uint8_t* truth;
  Layout<1> layout;
  int64_t* offsets;
  TT_FUNCTION void operator()(int64_t i, int64_t trues) const {
    if (truth[i] != 0) offsets[trues - 1] = layout.offsets(i).at[0];
  }
};

void add_term(const Queue& queue, const SelectionTerm& term, IndexRange range, bool first, const Tensor& offsets) {
  const Sizes strides = broadcast_strides(term.values.sizes(), term.values.strides(), offsets.sizes());
  const Layout<1> layout(offsets.sizes(), {strides});
  const bool either_end = range == IndexRange::kEitherEnd, checked = term.size >= 0;
  DeviceErrorCell* cell =
      checked ? open_error_cell(queue, either_end ? &index_out_of_range : &index_out_of_range_in_self) : nullptr;
  const int64_t dim = term.dim, size = term.size, stride = term.stride, lowest = either_end ? -size : 0;
  const int64_t* from = term.values.data_as<int64_t>();
  int64_t* to = offsets.data_as<int64_t>();
  for_each(queue, offsets.numel(), [=] TT_DEVICE(int64_t i) {
    int64_t value = from[layout.offsets(i).at[0]];
    if (checked) {
      if (value < lowest || value >= size) value = report_error(cell, value, dim, size);
      value = (value < 0 ? value + size : value) * stride;
    }
    to[i] = first ? value : to[i] + value;
  });
}

Tensor add_up(const SelectionTerms& terms, SizesView sizes, IndexRange range, Device device) {
  Tensor offsets = empty(sizes, DType::kInt64, device);
  if (terms.empty()) fill_with(offsets, Scalar(int64_t{0}));
  bool first = true;
  for (const SelectionTerm& term : terms) {
    add_term(queue_of(offsets), term, range, first, offsets);
    first = false;
  }
  return offsets;
}

}  // namespace

Error index_out_of_range_in_self(const DeviceErrorCell& cell) {
  return Error(ErrorKind::kIndex, absl::StrCat("index out of range in self, got ", cell.values[0], " for dimension ",
                                               cell.values[1], " with size ", cell.values[2]));
}

int64_t value_of(const Tensor& t) {
  Tensor here = empty({}, DType::kInt64, Device{});
  copy(t, here);
  return *here.data_as<int64_t>();
}

Tensor offsets_of_true(const Tensor& mask, SizesView strides) {
  const Tensor truth = contiguous_as(mask, DType::kBool);
  Tensor count = empty({}, DType::kInt64, mask.device());
  count_nonzero(truth, std::nullopt, count);
  Tensor offsets = empty({value_of(count)}, DType::kInt64, mask.device());
  if (offsets.numel() == 0) return offsets;
  const auto* flags = truth.data_as<uint8_t>();
  inclusive_scan(queue_of(mask), truth.numel(), LoadTruth{flags}, Add(),
                 StoreOffset{flags, Layout<1>(mask.sizes(), {strides}), offsets.data_as<int64_t>()});
  return offsets;
}

const SelectionKernels kSelectionKernels = {&contiguous_as, &offsets_of_true, &add_up};

}  // namespace tt::cuda
