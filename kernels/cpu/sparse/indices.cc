#include "kernels/cpu/sparse/indices.h"

#include <algorithm>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/common/sparse/index_errors.h"
#include "kernels/cpu/iteration/contiguous.h"

namespace tt::cpu {
namespace {

constexpr int64_t kGrain = 32 * 1024;  // minimum number of indices, or of multiplications, per thread

// Copies indices to `to` as int64, in parallel; `convert` may check them.
template <typename Convert>
void copy_indices(const Tensor& from, int64_t* to, Convert convert) {
  const Tensor wide = contiguous_as(from, DType::kInt64);
  const int64_t* index = wide.data_as<int64_t>();
  parallel_for(wide.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = convert(index[i]);
  });
}

}  // namespace

void IndexCheck::report(int64_t index) {
  index_.store(index, std::memory_order_relaxed);
  found_.store(true, std::memory_order_relaxed);
}

void IndexCheck::rethrow() const {
  if (!found_.load(std::memory_order_relaxed)) return;
  throw sparse_index_error(index_.load(std::memory_order_relaxed), dim_, size_);
}

void IndexCheck::require_none(const Tensor& indices) const { check_empty_dimension(indices, size_); }

Tensor checked_compressed(const Tensor& crow, int64_t nnz) {
  Tensor copy = empty(crow.sizes(), DType::kInt64, crow.device());
  int64_t* to = copy.data_as<int64_t>();
  copy_indices(crow, to, [](int64_t index) { return index; });
  const int64_t each = crow.size(-1);
  for (int64_t b = 0; b < (each == 0 ? 0 : crow.numel() / each); ++b, to += each) {
    bool valid = to[0] == 0 && to[each - 1] == nnz;
    for (int64_t i = 1; i < each; ++i) valid &= to[i - 1] <= to[i];
    if (!valid) throw sparse_compressed_error(nnz);
  }
  return copy;
}

Csr compressed_indices(const Tensor& crow, const Tensor& col) {
  Csr csr;
  csr.rows = crow.size(-1) - 1;
  csr.nnz = col.size(-1);
  csr.batch = crow.numel() / crow.size(-1);
  csr.compressed = checked_compressed(crow, csr.nnz);
  csr.plain = contiguous_as(col, DType::kInt64);
  return csr;
}

Csr checked_csr(const Tensor& crow, const Tensor& col, int64_t columns) {
  Csr csr = compressed_indices(crow, col);
  csr.plain = checked_positions(col, columns);
  return csr;
}

Tensor checked_positions(const Tensor& index, int64_t size) {
  IndexCheck range(size);
  range.require_none(index);
  Tensor copy = empty(index.sizes(), DType::kInt64, index.device());
  copy_indices(index, copy.data_as<int64_t>(), [&](int64_t i) { return range.checked(i); });
  range.rethrow();
  return copy;
}

Tensor checked_offsets(const Tensor& indices, SizesView size, int64_t step) {
  const int64_t n = indices.size(1), dims = indices.size(0);
  const Tensor wide = contiguous_as(indices, DType::kInt64);
  Tensor offsets = empty({n}, DType::kInt64, indices.device());
  int64_t* to = offsets.data_as<int64_t>();
  std::fill_n(to, n, 0);
  for (int64_t d = dims; d-- > 0;) {
    IndexCheck range(size[d], d);
    if (n > 0 && size[d] == 0) range.report(wide.data_as<int64_t>()[d * n]);
    range.rethrow();
    const int64_t* index = wide.data_as<int64_t>() + d * n;
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] += range.checked(index[i]) * step;
    });
    range.rethrow();
    step *= size[d];
  }
  return offsets;
}

void parallel_for_rows(const int64_t* crow, int64_t rows, int64_t work, absl::FunctionRef<void(int64_t, int64_t)> f) {
  const int64_t total = crow[rows] + rows;  // an empty row costs something too
  const int64_t wanted = std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1));
  const int64_t pieces = std::clamp<int64_t>(total / wanted, 1, int64_t{8} * num_threads());
  // The first row of piece i: before it, crow[row] + row is less than i equal parts of the total.
  const auto first_row = [&](int64_t i) {
    const auto target = static_cast<int64_t>(static_cast<__int128>(total) * i / pieces);
    int64_t low = 0, high = rows;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      crow[middle] + middle < target ? low = middle + 1 : high = middle;
    }
    return low;
  };
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = first_row(i), last = i + 1 == pieces ? rows : first_row(i + 1);
      if (first < last) f(first, last);
    }
  });
}

}  // namespace tt::cpu
