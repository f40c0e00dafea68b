// Checked indices of sparse tensors.
//
// Another session may write a tensor of indices while a kernel reads it, so a check of the tensor is not enough:
// kernels either copy indices and check the copy, or check each index where they use it (IndexCheck).
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "engine/tensor/tensor.h"

namespace tt::cpu {

// Replaces indices outside [0, size) by 0 and remembers one of them. Thread-safe. `size` must not be 0 if checked() is
// called: use require_none() for an empty dimension.
class IndexCheck {
 public:
  explicit IndexCheck(int64_t size, int64_t dim = -1) : size_(size), dim_(dim) {}
  bool contains(int64_t index) const { return static_cast<uint64_t>(index) < static_cast<uint64_t>(size_); }
  int64_t checked(int64_t index) {
    if (contains(index)) [[likely]]
      return index;
    report(index);
    return 0;
  }
  void report(int64_t index);
  // Throws Error (RuntimeError) if an index was out of range.
  void rethrow() const;
  // Throws Error (RuntimeError) if there are indices but the dimension is empty.
  void require_none(const Tensor& indices) const;

 private:
  int64_t size_, dim_;
  std::atomic<int64_t> index_{0};
  std::atomic<bool> found_{false};
};

// A batch of CSR matrices: a checked copy of the compressed indices, and the plain indices as int64.
struct Csr {
  int64_t batch = 1, rows = 0, nnz = 0;
  Tensor compressed, plain;

  const int64_t* crow(int64_t b) const { return compressed.data_as<int64_t>() + b * (rows + 1); }
  const int64_t* col(int64_t b) const { return plain.data_as<int64_t>() + b * nnz; }
};

// Throws Error (RuntimeError) unless the compressed indices start with 0, do not decrease and end with the number of
// entries. The plain indices are not checked, and may be memory of the argument.
Csr compressed_indices(const Tensor& crow, const Tensor& col);
// The same, with the plain indices copied and checked too.
Csr checked_csr(const Tensor& crow, const Tensor& col, int64_t columns);
// A checked copy of compressed indices of `nnz` entries, as int64.
Tensor checked_compressed(const Tensor& crow, int64_t nnz);

// Row-major offsets, in units of `step`, of the columns of `indices` in a tensor of the sparse sizes `size`; checked.
// Requires that the number of elements of that tensor, times `step`, fits into 64 bits.
Tensor checked_offsets(const Tensor& indices, SizesView size, int64_t step);

// A copy of a vector of indices as int64, all in [0, size).
Tensor checked_positions(const Tensor& index, int64_t size);

// Calls f(begin, end) in parallel for ranges of rows of about the same number of entries, of one matrix. `work` is the
// cost of one entry.
void parallel_for_rows(const int64_t* crow, int64_t rows, int64_t work, absl::FunctionRef<void(int64_t, int64_t)> f);

}  // namespace tt::cpu
