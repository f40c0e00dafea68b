// Rules for Fourier transforms.

#include "engine/schema/error.h"
#include "engine/schema/rules/dtype_rules.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {
namespace {

// Checks that the dimensions exist and are unique. Returns the index of the last one.
size_t check_dims(const TensorMeta& t, SizesView dims) {
  check(!dims.empty(), "must transform at least one axis");
  absl::InlinedVector<bool, 8> seen(t.sizes.size() + 1, false);
  for (int64_t dim : dims) {
    const auto d = static_cast<size_t>(shape_rules::wrap_dim(dim, t.dim()));
    check(!seen[d], "FFT dims must be unique, got ", dims);
    check(d < t.sizes.size(), "a zero-dim tensor has no dimension to transform");
    seen[d] = true;
  }
  return static_cast<size_t>(shape_rules::wrap_dim(dims.back(), t.dim()));
}

void check_points(SymInt n) { check(n >= 1, "Invalid number of data points (", n, ") specified"); }

}  // namespace

namespace shape_rules {

Sizes fft_c2c(const Arg& input, SizesView dim) {
  check_dims(*input.tensor, dim);
  for (int64_t d : dim) check_points(input.tensor->sizes[static_cast<size_t>(wrap_dim(d, input.tensor->dim()))]);
  return input.tensor->sizes;
}

Sizes fft_r2c(const Arg& input, SizesView dim) {
  Sizes result = fft_c2c(input, dim);
  SymInt& last = result[check_dims(*input.tensor, dim)];
  last = last / 2 + 1;
  return result;
}

Sizes fft_c2r(const Arg& input, SizesView dim, SymInt last_size) {
  Sizes result = fft_c2c(input, dim);
  SymInt& last = result[check_dims(*input.tensor, dim)];
  check_points(last_size);
  check(last == last_size / 2 + 1, "expected a spectrum of size ", last_size / 2 + 1, " for ", last_size,
        " data points, got ", last);
  last = last_size;
  return result;
}

}  // namespace shape_rules

namespace dtype_rules {

DType complex_only(const Arg& input) {
  check(is_complex(same(input)), "expected a complex tensor, got ", name(same(input)));
  return same(input);
}

DType spectrum(const Arg& input) {
  const DType t = same(input);
  check(is_floating(t), "expected a floating-point tensor, got ", name(t));
  check(item_size(t) >= 4, "Unsupported dtype ", name(t));
  return to_complex(t);
}

DType signal(const Arg& input) { return to_real(complex_only(input)); }

}  // namespace dtype_rules
}  // namespace tt
