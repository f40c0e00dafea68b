// Eigenvalues, singular values, norms and products.
#include "client/api/linalg.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "client/api/errors.h"
#include "client/api/matrices.h"
#include "client/api/operators.h"
#include "client/api/session.h"

namespace teletensor {

using internal::adjoint;
using internal::broadcast_batches;
using internal::conjugate;
using internal::identity_like;
using internal::product;
using internal::require_matrix;
using internal::require_square;
using internal::sizes_with;
using internal::wrapped_dim;

namespace linalg {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double epsilon(Dtype dtype) { return dtype == kDouble || dtype == kComplexDouble ? 0x1p-52 : 0x1p-23; }

// The largest singular value that counts as zero, per matrix.
Tensor tolerance(const Tensor& S, const Tensor& A, std::optional<double> atol, std::optional<double> rtol) {
  const double eps = epsilon(S.dtype()) * static_cast<double>(std::max(A.size(-2), A.size(-1)));
  const double relative = rtol.value_or(atol.value_or(0) > 0 ? 0 : eps);
  const Tensor largest = S.size(-1) != 0 ? S.amax(-1, true) : S.sum(-1, true);
  return (largest * relative).clamp_min(atol.value_or(0));
}

void check_dtype(const char* name, const Tensor& A, std::optional<Dtype> dtype) {
  const std::string function = std::string("linalg.") + name;
  if (!A.is_floating_point() && !A.is_complex()) {
    throw NotImplementedError(function + ": Expected a floating point or complex tensor as input. Got " +
                              std::string(tt::name(A.dtype())));
  }
  if (!dtype) return;
  if (!tt::is_floating(*dtype) && !tt::is_complex(*dtype)) {
    throw RuntimeError(function + ": dtype should be floating point or complex, but got " +
                       std::string(tt::name(*dtype)));
  }
  if (tt::is_complex(*dtype) != A.is_complex()) {
    const std::string kind = A.is_complex() ? "complex" : "real";
    throw RuntimeError(function + ": dtype should be " + kind + " for " + kind + " inputs, but got " +
                       std::string(tt::name(*dtype)));
  }
  if (tt::promote(A.dtype(), *dtype) != *dtype) {
    throw RuntimeError(function + ": the dtype of the input (" + std::string(tt::name(A.dtype())) +
                       ") should be convertible without narrowing to the specified dtype (" +
                       std::string(tt::name(*dtype)) + ")");
  }
}

// The two dimensions of the matrices, and the tensor in the dtype of the result.
struct MatrixNorm {
  MatrixNorm(const Tensor& input, IntArrayRef dim, std::optional<Dtype> dtype) : A(input) {
    if (dim.size() != 2) throw RuntimeError("linalg.matrix_norm: dim must be a 2-tuple.");
    require_matrix(input, "linalg.matrix_norm");
    check_dtype("matrix_norm", input, dtype);
    rows = wrapped_dim(dim[0], input.dim());
    columns = wrapped_dim(dim[1], input.dim());
    if (rows == columns) throw RuntimeError("linalg.matrix_norm: dims must be different.");
    if (dtype) A = A.to(*dtype);
  }
  Tensor singular_values() const { return svdvals(A.movedim({rows, columns}, {-2, -1})); }
  Tensor with_dims(const Tensor& value, bool keepdim) const {
    return keepdim ? value.unsqueeze(std::min(rows, columns)).unsqueeze(std::max(rows, columns)) : value;
  }
  Tensor A;
  int64_t rows, columns;
};

Tensor full_rank_solution(const Tensor& A, const Tensor& B) {
  if (A.size(-2) >= A.size(-1)) {
    const auto [Q, R] = qr(A);
    return solve_triangular(R, adjoint(Q).matmul(B), true);
  }
  const auto [Q, R] = qr(adjoint(A));
  return Q.matmul(solve_triangular(adjoint(R), B, false));
}

// For each subchain [i, j] of matrices, the matrix after which to split it for the fewest multiplications (Cormen et
// al., 15.2). Multiplies the subchain.
class Chain {
 public:
  explicit Chain(const std::vector<Tensor>& parts) : parts_(parts), n_(parts.size()), cut_(n_ * n_) {
    std::vector<double> cost(n_ * n_, 0);
    std::vector<double> sizes;
    sizes.reserve(n_ + 1);
    for (const Tensor& part : parts) sizes.push_back(static_cast<double>(part.size(0)));
    sizes.push_back(static_cast<double>(parts.back().size(1)));
    for (size_t length = 1; length < n_; ++length) {
      for (size_t i = 0; i + length < n_; ++i) {
        const size_t j = i + length;
        double least = kInfinity;
        for (size_t k = i; k < j; ++k) {
          const double total = cost[i * n_ + k] + cost[(k + 1) * n_ + j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
          if (total >= least) continue;
          least = total;
          cut_[i * n_ + j] = k;
        }
        cost[i * n_ + j] = least;
      }
    }
  }
  Tensor multiply(size_t i, size_t j) const {  // NOLINT(misc-no-recursion): at most the number of matrices deep
    if (i == j) return parts_[i];
    const size_t k = cut_[i * n_ + j];
    return multiply(i, k).matmul(multiply(k + 1, j));
  }

 private:
  const std::vector<Tensor>& parts_;
  const size_t n_;
  std::vector<size_t> cut_;
};

}  // namespace

std::tuple<Tensor, Tensor> eigh(const Tensor& A, std::string_view uplo) {
  require_square(A, "linalg.eigh");
  return ops::eigh_decomposed(A, uplo);
}
Tensor eigvalsh(const Tensor& A, std::string_view uplo) {
  require_square(A, "linalg.eigvalsh");
  return std::get<0>(ops::eigh_decomposed(A, uplo, A.requires_grad()));
}
std::tuple<Tensor, Tensor> eig(const Tensor& A) {
  require_square(A, "linalg.eig");
  return ops::eig_decomposed(A);
}
Tensor eigvals(const Tensor& A) {
  require_square(A, "linalg.eigvals");
  return std::get<0>(ops::eig_decomposed(A, A.requires_grad()));
}
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& A, bool full_matrices) {
  require_matrix(A, "linalg.svd");
  return ops::svd_decomposed(A, full_matrices);
}
Tensor svdvals(const Tensor& A) {
  require_matrix(A, "linalg.svdvals");
  return std::get<1>(ops::svd_decomposed(A, false, A.requires_grad()));
}

Tensor pinv(const Tensor& A, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  require_matrix(A, "linalg.pinv");
  const Tensor plain = A.detach();
  if (plain.numel() == 0) return adjoint(A).clone();
  Tensor left, right, S, inverse;
  if (hermitian) {
    const auto [values, vectors] = eigh(plain);
    left = vectors, right = adjoint(vectors), S = values.abs(), inverse = 1 / values;
  } else {
    const auto [U, values, Vh] = svd(plain, false);
    left = adjoint(Vh), right = adjoint(U), S = values, inverse = 1 / values;
  }
  const Tensor kept = where(S > tolerance(S, A, atol, rtol), inverse, 0.0);
  return ops::pseudo_inverse_of(A, (left * kept.unsqueeze(-2)).matmul(right));
}
Tensor pinv(const Tensor& A, double rcond, bool hermitian) { return pinv(A, std::nullopt, rcond, hermitian); }
Tensor pinv(const Tensor& A) { return pinv(A, std::nullopt, std::nullopt); }

Tensor matrix_rank(const Tensor& A, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  require_matrix(A, "linalg.matrix_rank");
  const Tensor plain = A.detach(), S = hermitian ? eigvalsh(plain).abs() : svdvals(plain);
  if (S.size(-1) == 0) return A.new_zeros(sizes_with(A, 2, {}), TensorOptions(kLong));
  return (S > tolerance(S, A, atol, rtol)).sum(-1);
}
Tensor matrix_rank(const Tensor& A, double tol, bool hermitian) { return matrix_rank(A, tol, 0.0, hermitian); }
Tensor matrix_rank(const Tensor& A) { return matrix_rank(A, std::nullopt, std::nullopt); }

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& A, const Tensor& B, std::optional<double> rcond,
                                                 std::optional<std::string_view> driver) {
  const std::string_view chosen = driver.value_or("gelsy");
  if (chosen != "gels" && chosen != "gelsy" && chosen != "gelsd" && chosen != "gelss") {
    throw RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got " +
                       std::string(chosen));
  }
  require_matrix(A, "torch.linalg.lstsq");
  const bool vector = B.dim() == A.dim() - 1;
  const Tensor right = vector ? B.unsqueeze(-1) : B;
  require_matrix(right, "torch.linalg.lstsq");
  if (right.size(-2) != A.size(-2))
    throw RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
  const auto [a, b] = broadcast_batches(A, right);
  const int64_t m = a.size(-2), n = a.size(-1);
  Tensor rank = a.new_empty({0}, TensorOptions(kLong)), solution;
  Tensor S = a.detach().abs().reshape(-1).narrow(0, 0, 0), residuals = S;
  if (chosen == "gels") {
    solution = full_rank_solution(a, b);
  } else {
    const double rtol = rcond.value_or(epsilon(a.dtype()) * static_cast<double>(std::max(m, n)));
    solution = pinv(a, 0.0, rtol).matmul(b);
    rank = matrix_rank(a, 0.0, rtol);
    if (chosen != "gelsy") S = svdvals(a.detach());
  }
  if (m > n && chosen != "gelsy") {
    residuals = (a.matmul(solution) - b).abs().square().sum(-2);
    if (vector) residuals = residuals.squeeze(-1);
  }
  return {vector ? solution.squeeze(-1) : solution, residuals, rank, S};
}

Tensor vector_norm(const Tensor& x, double ord, OptionalIntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) {
  check_dtype("vector_norm", x, dtype);
  return ops::vector_norm(x, ord, dim, keepdim, dtype);
}

Tensor matrix_norm(const Tensor& input, double ord, IntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) {
  const MatrixNorm m(input, dim, dtype);
  const double size = std::abs(ord);
  if (size == 2) {
    const Tensor S = m.singular_values();
    return m.with_dims(ord == -2 ? S.amin(-1) : S.size(-1) != 0 ? S.amax(-1) : S.sum(-1), keepdim);
  }
  if (size != 1 && size != kInfinity)
    throw RuntimeError("linalg.matrix_norm: Order " + std::to_string(ord) + " not supported.");
  const int64_t summed = size == 1 ? m.rows : m.columns, left = size == 1 ? m.columns : m.rows;
  const Tensor sums = ops::vector_norm(m.A, 1.0, summed, true);
  const Tensor value = ord < 0                ? sums.amin(left, true)
                       : sums.size(left) != 0 ? sums.amax(left, true)
                                              : sums.sum(left, true);
  return keepdim ? value : value.squeeze({m.rows, m.columns});
}
Tensor matrix_norm(const Tensor& input, std::string_view ord, IntArrayRef dim, bool keepdim,
                   std::optional<Dtype> dtype) {
  const MatrixNorm m(input, dim, dtype);
  if (ord == "fro") return ops::vector_norm(m.A, 2.0, {m.rows, m.columns}, keepdim);
  if (ord == "nuc") return m.with_dims(m.singular_values().sum(-1), keepdim);
  throw RuntimeError("linalg.matrix_norm: Order " + std::string(ord) + " not supported.");
}

namespace {
void check_norm_dims(const Tensor& A) {
  if (A.dim() > 2 || A.dim() == 0) {
    throw RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got " +
                       std::to_string(A.dim()) + "D");
  }
}
}  // namespace

Tensor norm(const Tensor& A, std::optional<double> ord, OptionalIntArrayRef dim, bool keepdim,
            std::optional<Dtype> dtype) {
  if (!ord) return vector_norm(A, 2, dim, keepdim, dtype);
  if (!dim.has_value()) check_norm_dims(A);
  if (dim.has_value() && dim.value().size() != 1 && dim.value().size() != 2)
    throw RuntimeError("linalg.norm: If dim is specified, it must be of length 1 or 2.");
  const bool is_matrix = dim.has_value() ? dim.value().size() == 2 : A.dim() == 2;
  if (!is_matrix) return vector_norm(A, *ord, dim, keepdim, dtype);
  return dim.has_value() ? matrix_norm(A, *ord, dim.value(), keepdim, dtype)
                         : matrix_norm(A, *ord, {-2, -1}, keepdim, dtype);
}
Tensor norm(const Tensor& A, std::string_view ord, OptionalIntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) {
  if (dim.has_value()) return matrix_norm(A, ord, dim.value(), keepdim, dtype);
  if (A.dim() != 2) {
    throw RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got " +
                       std::to_string(A.dim()) + "D");
  }
  return matrix_norm(A, ord, {-2, -1}, keepdim, dtype);
}

namespace {
// The norm of A and that of its inverse, multiplied; infinity for singular matrices, 0 for empty ones.
Tensor condition(const Tensor& A, const auto& p) {
  if (A.numel() == 0) return matrix_norm(A, "fro") * 0;
  const auto [inverse, info] = inv_ex(A);
  return matrix_norm(inverse.masked_fill((info > 0).unsqueeze(-1).unsqueeze(-1), kInfinity), p) * matrix_norm(A, p);
}
}  // namespace

Tensor cond(const Tensor& A, std::optional<double> p) {
  require_matrix(A, "linalg.cond");
  if (p && std::abs(*p) != 1 && std::abs(*p) != 2 && std::abs(*p) != kInfinity)
    throw ValueError("linalg.cond got an invalid norm type: " + std::to_string(*p));
  if ((p && std::abs(*p) != 2) || A.numel() == 0) return condition(A, p.value_or(2));
  const Tensor S = svdvals(A), largest = S.select(-1, 0), least = S.select(-1, -1);
  return p == -2 ? least / largest : largest / least;
}
Tensor cond(const Tensor& A, std::string_view p) {
  require_matrix(A, "linalg.cond");
  if (p != "fro" && p != "nuc") throw ValueError("linalg.cond got an invalid norm type: " + std::string(p));
  if (p == "fro" || A.numel() == 0) return condition(A, p);
  const Tensor S = svdvals(A);
  return S.sum(-1) * (1 / S).sum(-1);
}

Tensor matrix_power(const Tensor& A, int64_t n) {
  require_square(A, "linalg.matrix_power");
  if (n == 0) {  // the zeros have a gradient, of zeros
    return A.masked_fill(A.new_ones(std::vector<int64_t>{}, TensorOptions(kBool)), 0) + identity_like(A, A.size(-1));
  }
  Tensor base = n < 0 ? inv(A) : A, power;
  for (uint64_t rest = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n); rest != 0; rest >>= 1) {
    if (rest & 1) power = power.defined() ? power.matmul(base) : base;
    if (rest > 1) base = base.matmul(base);
  }
  return power.is_same(A) ? power.clone() : power;
}

Tensor multi_dot(TensorList tensors) {
  if (tensors.size() < 2) {
    throw RuntimeError("multi_dot(): expected at least 2 tensors but got " + std::to_string(tensors.size()));
  }
  std::vector<Tensor> parts = tensors.vec();
  const bool first = parts.front().dim() == 1, last = parts.back().dim() == 1;
  if (first) parts.front() = parts.front().unsqueeze(0);
  if (last) parts.back() = parts.back().unsqueeze(-1);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].dim() != 2) {
      throw RuntimeError("multi_dot(): tensor " + std::to_string(i) + " must be 2D but got " +
                         std::to_string(tensors[i].dim()) + "D");
    }
    if (i > 0 && parts[i - 1].size(1) != parts[i].size(0)) {
      throw RuntimeError("multi_dot(): tensors " + std::to_string(i - 1) + " and " + std::to_string(i) +
                         " with shapes " + tt::to_string(parts[i - 1].sizes().span()) + " and " +
                         tt::to_string(parts[i].sizes().span()) + " cannot be multiplied");
    }
  }
  Tensor result = Chain(parts).multiply(0, parts.size() - 1);
  if (last) result = result.squeeze(-1);
  return first ? result.squeeze(0) : result;
}

Tensor cross(const Tensor& input, const Tensor& other, int64_t dim) {
  if (input.dim() != other.dim()) throw RuntimeError("linalg.cross: inputs must have the same number of dimensions.");
  const int64_t d = wrapped_dim(dim, input.dim());
  if (input.size(d) != 3 || other.size(d) != 3) {
    throw RuntimeError("linalg.cross: inputs dimension " + std::to_string(dim) + " must have length 3. Got " +
                       std::to_string(input.size(d)) + " and " + std::to_string(other.size(d)));
  }
  std::vector<int64_t> sizes;
  sizes.reserve(static_cast<size_t>(input.dim()));
  for (int64_t i = 0; i < input.dim(); ++i) sizes.push_back(input.size(i) == 1 ? other.size(i) : input.size(i));
  return teletensor::cross(input.expand(sizes), other.expand(sizes), d);
}

Tensor diagonal(const Tensor& A, int64_t offset, int64_t dim1, int64_t dim2) { return A.diagonal(offset, dim1, dim2); }
Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  check_dtype("vecdot", x, std::nullopt);
  return (conjugate(x) * y).sum(dim);
}

Tensor vander(const Tensor& x, std::optional<int64_t> N) {
  const Tensor base = x.dim() == 0 ? x.unsqueeze(0) : x;
  const int64_t n = N.value_or(base.size(-1));
  if (n <= 1) throw RuntimeError("linalg.vander: N must be greater than 1, got " + std::to_string(n));
  const Tensor column = base.unsqueeze(-1);
  return cat({ones_like(column), column.expand(sizes_with(column, 1, {n - 1}))}, -1).cumprod(-1);
}

Tensor tensorinv(const Tensor& A, int64_t ind) {
  if (ind <= 0) throw RuntimeError("Expected a strictly positive integer for 'ind'");
  const std::vector<int64_t> sizes = A.sizes().vec();
  const auto middle = sizes.begin() + std::min<int64_t>(ind, A.dim());
  std::vector<int64_t> front(sizes.begin(), middle), back(middle, sizes.end());
  if (product(front) != product(back)) {
    throw RuntimeError(
        "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got " +
        std::to_string(product(back)) + " != " + std::to_string(product(front)));
  }
  const Tensor inverse = inv(A.reshape({product(front), product(back)}));
  back.insert(back.end(), front.begin(), front.end());
  return inverse.reshape(back);
}

Tensor tensorsolve(const Tensor& A, const Tensor& B, OptionalIntArrayRef dims) {
  Tensor a = A;
  if (dims.has_value()) {
    std::vector<int64_t> last;
    last.reserve(dims.value().size());
    for (size_t i = 0; i < dims.value().size(); ++i)
      last.push_back(A.dim() - static_cast<int64_t>(dims.value().size() - i));
    a = A.movedim(dims.value(), last);
  }
  const std::vector<int64_t> sizes = a.sizes().vec();
  const auto middle = sizes.begin() + std::min(B.dim(), a.dim());
  const std::vector<int64_t> front(sizes.begin(), middle), rest(middle, sizes.end());
  if (product(front) != product(rest)) {
    throw RuntimeError(
        "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but "
        "got " +
        std::to_string(product(rest)) + " != " + std::to_string(product(front)));
  }
  return solve(a.reshape({product(front), product(rest)}), B.reshape(-1)).reshape(rest);
}

}  // namespace linalg

Tensor pinverse(const Tensor& A, double rcond) { return linalg::pinv(A, rcond); }
Tensor chain_matmul(TensorList matrices) { return matrices.size() == 1 ? matrices[0] : linalg::multi_dot(matrices); }

}  // namespace teletensor
