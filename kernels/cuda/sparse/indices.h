// Checked indices of sparse tensors.
//
// Another session may write a tensor of indices while a kernel reads it. Kernels therefore check each index where they
// read it, or copy indices and check the copy. An invalid index is an error of the call's results (device_error.h); the
// kernels continue with 0. The functions below report to a cell of open_index_cell().
#pragma once

#include <cstdint>

#include "kernels/common/sort/searchsorted.h"
#include "kernels/common/sparse/index_errors.h"
#include "kernels/cuda/launch/access.h"
#include "kernels/cuda/launch/device_error.h"

namespace tt::cuda {

// The errors of a cell of open_index_cell(): the dimension of an index that is out of range, -1 for none, or another
// kind of error.
enum IndexError : int64_t { kNoDimension = -1, kInvalidCompressed = -2, kNotASet = -3, kEqualRows = -4 };

// Opens a cell for all errors of indices of a call, since a session has few cells. Of several errors, the one that is
// reported first in stream order remains.
DeviceErrorCell* open_index_cell(const Queue& queue);
// Throws the error that was reported to the cell. Requires that the device has completed the checks. For results whose
// size depends on data: if they have no elements, nobody would read the error.
void throw_reported(const DeviceErrorCell* cell);
// The same for another result, if it has no elements: waits for `checked`, which the checks wrote or read. Does nothing
// while a graph is captured.
void throw_reported_if_empty(const Tensor& out, const Tensor& checked, const DeviceErrorCell* cell);

// The indices [0, size) of a dimension. `dim` is part of the error's message; -1 for none.
struct IndexRange {
  int64_t size, dim;
  DeviceErrorCell* cell;

  // Returns the index, or reports it and returns 0.
  TT_DEVICE int64_t checked(int64_t index) const {
    if (static_cast<uint64_t>(index) < static_cast<uint64_t>(size)) return index;
    return report_error(cell, index, dim, size);
  }
};

// The range of `indices`. Throws Error (RuntimeError) if there are indices but `size` is 0.
IndexRange index_range(const Tensor& indices, int64_t size, DeviceErrorCell* cell);

// Reports the first of n indices that is invalid. Fault is a named type with two functions of device code:
// found(i) returns whether index i is invalid, and report(cell, i) calls report_error().
template <typename Fault>
void report_first(const Queue& queue, int64_t n, Fault fault, DeviceErrorCell* cell) {
  const Tensor first = empty({1}, DType::kInt64, queue.device());
  int64_t* at = first.data_as<int64_t>();
  queue.fill(at, 0, sizeof(int64_t));
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    if (fault.found(i)) atomic_max(at, INT64_MAX - i);
  });
  for_each(queue, 1, [=] TT_DEVICE(int64_t) {
    if (*at > 0) fault.report(cell, INT64_MAX - *at);
  });
}

// A copy of indices as int64, all in [0, size).
Tensor checked_positions(const Tensor& index, int64_t size, DeviceErrorCell* cell);
// A copy of compressed indices of `nnz` entries, as int64: all 0 if they are invalid. Throws Error (RuntimeError) if
// there are entries but no rows.
Tensor checked_compressed(const Tensor& crow, int64_t nnz, DeviceErrorCell* cell);
// Row-major positions of the columns of `indices` in a tensor of the sparse sizes `size`. All 0 for positions beyond 64
// bits. Throws Error (RuntimeError) if there are indices of an empty
// dimension.
Tensor checked_offsets(const Tensor& indices, SizesView size, DeviceErrorCell* cell);

// Pointers to a batch of CSR matrices. Entries of all matrices are numbered together.
struct CsrView {
  const int64_t *crow, *col;
  int64_t rows, nnz;

  // The entries of a row; rows of all matrices are numbered together.
  TT_FUNCTION int64_t begin(int64_t row) const { return row / rows * nnz + crow[row / rows + row]; }
  TT_FUNCTION int64_t end(int64_t row) const { return row / rows * nnz + crow[row / rows + row + 1]; }
  // The row of an entry within its matrix. Requires at least one row.
  TT_DEVICE int64_t row_of(int64_t entry) const {
    const int64_t matrix = entry / nnz;
    const int64_t row = insertion_point(crow + matrix * (rows + 1), rows + 1, entry - matrix * nnz, true) - 1;
    return row < rows ? row : rows - 1;  // only if all compressed indices are 0, because they were invalid
  }
};

// A batch of CSR matrices: a checked copy of the compressed indices, and the plain indices as int64.
struct Csr {
  int64_t batch = 1, rows = 0, nnz = 0;
  Tensor compressed, plain;

  CsrView view() const { return {compressed.data_as<int64_t>(), plain.data_as<int64_t>(), rows, nnz}; }
  int64_t entries() const { return batch * nnz; }
  // The average number of entries per row.
  int64_t row_length() const { return rows > 0 ? nnz / rows : 0; }
};

// The plain indices are not checked, and may be memory of the argument.
Csr compressed_indices(const Tensor& crow, const Tensor& col, DeviceErrorCell* cell);
// The same, with the plain indices copied and checked too.
Csr checked_csr(const Tensor& crow, const Tensor& col, int64_t columns, DeviceErrorCell* cell);

// The entries of a batch of CSR matrices, sorted by column.
struct SortedByColumn {
  Tensor starts;  // int64, (batch, columns + 1): the first entry of each column within its matrix
  Tensor order;   // int64: the entry at each place of the order
  Tensor rows;    // int64: its row
};
// Equal columns keep the order of their entries. Requires that the plain indices were checked.
SortedByColumn sorted_by_column(const Csr& csr, int64_t columns);

// The number of low bits in which numbers below `limit` may differ.
int bits_below(int64_t limit);

template <typename F>
void with_index(DType dtype, F f) {
  dtype == DType::kInt32 ? f(std::type_identity<int32_t>()) : f(std::type_identity<int64_t>());
}

// The number of elements of each part of `parts` along its first dimension.
int64_t part_width(const Tensor& parts);

// Rows or runs of at least this many entries on average are divided among the threads of a group.
inline constexpr int64_t kLongRow = 32;

// Addition of the elements of any type.
struct Sum {
  template <typename T>
  TT_FUNCTION T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};

// The type in which sums of T are computed.
template <typename T>
using SumType = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

}  // namespace tt::cuda
