#include "kernels/cpu/nested/sequences.h"

#include <numeric>

#include "kernels/cpu/iteration/contiguous.h"

namespace tt::cpu {

Sequences::Sequences(const Tensor& offsets, const Tensor& lengths, int64_t total) {
  const Tensor begins = contiguous_as(offsets, DType::kInt64);
  const Tensor given = lengths ? contiguous_as(lengths, DType::kInt64) : lengths;
  const int64_t* at = begins.data_as<int64_t>();
  const int64_t batch = begins.numel() - 1;
  begins_.assign(at, at + batch);
  lengths_.resize(static_cast<size_t>(batch));
  check(batch >= 0 && at[0] >= 0 && at[batch] <= total, "expected offsets between 0 and ", total, ", got offsets from ",
        at[0], " to ", at[batch]);
  for (int64_t b = 0; b < batch; ++b) {
    // The first offset is at least 0 and no offset is less than its predecessor: none overflows the difference.
    check(at[b] <= at[b + 1] && at[b + 1] <= total, "expected offsets that do not decrease and are at most ", total,
          ", got ", at[b + 1], " after ", at[b]);
    const int64_t room = at[b + 1] - at[b], length = given ? given.data_as<int64_t>()[b] : room;
    check(length >= 0 && length <= room, "expected a length between 0 and ", room, " for the sequence from offset ",
          at[b], " to ", at[b + 1], ", got ", length);
    lengths_[static_cast<size_t>(b)] = length;
  }
}

int64_t Sequences::tokens() const { return std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0}); }

}  // namespace tt::cpu
