#include "kernels/cpu/nested/sequences.h"

#include <algorithm>

#include "engine/schema/error.h"
#include "kernels/common/nested/sequence_errors.h"
#include "kernels/cpu/iteration/copy.h"

namespace tt::cpu {

Sequences::Sequences(const Tensor& offsets, const Tensor& lengths, int64_t total) {
  const int64_t batch = offsets.numel() - 1;
  check(batch >= 0 && (!lengths || lengths.numel() == batch), "expected one more offset than lengths");
  offsets_ = empty(Sizes{batch + 1}, DType::kInt64, offsets.device());
  lengths_ = empty(Sizes{batch}, DType::kInt64, offsets.device());
  copy(offsets, offsets_);
  if (lengths) copy(lengths, lengths_);
  const int64_t* const at = offsets_.data_as<int64_t>();
  int64_t* const length_of = lengths_.data_as<int64_t>();
  if (at[0] < 0 || at[batch] > total) fail(ErrorKind::kRuntime, offsets_outside(total, at[0], at[batch]));
  for (int64_t b = 0; b < batch; ++b) {
    // The first offset is at least 0 and no offset is less than its predecessor: none overflows the difference.
    if (at[b] > at[b + 1] || at[b + 1] > total)
      fail(ErrorKind::kRuntime, offsets_out_of_order(total, at[b + 1], at[b]));
    const int64_t room = at[b + 1] - at[b];
    if (!lengths) length_of[b] = room;
    if (length_of[b] < 0 || length_of[b] > room) {
      fail(ErrorKind::kRuntime, length_outside(at[b], at[b + 1], length_of[b]));
    }
    longest_ = std::max(longest_, length_of[b]);
    tokens_ += length_of[b];
  }
}

}  // namespace tt::cpu
