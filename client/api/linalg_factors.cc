// LU, Cholesky and QR factorisations, and solutions computed from them.
#include <cmath>
#include <limits>

#include "client/api/errors.h"
#include "client/api/linalg.h"
#include "client/api/matrices.h"
#include "client/api/operators.h"
#include "client/api/session.h"

namespace teletensor {

using internal::adjoint;
using internal::broadcast_batches;
using internal::conjugate;
using internal::identity_like;
using internal::require_matrix;
using internal::require_square;
using internal::sizes_with;
using internal::transposed;

namespace linalg {
namespace {

// The LU factorisation of A without a gradient, for functions whose gradient is computed from A itself. A singular
// matrix causes an error that names `checked_by`, unless that is empty.
std::tuple<Tensor, Tensor, Tensor> factored(const Tensor& A, std::string_view checked_by) {
  return ops::lu_factored(A.detach(), checked_by);
}

std::string size_text(const Tensor& t) { return std::to_string(t.size(-2)) + "x" + std::to_string(t.size(-1)); }

void check_equation(const std::string& function, const Tensor& A, const Tensor& B, bool left) {
  if (A.size(-1) == B.size(left ? -2 : -1)) return;
  throw RuntimeError(function + ": Incompatible shapes of A and B for the equation " + (left ? "AX = B" : "XA = B") +
                     " (" + size_text(A) + " and " + size_text(B) + ")");
}

// Solves A X = B or, if `transpose`, A^T X = B from A's LU.
Tensor solve_with(const Tensor& A, const Tensor& B, const Tensor& LU, const Tensor& pivots, bool transpose) {
  const auto [a, b] = broadcast_batches(A, B);
  return ops::lu_solved(a, b, LU.expand(a.sizes()), pivots.expand(sizes_with(a, 1, {})), transpose);
}

bool is_vector(const Tensor& A, const Tensor& B) {
  return B.dim() == 1 || (A.dim() - 1 == B.dim() && B.sizes().vec() == sizes_with(A, 1, {}));
}

}  // namespace

std::tuple<Tensor, Tensor> inv_ex(const Tensor& A, bool check_errors) {
  require_square(A, "linalg.inv");
  const auto [LU, pivots, info] = factored(A, check_errors ? "linalg.inv" : "");
  return {ops::lu_solved(A, identity_like(A, A.size(-1)), LU, pivots), info};
}
Tensor inv(const Tensor& A) { return std::get<0>(inv_ex(A, true)); }

Tensor det(const Tensor& A) {
  require_square(A, "linalg.det");
  const auto [LU, pivots, info] = factored(A, "");
  return ops::lu_determinant(A, LU, pivots);
}

std::tuple<Tensor, Tensor> slogdet(const Tensor& A) {
  require_square(A, "linalg.slogdet");
  const auto [LU, pivots, info] = factored(A, "");
  return ops::lu_log_determinant(A, LU, pivots);
}

std::tuple<Tensor, Tensor> solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors) {
  require_square(A, "linalg.solve");
  const bool vector = is_vector(A, B);
  if (vector && !left)
    throw RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.");
  if (!vector) {
    require_matrix(B, "linalg.solve");
    check_equation("linalg.solve", A, B, left);
  }
  const auto [LU, pivots, info] = factored(A, check_errors ? "torch.linalg.solve" : "");
  if (vector) return {solve_with(A, B.unsqueeze(-1), LU, pivots, false).squeeze(-1), info};
  if (left) return {solve_with(A, B, LU, pivots, false), info};
  return {transposed(solve_with(A, transposed(B), LU, pivots, true)), info};
}
Tensor solve(const Tensor& A, const Tensor& B, bool left) { return std::get<0>(solve_ex(A, B, left, true)); }

Tensor solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool left, bool unitriangular) {
  require_square(A, "linalg.solve_triangular");
  require_matrix(B, "linalg.solve_triangular");
  check_equation("linalg.solve_triangular", A, B, left);
  const auto [a, b] = broadcast_batches(A, B);
  if (left) return ops::triangular_solved(a, b, upper, false, unitriangular);
  return transposed(ops::triangular_solved(a, transposed(b), upper, true, unitriangular));
}

std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& A, bool pivot, bool check_errors) {
  if (!pivot && A.numel() != 0)
    throw RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  require_matrix(A, "torch.linalg.lu_factor_ex");
  return ops::lu_factored(A, check_errors ? "torch.linalg.lu_factor" : "");
}
std::tuple<Tensor, Tensor> lu_factor(const Tensor& A, bool pivot) {
  const auto [LU, pivots, info] = lu_factor_ex(A, pivot, true);
  return {LU, pivots};
}
std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& A, bool pivot) {
  const auto [LU, pivots, info] = lu_factor_ex(A, pivot);
  return lu_unpack(LU, pivots);
}

Tensor lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool is_adjoint) {
  require_square(LU, "torch.linalg.lu_solve");
  if (!left) return adjoint(lu_solve(LU, pivots, adjoint(B), true, !is_adjoint));  // X A = B is A^H X^H = B^H
  const auto [lu, b] = broadcast_batches(LU, B);
  const Tensor order = ops::lu_permutation(pivots.expand(sizes_with(lu, 1, {})), lu.size(-1)).unsqueeze(-1);
  if (is_adjoint) {
    const Tensor factors = conjugate(lu);
    Tensor inner = ops::triangular_solved(factors, b, true, true, false);
    inner = ops::triangular_solved(factors, inner, false, true, true);
    return inner.gather(-2, order.argsort(-2).expand(b.sizes()));
  }
  const Tensor inner = ops::triangular_solved(lu, b.gather(-2, order.expand(b.sizes())), false, false, true);
  return ops::triangular_solved(lu, inner, true, false, false);
}

std::tuple<Tensor, Tensor> cholesky_ex(const Tensor& A, bool upper, bool check_errors) {
  require_square(A, "linalg.cholesky");
  const auto [L, info] = ops::cholesky_factored(upper ? adjoint(A) : A, check_errors ? "linalg.cholesky" : "");
  return {upper ? adjoint(L) : L, info};
}
Tensor cholesky(const Tensor& A, bool upper) { return std::get<0>(cholesky_ex(A, upper, true)); }

std::tuple<Tensor, Tensor> qr(const Tensor& A, std::string_view mode) {
  require_matrix(A, "linalg.qr");
  return ops::qr_factored(A, mode);
}

Tensor householder_product(const Tensor& A, const Tensor& tau) {
  require_matrix(A, "torch.linalg.householder_product");
  const int64_t m = A.size(-2), n = A.size(-1);
  if (m < n) {
    throw RuntimeError(
        "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]");
  }
  const SessionGuard session(A.session());
  const Tensor columns = eye(m, n, A.options()), vectors = A.tril(-1) + columns;
  Tensor result = columns.expand(A.sizes());
  for (int64_t i = tau.size(-1) - 1; i >= 0; --i) {
    const Tensor v = vectors.narrow(-1, i, 1);
    result = result - tau.narrow(-1, i, 1).unsqueeze(-1) * v.matmul(adjoint(v).matmul(result));
  }
  return result;
}

}  // namespace linalg

Tensor inverse(const Tensor& A) { return linalg::inv(A); }
Tensor logdet(const Tensor& A) {
  const auto [sign, size] = linalg::slogdet(A);
  if (A.is_complex()) return complex(size, sign.angle());
  return where(sign == -1, std::numeric_limits<double>::quiet_NaN(), size);
}
Tensor cholesky(const Tensor& A, bool upper) { return linalg::cholesky(A, upper); }
Tensor cholesky_solve(const Tensor& B, const Tensor& L, bool upper) {
  const auto [factor, b] = broadcast_batches(L, B);
  const Tensor lower = upper ? adjoint(factor) : factor;
  return ops::triangular_solved(conjugate(lower), ops::triangular_solved(lower, b, false, false), false, true);
}
Tensor cholesky_inverse(const Tensor& L, bool upper) {
  require_square(L, "cholesky_inverse");
  return cholesky_solve(identity_like(L, L.size(-1)), L, upper);
}
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU, const Tensor& pivots) {
  require_matrix(LU, "torch.lu_unpack");
  if (pivots.dtype() != kInt)
    throw RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.");
  const SessionGuard session(LU.session());
  const int64_t m = LU.size(-2), k = std::min(m, LU.size(-1));
  const Tensor L = LU.narrow(-1, 0, k).tril(-1) + eye(m, k, LU.options()), U = LU.narrow(-2, 0, k).triu();
  const Tensor order = ops::lu_permutation(pivots, m).unsqueeze(-2);
  const Tensor P = (order == arange(m, order.options()).unsqueeze(-1)).to(LU.dtype());
  return {P, L, U};
}

}  // namespace teletensor
