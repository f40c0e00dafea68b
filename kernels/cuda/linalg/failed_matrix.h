// MatrixFaults: reports, from a kernel, a matrix of a batch that could not be decomposed.
#pragma once

#include <iterator>
#include <string_view>

#include "kernels/common/linalg/decomposition.h"
#include "kernels/cuda/launch/device_error.h"

namespace tt::cuda {

// The functions that a LinAlgError can name. A cell stores a function as its index in this array. Any other function is
// reported as "linalg".
inline constexpr const char* kDecomposing[] = {"linalg",      "linalg.inv", "torch.linalg.solve",     "linalg.cholesky",
                                               "linalg.eigh", "linalg.svd", "torch.linalg.lu_factor", "linalg.eig"};

inline Error matrix_failed(const DeviceErrorCell& cell) {
  const int64_t matrix = error_rank(cell) >> 32, info = error_rank(cell) & INT32_MAX;
  return decomposition_error(kDecomposing[cell.values[2]], cell.values[1] ? matrix : -1, info);
}

// Constructed on the host and captured by value.
struct MatrixFaults {
  DeviceErrorCell* cell = nullptr;
  bool batched = false;
  int64_t function = 0;

  // If `name` is empty, nothing is reported.
  MatrixFaults(const Queue& queue, std::string_view name, const Tensor& input) : batched(input.dim() > 2) {
    if (name.empty()) return;
    cell = open_error_cell(queue, &matrix_failed);
    for (size_t i = 0; i < std::size(kDecomposing); ++i) function = kDecomposing[i] == name ? i : function;
  }
  // Reports `info` for matrix i; 0 means success. Must be called by one thread of the matrix's group. If several
  // matrices of a batch fail, only the first one is reported.
  TT_DEVICE void report(int64_t i, int32_t info) const {
    if (cell && info != 0) report_ranked_error(cell, i << 32 | info, batched, function);
  }
};

}  // namespace tt::cuda
