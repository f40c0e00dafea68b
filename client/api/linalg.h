// linalg: factorisations, solutions and norms of matrices, batched over leading dimensions, with libtorch's names.
//
// If a matrix has no solution or factorisation, reading a result throws LinAlgError. Results of functions ending in
// `_ex` are always readable; `info` is then not 0. Errors of arguments are RuntimeError and IndexError.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "client/api/functions.h"
#include "client/api/tensor.h"

namespace teletensor {
namespace linalg {

/// The inverse, and for each matrix the position of the first zero pivot of its LU, counted from 1 (0: none).
std::tuple<Tensor, Tensor> inv_ex(const Tensor& A, bool check_errors = false);
Tensor inv(const Tensor& A);
Tensor det(const Tensor& A);
/// The determinant's sign and the logarithm of its magnitude.
std::tuple<Tensor, Tensor> slogdet(const Tensor& A);
/// X with A X = B (or X A = B), and for each matrix the position of the first zero pivot of its LU.
std::tuple<Tensor, Tensor> solve_ex(const Tensor& A, const Tensor& B, bool left = true, bool check_errors = false);
Tensor solve(const Tensor& A, const Tensor& B, bool left = true);
/// Reads only one triangle of A.
Tensor solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool left = true, bool unitriangular = false);

/// L and U in one matrix, the pivots (row indices counted from 1), and the position of the first zero pivot.
std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& A, bool pivot = true, bool check_errors = false);
std::tuple<Tensor, Tensor> lu_factor(const Tensor& A, bool pivot = true);
/// P, L and U with P L U = A.
std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& A, bool pivot = true);
/// X with A X = B (or X A = B, or with the adjoint of A), from lu_factor(A).
Tensor lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left = true, bool adjoint = false);
/// L with L L^H = A (its adjoint if upper), and the order of the first leading minor that is not positive.
std::tuple<Tensor, Tensor> cholesky_ex(const Tensor& A, bool upper = false, bool check_errors = false);
Tensor cholesky(const Tensor& A, bool upper = false);
/// Q with orthonormal columns and upper triangular R with Q R = A. `mode`: "reduced", "complete" or "r".
std::tuple<Tensor, Tensor> qr(const Tensor& A, std::string_view mode = "reduced");
/// The first columns of the product of the Householder reflections given by A's columns and tau.
Tensor householder_product(const Tensor& A, const Tensor& tau);

/// Ascending eigenvalues, and eigenvectors as columns, of symmetric or Hermitian matrices. Reads one triangle.
std::tuple<Tensor, Tensor> eigh(const Tensor& A, std::string_view uplo = "L");
Tensor eigvalsh(const Tensor& A, std::string_view uplo = "L");
/// Complex eigenvalues, and eigenvectors as columns of length 1, in no particular order.
std::tuple<Tensor, Tensor> eig(const Tensor& A);
Tensor eigvals(const Tensor& A);
/// U, S and Vh with U diag(S) Vh = A and descending singular values.
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& A, bool full_matrices = true);
Tensor svdvals(const Tensor& A);
/// The Moore-Penrose pseudo-inverse; singular values up to max(atol, rtol * the largest) count as zero. Without
/// tolerances, rtol is the number of rows or columns times the dtype's epsilon.
Tensor pinv(const Tensor& A, std::optional<double> atol, std::optional<double> rtol, bool hermitian = false);
Tensor pinv(const Tensor& A, double rcond, bool hermitian = false);
Tensor pinv(const Tensor& A);
/// The number of singular values above the tolerance.
Tensor matrix_rank(const Tensor& A, std::optional<double> atol, std::optional<double> rtol, bool hermitian = false);
Tensor matrix_rank(const Tensor& A, double tol, bool hermitian = false);
Tensor matrix_rank(const Tensor& A);
/// The solution X of minimum norm among those that minimise ||A X - B||, residuals, rank and singular values; the
/// latter are empty if the driver does not return them. Drivers: "gelsy" (the default), "gels" (full rank), "gelsd",
/// "gelss". Unlike in libtorch, residuals are also returned for matrices of less than full rank, which "gels" does not
/// detect.
std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& A, const Tensor& B,
                                                 std::optional<double> rcond = std::nullopt,
                                                 std::optional<std::string_view> driver = std::nullopt);

/// The vector norm of the elements along dim, or of all elements.
Tensor vector_norm(const Tensor& x, double ord = 2, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                   std::optional<Dtype> dtype = std::nullopt);
/// `ord` is inf, 1 or 2, or a negated number for minima instead of maxima.
Tensor matrix_norm(const Tensor& A, double ord, IntArrayRef dim = {-2, -1}, bool keepdim = false,
                   std::optional<Dtype> dtype = std::nullopt);
/// `ord` is "fro" or "nuc".
Tensor matrix_norm(const Tensor& A, std::string_view ord = "fro", IntArrayRef dim = {-2, -1}, bool keepdim = false,
                   std::optional<Dtype> dtype = std::nullopt);
/// vector_norm or matrix_norm, depending on ord and dim; without both, the norm of all elements as a vector.
Tensor norm(const Tensor& A, std::optional<double> ord = std::nullopt, OptionalIntArrayRef dim = std::nullopt,
            bool keepdim = false, std::optional<Dtype> dtype = std::nullopt);
Tensor norm(const Tensor& A, std::string_view ord, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
            std::optional<Dtype> dtype = std::nullopt);
/// The condition number: from singular values without `p`, and for 2 and -2.
Tensor cond(const Tensor& A, std::optional<double> p = std::nullopt);
Tensor cond(const Tensor& A, std::string_view p);

using teletensor::matmul;
using teletensor::matrix_exp;
/// A negative n raises the inverse to the power -n.
Tensor matrix_power(const Tensor& A, int64_t n);
/// The product of two or more matrices (the first and last may be vectors), in the cheapest order.
Tensor multi_dot(TensorList tensors);
Tensor cross(const Tensor& input, const Tensor& other, int64_t dim = -1);
Tensor diagonal(const Tensor& A, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
/// The sums of products along dim, with the first factors conjugated.
Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim = -1);
/// The powers 0 to N - 1 of each element, along a new last dimension.
Tensor vander(const Tensor& x, std::optional<int64_t> N = std::nullopt);
/// The inverse of A as a linear map from its last dimensions to its first `ind`.
Tensor tensorinv(const Tensor& A, int64_t ind = 2);
/// X with tensordot(A, X, X.dim()) = B.
Tensor tensorsolve(const Tensor& A, const Tensor& B, OptionalIntArrayRef dims = std::nullopt);

}  // namespace linalg

// The names that these functions also have in libtorch's namespace torch.
using linalg::det;
using linalg::matrix_power;
using linalg::slogdet;
Tensor inverse(const Tensor& A);
/// The logarithm of the determinant; NaN if the determinant is negative.
Tensor logdet(const Tensor& A);
Tensor pinverse(const Tensor& A, double rcond = 1e-15);
Tensor cholesky(const Tensor& A, bool upper = false);
/// X with A X = B, from A's Cholesky factor L.
Tensor cholesky_solve(const Tensor& B, const Tensor& L, bool upper = false);
Tensor cholesky_inverse(const Tensor& L, bool upper = false);
/// P, L and U from the results of lu_factor.
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU, const Tensor& pivots);
Tensor chain_matmul(TensorList matrices);

}  // namespace teletensor
