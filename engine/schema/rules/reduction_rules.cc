// Rules for reductions: the remaining dimensions, and the result's dtype.
#include <algorithm>

#include "engine/schema/error.h"
#include "engine/schema/rules/dtype_rules.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {
namespace {

using Dims = std::optional<SizesView>;

const Sizes& sizes_of(const Arg& tensor) { return tensor.tensor->sizes; }

// Returns which dimensions are reduced: all of them if none are given.
absl::InlinedVector<bool, 8> reduced_dims(const Sizes& sizes, const Dims& dims) {
  int64_t ndim = static_cast<int64_t>(sizes.size());
  bool all = !dims || dims->empty();
  absl::InlinedVector<bool, 8> reduced(static_cast<size_t>(std::max<int64_t>(ndim, 1)), all);
  if (all) return reduced;
  for (int64_t dim : *dims) {
    size_t d = static_cast<size_t>(shape_rules::wrap_dim(dim, ndim));
    check(!reduced[d], "dim ", d, " appears multiple times in the list of dims");
    reduced[d] = true;
  }
  return reduced;
}

Sizes without(const Sizes& sizes, const absl::InlinedVector<bool, 8>& reduced, bool keepdim) {
  Sizes result;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!reduced[d]) result.push_back(sizes[d]);
    if (reduced[d] && keepdim) result.push_back(1);
  }
  return result;
}

// Rejects a reduction over no elements, for reductions without an identity (maximum, median).
void check_some(const Sizes& sizes, const Dims& dims) {
  bool all = !dims || dims->empty();
  check(ErrorKind::kRuntime, !all || std::find(sizes.begin(), sizes.end(), 0) == sizes.end(),
        "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
        "argument.");
  if (all) return;
  for (int64_t dim : *dims) {
    int64_t d = shape_rules::wrap_dim(dim, static_cast<int64_t>(sizes.size()));
    check(ErrorKind::kIndex, sizes.empty() || sizes[static_cast<size_t>(d)] != 0, "Expected reduction dim ", d,
          " to have non-zero size.");
  }
}

}  // namespace

namespace shape_rules {

Sizes reduced(const Arg& input, Dims dims, bool keepdim) {
  return without(sizes_of(input), reduced_dims(sizes_of(input), dims), keepdim);
}

Sizes reduced_named(const Arg& input, Dims dims, bool keepdim) {
  return dims && dims->empty() ? sizes_of(input) : reduced(input, dims, keepdim);
}

Sizes reduced_one_dim(const Arg& input, Dims dims, bool keepdim) {
  check(ErrorKind::kType, !dims || dims->size() <= 1, "expected a single dimension as dim, got ",
        dims.value_or(SizesView()));
  return reduced(input, dims, keepdim);
}

Sizes reduced_nonempty(const Arg& input, Dims dims, bool keepdim) {
  Sizes result = reduced(input, dims, keepdim);
  check_some(sizes_of(input), dims);
  return result;
}

Sizes reduced_nonempty(const Arg& input, std::optional<SymInt> dim, bool keepdim) {
  return reduced_nonempty(input, dim ? Dims(absl::MakeConstSpan(&*dim, 1)) : Dims(), keepdim);
}

Sizes norm_named(const Arg& input, std::string_view p, Dims dims, bool keepdim) {
  check(ErrorKind::kNotImplemented, p != "nuc", "the nuclear norm ('nuc') is not implemented");
  check(p == "fro", "Norm order ", p, " not supported: expected a number or 'fro'");
  return reduced(input, dims, keepdim);
}

Sizes vector_norm(const Arg& input, double ord, Dims dims, bool keepdim) {
  const Sizes& sizes = sizes_of(input);
  if (ord >= 0 && ord != HUGE_VAL) return reduced(input, dims, keepdim);
  Sizes result = reduced(input, dims, keepdim);
  auto is_reduced = reduced_dims(sizes, dims);
  for (size_t d = 0; d < sizes.size(); ++d) {
    check(!is_reduced[d] || sizes[d] != 0, "linalg.vector_norm cannot compute the ", ord,
          " norm on an empty tensor because the operation does not have an identity");
  }
  return result;
}

Sizes renorm(const Arg& input, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  const Sizes& sizes = sizes_of(input);
  check(p.is_real(), "renorm: p must be real-valued");
  check(maxnorm.is_real(), "renorm: maxnorm must be real-valued");
  check(p.to_double() > 0, "renorm: non-positive-norm not supported");
  check(maxnorm.to_double() >= 0, "renorm: expected maxnorm to be >= 0 but got ", maxnorm.to_string());
  check(sizes.size() >= 2, "renorm: input needs at least 2 dimensions, got ", sizes.size(), " dimensions");
  wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  return sizes;
}

Sizes norm_except_dim(const Arg& v, int64_t dim) {
  if (dim == -1) return {};
  Sizes result(sizes_of(v).size(), 1);
  const auto d = static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(result.size())));
  if (!result.empty()) result[d] = sizes_of(v)[d];
  return result;
}

Sizes hash_tensor(const Arg& input, Dims dims, bool keepdim, int64_t mode) {
  check(mode == 0, "hash_tensor: Unknown hash_type: ", mode);
  return reduced_nonempty(input, dims, keepdim);
}

}  // namespace shape_rules

namespace dtype_rules {

DType mean(const Arg& input, std::optional<DType> given) {
  DType t = given.value_or(same(input));
  check(ErrorKind::kNotImplemented, has_gradients(t), "mean(): could not infer output dtype. ",
        given ? "Optional" : "Input",
        " dtype must be either a floating point or complex dtype. Got: ", scalar_type_name(t));
  return t;
}

DType any_all(const Arg& input) { return same(input) == DType::kUInt8 ? DType::kUInt8 : DType::kBool; }

DType variance(const Arg& input) {
  check(ErrorKind::kNotImplemented, has_gradients(same(input)),
        "std and var only support floating point and complex dtypes");
  return to_real(same(input));
}

DType vector_norm(const Arg& input, std::optional<DType> given) {
  check(has_gradients(same(input)), "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
        scalar_type_name(same(input)));
  DType t = given.value_or(same(input));
  check(has_gradients(t), "linalg.vector_norm: dtype should be floating point or complex. Got ", scalar_type_name(t));
  return to_real(t);
}

DType hashed(const Arg& input) {
  check(ErrorKind::kNotImplemented, category(same(input)) != Category::kComplex, "not implemented for ",
        name(same(input)));
  return DType::kUInt64;
}

DType covariance(const Arg& input, const Arg& fweights, const Arg& aweights) {
  check(same(input) != DType::kBool, "cov(): bool dtype is not supported for input");
  if (!fweights.is_none()) {
    const DType t = same(fweights);
    check(is_integral(t) && t != DType::kBool, "cov(): expected fweights to have integral dtype but got fweights with ",
          scalar_type_name(t), " dtype");
  }
  if (!aweights.is_none()) {
    const DType t = same(aweights);
    check(is_floating(t), "cov(): expected aweights to have floating point dtype but got aweights with ",
          scalar_type_name(t), " dtype");
  }
  // The input becomes a matrix, so that weights without dimensions do not change its dtype.
  const DType t = same(input);
  const bool promotes = !aweights.is_none() && !sizes_of(aweights).empty();
  return promotes ? promote(t, same(aweights)) : is_integral(t) ? default_float() : t;
}

DType median(const Arg& input) { return not_boolean(input); }

DType argmax(const Arg& input) {
  not_boolean(input);
  return DType::kInt64;
}

}  // namespace dtype_rules
}  // namespace tt
