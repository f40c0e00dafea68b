// Type dispatch, checks and error messages of matrix decompositions, shared by all backends.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/math/complex.h"

namespace tt {

// The number of matrices in a batch: the product of all sizes except the last two.
inline int64_t matrix_count(const Tensor& t) {
  int64_t n = 1;
  for (int64_t d = 0; d + 2 < t.dim(); ++d) n *= t.size(d);
  return n;
}

// Calls f with std::type_identity of the element type. Throws Error (RuntimeError) for a dtype that is not supported.
template <typename F>
decltype(auto) with_linalg_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32: return f(std::type_identity<float>());
    case DType::kFloat64: return f(std::type_identity<double>());
    case DType::kComplex64: return f(std::type_identity<Complex<float>>());
    case DType::kComplex128: return f(std::type_identity<Complex<double>>());
    default: fail(ErrorKind::kRuntime, "expected float32, float64 or complex matrices, got ", name(dtype));
  }
}

// The reason that a decomposition failed, worded as in the PyTorch function that the user called.
inline std::string decomposition_failure(std::string_view function, int64_t info) {
  if (function == "linalg.inv" || function == "cholesky_inverse") {
    return absl::StrCat("The diagonal element ", info,
                        " is zero, the inversion could not be completed because the input matrix is singular.");
  }
  if (function == "torch.linalg.solve") return "The solver failed because the input matrix is singular.";
  if (function == "linalg.cholesky") {
    return absl::StrCat(
        "The factorization could not be completed because the input is not positive-definite (the "
        "leading minor of order ",
        info, " is not positive-definite).");
  }
  if (function == "torch.linalg.lu_factor") {
    return absl::StrCat("U[", info, ",", info,
                        "] is zero and using it on lu_solve would result in a division by zero. "
                        "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                        "linalg.lu_factor_ex(A, pivot)");
  }
  return absl::StrCat(
      "The algorithm failed to converge because the input matrix contained non-finite values or is "
      "ill-conditioned (error code: ",
      info, ").");
}

// Returns the error for a failed decomposition. `element` is the index of the matrix in its batch, or negative if the
// input is a single matrix.
inline Error decomposition_error(std::string_view function, int64_t element, int64_t info) {
  const std::string which = element < 0 ? "" : absl::StrCat("(Batch element ", element, "): ");
  return Error(ErrorKind::kLinAlg, std::string(function) + ": " + which + decomposition_failure(function, info));
}

inline void check_pivots(const Tensor& pivots) {
  check(pivots.dtype() == DType::kInt32, "Expected LU_pivots to be of int32 dtype, got ", name(pivots.dtype()));
}
inline std::string pivot_error(int64_t pivot, int64_t rows) {
  return absl::StrCat("pivots must be between 1 and ", rows, ", got ", pivot);
}

}  // namespace tt
