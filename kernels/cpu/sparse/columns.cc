#include "kernels/cpu/sparse/columns.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "kernels/common/sparse/index_errors.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/sparse/indices.h"

namespace tt::cpu {
namespace {

// Stable sort of positions by keys below `limit`, by counting them.
void counting_sort(const int64_t* keys, int64_t n, int64_t limit, int64_t* order) {
  Tensor counts = empty({limit + 1}, DType::kInt64, Device{});
  int64_t* next = counts.data_as<int64_t>();
  std::fill_n(next, limit + 1, 0);
  for (int64_t i = 0; i < n; ++i) ++next[keys[i] + 1];
  for (int64_t k = 0; k < limit; ++k) next[k + 1] += next[k];
  for (int64_t i = 0; i < n; ++i) order[next[keys[i]]++] = i;
}

// Stable sort of positions by keys of `bits` bits, 11 bits per pass.
void radix_sort(const int64_t* keys, int64_t n, int bits, int64_t* order) {
  constexpr int kDigit = 11;
  constexpr int64_t kMask = (1 << kDigit) - 1;
  struct Entry {
    int64_t key, position;
  };
  Tensor buffers = empty({2, n, 2}, DType::kInt64, Device{});
  auto* from = static_cast<Entry*>(buffers.data());
  Entry* to = from + n;
  for (int64_t i = 0; i < n; ++i) from[i] = {keys[i], i};
  for (int shift = 0; shift < bits; shift += kDigit) {
    int64_t next[kMask + 2] = {};
    for (int64_t i = 0; i < n; ++i) ++next[((from[i].key >> shift) & kMask) + 1];
    for (int64_t k = 0; k < kMask; ++k) next[k + 1] += next[k];
    for (int64_t i = 0; i < n; ++i) to[next[(from[i].key >> shift) & kMask]++] = from[i];
    std::swap(from, to);
  }
  for (int64_t i = 0; i < n; ++i) order[i] = from[i].position;
}

}  // namespace

Columns::Columns(const Tensor& indices, SizesView size) : dtype_(indices.dtype()) {
  check_columns(indices, size);
  dims_ = indices.size(0);
  count_ = indices.size(1);
  largest_ = product_or_overflow(size);
  if (largest_ >= 0) {
    keys_ = checked_offsets(indices, size, 1);
    if (dims_ == 1) {
      copy_ = keys_;
      return;
    }
  }
  copy_ = empty(indices.sizes(), DType::kInt64, indices.device());
  const Tensor wide = contiguous_as(indices, DType::kInt64);
  for (int64_t d = 0; d < dims_; ++d) {
    IndexCheck range(size[static_cast<size_t>(d)], d);
    for (int64_t i = d * count_; i < (d + 1) * count_; ++i) {
      copy_.data_as<int64_t>()[i] = range.checked(wide.data_as<int64_t>()[i]);
    }
    range.rethrow();
  }
}

bool Columns::is_sorted_and_distinct() const {
  for (int64_t i = 1; i < count_; ++i) {
    if (compare(i - 1, *this, i) >= 0) return false;
  }
  return true;
}

Tensor Columns::sorted_order() const {
  Tensor order = empty({count_}, DType::kInt64, copy_.device());
  int64_t* to = order.data_as<int64_t>();
  bool sorted = true;
  for (int64_t i = 1; i < count_ && sorted; ++i) sorted = compare(i - 1, *this, i) <= 0;
  if (sorted || !keys_) {
    std::iota(to, to + count_, int64_t{0});
    if (!sorted) std::stable_sort(to, to + count_, [&](int64_t a, int64_t b) { return compare(a, *this, b) < 0; });
  } else if (largest_ <= std::max<int64_t>(4 * count_, 4096)) {
    counting_sort(keys_.data_as<int64_t>(), count_, largest_, to);
  } else {
    radix_sort(keys_.data_as<int64_t>(), count_, std::bit_width(static_cast<uint64_t>(largest_)), to);
  }
  return order;
}

int Columns::compare_indices(int64_t i, const Columns& other, int64_t j) const {
  for (int64_t d = 0; d < dims_; ++d) {
    const int64_t a = copy_.data_as<int64_t>()[d * count_ + i];
    const int64_t b = other.copy_.data_as<int64_t>()[d * other.count_ + j];
    if (a != b) return a < b ? -1 : 1;
  }
  return 0;
}

void Columns::copy_column(int64_t i, const Tensor& out, int64_t to) const {
  const int64_t width = out.size(1);
  for (int64_t d = 0; d < dims_; ++d) {
    const int64_t index = copy_.data_as<int64_t>()[d * count_ + i];
    if (dtype_ == DType::kInt32) {
      out.data_as<int32_t>()[d * width + to] = static_cast<int32_t>(index);
    } else {
      out.data_as<int64_t>()[d * width + to] = index;
    }
  }
}

Tensor Columns::empty_like(int64_t count) const { return empty({dims_, count}, dtype_, copy_.device()); }

}  // namespace tt::cpu
