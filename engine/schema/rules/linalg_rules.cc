// Rules for matrix factorisations.
#include "engine/schema/error.h"
#include "engine/schema/rules/dtype_rules.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {
namespace {

SizesView sizes_of(const Arg& tensor) { return tensor.tensor->sizes; }

Sizes batch_of(SizesView s) { return Sizes(s.begin(), s.end() - 2); }

// Returns a batch's sizes followed by the sizes of its matrices.
Sizes with(Sizes batch, std::initializer_list<int64_t> matrix) {
  batch.insert(batch.end(), matrix.begin(), matrix.end());
  return batch;
}

void check_matrix(SizesView s) {
  check(s.size() >= 2, "The input tensor A must have at least 2 dimensions, got ", s.size());
}

void check_square(SizesView s) {
  check_matrix(s);
  check(s[s.size() - 1] == s[s.size() - 2], "A must be batches of square matrices, but they are ", s[s.size() - 2],
        " by ", s[s.size() - 1], " matrices");
}

// The number of rows (m) and columns (n) of a matrix, and their minimum (k).
struct Extent {
  SymInt m, n, k;
  explicit Extent(const Arg& a) {
    SizesView s = sizes_of(a);
    check_matrix(s);
    m = s[s.size() - 2];
    n = s[s.size() - 1];
    k = smaller(m, n);
  }
};

}  // namespace

namespace shape_rules {

Sizes square(const Arg& a) {
  check_square(sizes_of(a));
  return Sizes(sizes_of(a).begin(), sizes_of(a).end());
}

Sizes matrix_batch(const Arg& a) {
  check_matrix(sizes_of(a));
  return batch_of(sizes_of(a));
}

Sizes square_batch(const Arg& a) {
  check_square(sizes_of(a));
  return batch_of(sizes_of(a));
}

Sizes matrix_rank_sizes(const Arg& a) {
  const Extent e(a);
  return with(batch_of(sizes_of(a)), {e.k});
}

Sizes eigenvalues(const Arg& a) {
  check_square(sizes_of(a));
  return with(batch_of(sizes_of(a)), {Extent(a).n});
}

Sizes eigenvectors(const Arg& a, std::string_view triangle, bool vectors) {
  check(triangle == "L" || triangle == "U" || triangle == "l" || triangle == "u",
        "Expected UPLO argument to be 'L' or 'U', but got ", triangle);
  check_square(sizes_of(a));
  return vectors ? square(a) : Sizes{0};
}

Sizes lu_permutation(const Arg& pivots, SymInt rows) {
  SizesView s = sizes_of(pivots);
  check(!s.empty() && rows >= s.back(), "expected pivots for at most ", rows, " rows, got sizes ", s);
  Sizes result(s.begin(), s.end());
  result.back() = rows;
  return result;
}

Sizes lu_batch(const Arg& a, const Arg& lu, const Arg& pivots) {
  check_square(sizes_of(a));
  check(sizes_of(lu) == sizes_of(a) && sizes_of(pivots) == SizesView(eigenvalues(a)),
        "LU and pivots must match A, got sizes ", sizes_of(lu), " and ", sizes_of(pivots), " for ", sizes_of(a));
  return batch_of(sizes_of(a));
}

Sizes solve(const Arg& a, const Arg& b) {
  check_square(sizes_of(a));
  SizesView s = sizes_of(b);
  check(s.size() == sizes_of(a).size() && batch_of(s) == batch_of(sizes_of(a)) && s[s.size() - 2] == Extent(a).n,
        "Incompatible shapes of A and B, got ", sizes_of(a), " and ", s);
  return Sizes(s.begin(), s.end());
}

Sizes lu_solved(const Arg& a, const Arg& b, const Arg& lu, const Arg& pivots) {
  lu_batch(a, lu, pivots);
  return solve(a, b);
}

Sizes qr_q(const Arg& a, std::string_view mode) {
  check(mode == "reduced" || mode == "complete" || mode == "r", "linalg.qr received unrecognized mode '", mode,
        "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const Extent e(a);
  return mode == "r" ? Sizes{0} : with(batch_of(sizes_of(a)), {e.m, mode == "complete" ? e.m : e.k});
}

Sizes qr_r(const Arg& a, std::string_view mode) {
  const Extent e(a);
  return with(batch_of(sizes_of(a)), {mode == "complete" ? e.m : e.k, e.n});
}

Sizes svd_u(const Arg& a, bool full_matrices, bool vectors) {
  const Extent e(a);
  return vectors ? with(batch_of(sizes_of(a)), {e.m, full_matrices ? e.m : e.k}) : Sizes{0};
}

Sizes svd_vh(const Arg& a, bool full_matrices, bool vectors) {
  const Extent e(a);
  return vectors ? with(batch_of(sizes_of(a)), {full_matrices ? e.n : e.k, e.n}) : Sizes{0};
}

Sizes pseudo_inverse(const Arg& a, const Arg& result) {
  const Extent e(a);
  Sizes sizes = with(batch_of(sizes_of(a)), {e.n, e.m});
  check(sizes_of(result) == SizesView(sizes), "the pseudo-inverse of ", sizes_of(a), " has sizes ", sizes, ", got ",
        sizes_of(result));
  return sizes;
}

}  // namespace shape_rules

namespace dtype_rules {

DType matrix_function(const Arg& a) {
  const DType t = same(a);
  check(has_gradients(t), "Expected a floating point or complex tensor as input. Got ", scalar_type_name(t));
  return t;
}

DType decomposition(const Arg& a) {
  const DType t = matrix_function(a);
  check(t != DType::kFloat16 && t != DType::kBFloat16, "Low precision dtypes not supported. Got ", scalar_type_name(t));
  return t;
}

DType decomposition(const Arg& a, const Arg& b) {
  check(same(a) == same(b), "Expected A and B to have the same dtype, but found A of type ", scalar_type_name(same(a)),
        " and B of type ", scalar_type_name(same(b)), " instead");
  return decomposition(a);
}

DType real_decomposition(const Arg& a) { return to_real(decomposition(a)); }
DType real_decomposition(const Arg& a, const Arg& b) { return to_real(decomposition(a, b)); }
DType complex_decomposition(const Arg& a) { return to_complex(decomposition(a)); }

}  // namespace dtype_rules
}  // namespace tt
