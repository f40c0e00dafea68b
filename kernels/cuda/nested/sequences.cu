#include "kernels/cuda/nested/sequences.h"

#include "engine/schema/error.h"
#include "kernels/common/nested/sequence_errors.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/first_error.h"

namespace tt::cuda {
namespace {

enum Kind : int32_t { kOutside, kOutOfOrder, kLength };

Error invalid_sequences(const DeviceErrorCell& cell) {
  const auto& [a, b, c] = cell.values;
  const bool outside = cell.detail == kOutside, out_of_order = cell.detail == kOutOfOrder;
  return Error(ErrorKind::kRuntime, outside        ? offsets_outside(a, b, c)
                                    : out_of_order ? offsets_out_of_order(a, b, c)
                                                   : length_outside(a, b, c));
}

// Checks offsets `at` and `lengths`, which this launch computes if they are not given. One group, which reads all
// offsets before it overwrites any.
void check_sequences(const Queue& queue, int64_t count, int64_t total, bool given, int64_t* at, int64_t* lengths) {
  DeviceErrorCell* const cell = open_error_cell(queue, &invalid_sequences);
  for_each_group(queue, 1, count, [=] TT_DEVICE(Group & group) {
    const bool outside = at[0] < 0 || at[count] > total;
    const auto is_ordered = [=](int64_t b) { return at[b] >= 0 && at[b] <= at[b + 1] && at[b + 1] <= total; };
    const int64_t bad = first_bad(group, count, [=](int64_t b) {
      if (!is_ordered(b)) return true;
      return given && (lengths[b] < 0 || lengths[b] > at[b + 1] - at[b]);
    });
    const bool valid = !outside && bad == count;
    if (!valid && group.rank() == 0) {
      if (outside) {
        store_error(cell, kOutside, total, at[0], at[count]);
      } else if (!is_ordered(bad)) {
        store_error(cell, kOutOfOrder, total, at[bad + 1], at[bad]);
      } else {
        store_error(cell, kLength, at[bad], at[bad + 1], lengths[bad]);
      }
    }
    group.sync();
    for (int64_t b = group.rank(); b < count; b += group.size()) {
      if (!valid) {
        lengths[b] = 0;
      } else if (!given) {
        lengths[b] = at[b + 1] - at[b];
      }
    }
    group.sync();
    for (int64_t b = group.rank(); b <= count && !valid; b += group.size()) at[b] = 0;
  });
}

}  // namespace

Sequences::Sequences(const Tensor& offsets, const Tensor& lengths, int64_t total) : total_(total) {
  const int64_t count = offsets.numel() - 1;
  check(count >= 0 && (!lengths || lengths.numel() == count), "expected one more offset than lengths");
  offsets_ = empty({count + 1}, DType::kInt64, offsets.device());
  lengths_ = empty({count}, DType::kInt64, offsets.device());
  copy(offsets, offsets_);
  if (lengths) copy(lengths, lengths_);
  check_sequences(queue_of(offsets_), count, total, static_cast<bool>(lengths), offsets_.data_as<int64_t>(),
                  lengths_.data_as<int64_t>());
}

}  // namespace tt::cuda
