#include "autograd/formulas/formulas_linalg.h"

#include <algorithm>

#include "autograd/formulas/formulas.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"

namespace tt::autograd::formulas {
namespace {

bool recording() { return Context::current().grad_enabled; }

Tensor matrix_transpose(const Tensor& t) { return ops::transpose(t, -2, -1); }
// The conjugate transpose, for formulas that receive their matrices unconjugated (Gradient::conjugates).
Tensor adjoint(const Tensor& t) { return conj(matrix_transpose(t)); }

Tensor identity_like(const Tensor& t, int64_t n) { return ops::eye(n, std::nullopt, t.dtype(), t.device()); }

// Returns `number`, which has one element per matrix of `a`, times the identity matrix.
Tensor scaled_identity(const Tensor& number, const Tensor& a) {
  return ops::mul(ops::unsqueeze(ops::unsqueeze(number, -1), -1), identity_like(a, a.size(-1)));
}

// Returns a diagonal matrix with t's diagonal.
Tensor diagonal_part(const Tensor& t) { return ops::diag_embed(ops::diagonal(t, 0, -2, -1), 0, -2, -1); }

Tensor real_diagonal(const Tensor& t) {
  Tensor diagonal = ops::diagonal(t, 0, -2, -1);
  if (is_complex(t.dtype())) diagonal = ops::to_dtype(ops::real(diagonal), t.dtype());
  return ops::diag_embed(diagonal, 0, -2, -1);
}

// Returns x T^-1 or, if transposed, x T^-T, for a triangular matrix T.
Tensor solved_from_right(const Tensor& triangle, const Tensor& x, bool upper, bool transposed) {
  return matrix_transpose(ops::triangular_solved(triangle, matrix_transpose(x), upper, !transposed, false));
}

// Returns P x: permutes the rows of x from the order of L U to the order of A = P L U.
Tensor unpermuted(const Tensor& x, const Tensor& pivots) {
  Tensor order = ops::argsort(ops::lu_permutation(pivots, x.size(-2)), -1, false, false);
  return ops::gather(x, -2, ops::expand(ops::unsqueeze(order, -1), x.sizes()), false);
}

// Returns the n x n matrix 1 / (v[j] - v[i]) with zeros on the diagonal. `rows` is v as a row, `columns` is v as a
// column.
Tensor inverse_gaps(const Tensor& rows, const Tensor& columns, const Tensor& like, int64_t n) {
  Tensor identity = identity_like(like, n);
  return ops::true_divide(ops::rsub(identity, int64_t{1}), ops::add(ops::sub(rows, columns), identity));
}

Dims one(const int64_t& dim) { return absl::Span<const int64_t>(&dim, 1); }

// Returns t, which depends on the gradient of a matrix's vectors, times inverse_gaps(), of which equal values make an
// entry infinite: a loss that depends on the vectors then has no gradient, also if an entry of t is 0. Where the
// gradient of all of a matrix's vectors is 0, the product is 0, so that the gradient of the values alone is finite.
Tensor times_gaps(const Tensor& t, const Tensor& gaps, const Tensor& vectors_grad) {
  const int64_t rows = -2, columns = -1;
  const Tensor used = ops::any(ops::any(vectors_grad, one(columns), true), one(rows), true);
  const Tensor is_lost = ops::logical_not(ops::logical_or(used, ops::isfinite(gaps)));
  return ops::mul(t, ops::masked_fill(gaps, is_lost, 0.0));
}

Tensor skew(const Tensor& t) { return ops::sub(t, adjoint(t)); }

// Returns x T^-H for a triangular matrix T. T^-H is the inverse of its conjugate transpose.
Tensor solved_by_adjoint(const Tensor& triangle, const Tensor& x, bool upper) {
  return adjoint(ops::triangular_solved(triangle, adjoint(x), upper, false, false));
}

}  // namespace

// The square part has X = L^-1 P^T dA U^-1, dL = L tril(X, -1) and dU = triu(X) U. The remaining columns of U (if A is
// wide) or rows of L (if A is tall) depend on both L and U of the square part.
Tensor lu_factored_grad(const Tensor& g, const Tensor& lu, const Tensor& pivots) {
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  Tensor top = ops::narrow(lu, -2, 0, k), gtop = ops::narrow(g, -2, 0, k);
  Tensor u1 = ops::triu(ops::narrow(top, -1, 0, k), 0), gu1 = ops::triu(ops::narrow(gtop, -1, 0, k), 0);
  Tensor identity = identity_like(lu, k);
  Tensor l1 = ops::add(ops::tril(ops::narrow(top, -1, 0, k), -1), identity);
  Tensor lower = ops::matmul(matrix_transpose(l1), ops::tril(ops::narrow(gtop, -1, 0, k), -1));
  Tensor upper = ops::matmul(gu1, matrix_transpose(u1));
  if (m < n) {
    lower =
        ops::sub(lower, ops::matmul(ops::narrow(gtop, -1, k, n - k), matrix_transpose(ops::narrow(top, -1, k, n - k))));
  } else if (m > n) {
    upper = ops::sub(upper, ops::matmul(matrix_transpose(ops::narrow(lu, -2, k, m - k)), ops::narrow(g, -2, k, m - k)));
  }
  Tensor inner = solved_from_right(u1, ops::add(ops::tril(lower, -1), ops::triu(upper, 0)), true, true);
  if (m < n) inner = ops::cat({inner, ops::narrow(gtop, -1, k, n - k)}, -1);
  inner = ops::triangular_solved(l1, inner, false, true, true);
  if (m > n) inner = ops::cat({inner, solved_from_right(u1, ops::narrow(g, -2, k, m - k), true, true)}, -2);
  return unpermuted(inner, pivots);
}

Tensors lu_solved_grad(const Tensor& g, const Tensor& a, const Tensor& lu, const Tensor& pivots, const Tensor& result,
                       bool transposed) {
  Tensor right = ops::lu_solved(a, g, lu, pivots, !transposed);
  Tensor left =
      transposed ? ops::matmul(result, matrix_transpose(right)) : ops::matmul(right, matrix_transpose(result));
  return {ops::neg(left), right};
}

namespace {

double epsilon_of(DType dtype) { return to_real(dtype) == DType::kFloat64 ? 0x1p-52 : 0x1p-23; }

Tensor determinant_of(const Tensor& a) {
  const Tensors factors = ops::lu_factored(ops::detach(a));
  return ops::lu_determinant(a, factors[0], factors[1]);
}

// The derivative of det(A), also for singular A = U diag(S) V: det(U) det(V) conj(U) diag(D) conj(V), where D[i] is the
// product of all singular values except S[i]. Throws Error (NotImplementedError) if singular values are equal, because
// the derivatives of U and V do not exist then.
Tensor cofactors(const Tensor& a) {
  const Tensors parts = ops::svd_decomposed(a, false, true);
  const Tensor &u = parts[0], &s = parts[1], &v = parts[2];
  const int64_t n = s.size(-1);
  Tensor gaps = ops::sub(ops::narrow(s, -1, 0, n - 1), ops::narrow(s, -1, 1, n - 1));
  Tensor least = ops::mul(ops::narrow(s, -1, 0, 1), 100 * epsilon_of(a.dtype()));
  check(ErrorKind::kNotImplemented, !any_true(ops::le(gaps, least)),
        "the gradient of linalg.det is not differentiable for a singular matrix with equal singular values");
  Tensor others =
      prod_dim_grad(ops::ones(Sizes(s.sizes().begin(), s.sizes().end() - 1), s.dtype(), s.device()), s, -1, false);
  Tensor product = ops::matmul(ops::mul(conj(u), ops::unsqueeze(others, -2)), conj(v));
  Tensor unit = ops::mul(determinant_of(u), determinant_of(v));
  return ops::mul(ops::unsqueeze(ops::unsqueeze(unit, -1), -1), product);
}

// Implements lu_determinant_grad() for a pass that is recorded. Uses cofactors() for matrices that are nearly singular
// by PyTorch's criterion, and lu_solved() for the others. where() selects between the two results, but a NaN in the
// result that is not selected would still reach the second derivative. Each formula therefore gets a regular matrix in
// place of the matrices for which its result is not selected.
Tensor recorded_determinant_grad(const Tensor& g, const Tensor& a, const Tensor& lu, const Tensor& pivots,
                                 const Tensor& result) {
  Tensor right = scaled_identity(ops::mul(g, result), a);
  Tensor singular = ops::lt(ops::abs(result), 100 * epsilon_of(a.dtype()));
  if (!any_true(singular)) return ops::lu_solved(a, right, lu, pivots, true);
  const int64_t n = a.size(-1);
  Tensor mask = ops::unsqueeze(ops::unsqueeze(singular, -1), -1), identity = identity_like(a, n);
  Tensor regular = ops::lu_solved(ops::where(mask, identity, a), right, ops::where(mask, identity, lu), pivots, true);
  Tensor distinct = ops::mul(identity, ops::add(ops::arange(n, to_real(a.dtype()), a.device()), int64_t{1}));
  Tensor products = cofactors(ops::where(mask, a, distinct));
  return ops::where(mask, ops::mul(ops::unsqueeze(ops::unsqueeze(g, -1), -1), products), regular);
}

}  // namespace

// Returns g det(A) A^-T, also if A is singular: zeros on U's diagonal are replaced by the machine epsilon, so that
// det(A) A^-T approximates the transposed adjugate.
Tensor lu_determinant_grad(const Tensor& g, const Tensor& a, const Tensor& lu, const Tensor& pivots,
                           const Tensor& result) {
  if (recording()) return recorded_determinant_grad(g, a, lu, pivots, result);
  Tensor zeros = ops::to_dtype(ops::eq(ops::diagonal(lu, 0, -2, -1), int64_t{0}), a.dtype());
  Tensor near = ops::add(lu, ops::diag_embed(ops::mul(zeros, epsilon_of(a.dtype())), 0, -2, -1));
  Tensor determinant = ops::lu_determinant(a, near, pivots);
  return ops::lu_solved(a, scaled_identity(ops::mul(g, determinant), a), near, pivots, true);
}

Tensor lu_log_determinant_grad(const Tensor& gsign, const Tensor& gsize, const Tensor& a, const Tensor& lu,
                               const Tensor& pivots, const Tensor& sign) {
  Tensor g = gsize;
  if (is_complex(a.dtype())) {  // a complex sign also depends on A
    Tensor phase_grad = ops::imag(ops::mul(conj(gsign), sign));
    g = ops::complex(gsize, ops::neg(phase_grad));
  }
  return ops::lu_solved(conj(a), scaled_identity(g, a), conj(lu), pivots, true);
}

Tensor cholesky_grad(const Tensor& g, const Tensor& l) {
  Tensor product = ops::tril(ops::matmul(adjoint(l), g), 0);
  product = ops::sub(product, ops::mul(diagonal_part(product), 0.5));
  Tensor inner = adjoint(solved_from_right(l, adjoint(product), false, false));
  inner = solved_from_right(l, inner, false, false);
  return ops::mul(ops::add(inner, adjoint(inner)), 0.5);
}

Tensors triangular_solved_grad(const Tensor& g, const Tensor& a, const Tensor& result, bool upper, bool transposed,
                               bool unitriangular) {
  Tensor right = ops::triangular_solved(a, g, upper, !transposed, unitriangular);
  Tensor left = ops::neg(transposed ? ops::matmul(result, matrix_transpose(right))
                                    : ops::matmul(right, matrix_transpose(result)));
  return {upper ? ops::triu(left, unitriangular ? 1 : 0) : ops::tril(left, unitriangular ? -1 : 0), right};
}

Tensor qr_grad(const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r, std::string_view mode) {
  check(mode != "r",
        "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
        "linalg.qr(A, mode='reduced') if you are going to require gradients.");
  const int64_t m = q.size(-2), n = r.size(-1), k = std::min(m, n);
  check(mode != "complete" || m <= n,
        "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
  // A wide input is [X, Y] = Q [U, V] with X square. V = Q^T Y depends on Q, so gv contributes to the gradient of Q.
  Tensor u = ops::narrow(r, -1, 0, k), gu = ops::narrow(gr, -1, 0, k), g = gq, gv;
  if (n > k) {
    gv = ops::narrow(gr, -1, k, n - k);
    g = ops::add(g, ops::matmul(ops::matmul(q, ops::narrow(r, -1, k, n - k)), adjoint(gv)));
  }
  Tensor product = ops::sub(ops::matmul(u, adjoint(gu)), ops::matmul(adjoint(g), q));
  Tensor strict = ops::tril(product, -1);
  Tensor symmetric = ops::add(ops::add(strict, adjoint(strict)), real_diagonal(product));
  Tensor result = solved_by_adjoint(u, ops::add(g, ops::matmul(q, symmetric)), true);
  return n > k ? ops::cat({result, ops::matmul(q, gv)}, -1) : result;
}

Tensor eigh_grad(const Tensor& gl, const Tensor& gv, const Tensor& l, const Tensor& v, bool vectors) {
  check(vectors, "the gradient of linalg.eigh depends on the eigenvectors, which were not computed");
  Tensor gaps = inverse_gaps(ops::unsqueeze(l, -2), ops::unsqueeze(l, -1), l, l.size(-1));
  // The skew part: a symmetric perturbation rotates the eigenvectors. The gradient is symmetric.
  const Tensor turning = ops::mul(skew(ops::matmul(adjoint(v), gv)), 0.5);
  Tensor inner = ops::add(ops::diag_embed(gl, 0, -2, -1), times_gaps(turning, gaps, gv));
  return ops::matmul(ops::matmul(v, inner), adjoint(v));
}

Tensor svd_grad(const Tensor& gu, const Tensor& gs, const Tensor& gvh, const Tensor& u, const Tensor& s,
                const Tensor& vh, bool vectors) {
  check(vectors, "the gradient of linalg.svd depends on the singular vectors, which were not computed");
  const int64_t m = u.size(-2), n = vh.size(-1), k = s.size(-1);
  // Only the vectors of the min(m, n) singular values have a gradient. The additional columns of full matrices are
  // arbitrary.
  Tensor left = ops::narrow(u, -1, 0, k), right = ops::narrow(vh, -2, 0, k);
  Tensor gleft = ops::narrow(gu, -1, 0, k), gright = ops::narrow(gvh, -2, 0, k);
  Tensor row = ops::unsqueeze(s, -2), column = ops::unsqueeze(s, -1);
  Tensor gaps = inverse_gaps(ops::square(row), ops::square(column), s, k);
  Tensor turning = skew(ops::matmul(adjoint(left), gleft));
  Tensor by_left = ops::mul(times_gaps(turning, gaps, gleft), row);
  Tensor by_right = ops::mul(times_gaps(skew(ops::matmul(right, adjoint(gright))), gaps, gright), column);
  Tensor inner = ops::add(ops::add(by_left, by_right), ops::diag_embed(gs, 0, -2, -1));
  if (is_complex(u.dtype())) {  // complex vectors also have an arbitrary phase
    Tensor own = ops::diagonal(turning, 0, -2, -1);
    own = ops::masked_fill(ops::true_divide(own, ops::mul(s, int64_t{2})), ops::eq(own, int64_t{0}), 0.0);
    inner = ops::add(inner, ops::diag_embed(own, 0, -2, -1));
  }
  Tensor result = ops::matmul(left, inner);
  if (m > k) {
    Tensor outside = ops::sub(gleft, ops::matmul(left, ops::matmul(adjoint(left), gleft)));
    result = ops::add(result, ops::true_divide(outside, row));
  }
  result = ops::matmul(result, right);
  if (n > k) {
    Tensor outside = ops::sub(gright, ops::matmul(ops::matmul(gright, adjoint(right)), right));
    result = ops::add(result, ops::matmul(left, ops::true_divide(outside, column)));
  }
  return result;
}

// Returns V^-H (diag(gl) + (V^H gv - V^H V diag(V^H gv)) / gaps) V^H. The subtracted term removes the change of each
// eigenvector along itself, because eigenvectors have length 1.
Tensor eig_grad(const Tensor& gl, const Tensor& gv, const Tensor& l, const Tensor& v, bool vectors) {
  check(vectors, "the gradient of linalg.eig depends on the eigenvectors, which were not computed");
  Tensor vh = adjoint(v), moved = ops::matmul(vh, gv);
  Tensor along = ops::real(ops::diagonal(moved, 0, -2, -1));
  Tensor free = ops::sub(moved, ops::mul(ops::matmul(vh, v), ops::unsqueeze(ops::to_dtype(along, v.dtype()), -2)));
  Tensor gaps = conj(inverse_gaps(ops::unsqueeze(l, -2), ops::unsqueeze(l, -1), l, l.size(-1)));
  Tensor inner = ops::add(ops::diag_embed(gl, 0, -2, -1), times_gaps(free, gaps, gv));
  const auto factors = ops::lu_factored(vh, "");
  return ops::lu_solved(vh, ops::matmul(inner, vh), factors[0], factors[1], false);
}

Tensor pseudo_inverse_grad(const Tensor& g, const Tensor& input, const Tensor& result) {
  Tensor gt = adjoint(g), transposed = adjoint(result);
  if (input.size(-2) <= input.size(-1)) {
    Tensor k = ops::matmul(gt, result), kp = ops::matmul(k, transposed);
    Tensor sum = ops::sub(kp, adjoint(ops::matmul(result, k)));
    sum = ops::sub(sum, ops::matmul(ops::matmul(input, result), kp));
    return ops::add(sum, ops::matmul(ops::matmul(transposed, result), ops::sub(gt, ops::matmul(k, input))));
  }
  Tensor k = ops::matmul(result, gt), pk = ops::matmul(transposed, k);
  Tensor sum = ops::sub(pk, adjoint(ops::matmul(k, result)));
  sum = ops::sub(sum, ops::matmul(ops::matmul(pk, result), input));
  return ops::add(sum, ops::matmul(ops::matmul(ops::sub(gt, ops::matmul(input, k)), result), transposed));
}

// Returns the upper right block of exp([[A^T, g], [0, A^T]]).
Tensor matrix_exp_grad(const Tensor& g, const Tensor& input) {
  const int64_t n = input.size(-1);
  Tensor a = matrix_transpose(input);
  Tensor top = ops::cat({a, g}, -1), bottom = ops::cat({ops::zeros_like(a), a}, -1);
  Tensor exponential = ops::matrix_exp(ops::cat({top, bottom}, -2));
  return ops::narrow(ops::narrow(exponential, -2, 0, n), -1, n, n);
}

}  // namespace tt::autograd::formulas
