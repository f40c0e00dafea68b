#include "client/api/fft.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "client/api/errors.h"
#include "client/api/functions.h"
#include "client/api/matrices.h"
#include "client/api/operators.h"
#include "client/api/options.h"

namespace teletensor::fft {
namespace {

using internal::conjugate;
using internal::product;
using internal::wrapped_dim;

double scale_of(Norm norm, int64_t count, bool forward) {
  if (norm && *norm != "backward" && *norm != "ortho" && *norm != "forward")
    throw RuntimeError("Invalid normalization mode: \"" + std::string(*norm) + "\"");
  if (count == 0) return 1;
  if (norm == "ortho") return 1 / std::sqrt(static_cast<double>(count));
  return (norm == "forward") == forward ? 1 / static_cast<double>(count) : 1;
}

// The norm that applies this norm's forward scale to the inverse transform.
Norm norm_of_inverse(Norm norm) {
  if (!norm || *norm == "backward") return "forward";
  return *norm == "forward" ? Norm("backward") : norm;
}

Tensor as_floating(const Tensor& input, const std::string& name) {
  if (is_reduced_floating(input.dtype()))
    throw RuntimeError("[" + name + "] Unsupported dtype " + std::string(tt::name(input.dtype())));
  return input.is_floating_point() || input.is_complex() ? input : input.to(get_default_dtype());
}
Tensor as_complex(const Tensor& input, const std::string& name) {
  const Tensor t = as_floating(input, name);
  if (t.is_complex()) return t;
  return t.to(t.dtype() == kDouble ? kComplexDouble : kComplexFloat);
}
Tensor as_real(const Tensor& input, const std::string& name) {
  if (input.is_complex()) {
    throw RuntimeError("[" + name + "] expects a real input tensor, but got " + std::string(tt::name(input.dtype())));
  }
  return as_floating(input, name);
}

// The lengths to transform and their dimensions.
struct Plan {
  Plan(const Tensor& input, const OptionalIntArrayRef& s, const OptionalIntArrayRef& dim, const std::string& name)
      : given(s.has_value()) {
    const int64_t ndim = input.dim();
    if (dim.has_value()) {
      for (const int64_t d : dim.value()) {
        dims.push_back(wrapped_dim(d, ndim));
        if (std::count(dims.begin(), dims.end(), dims.back()) > 1)
          throw RuntimeError("[" + name + "] FFT dims must be unique");
      }
    }
    if (s.has_value()) {
      sizes = s.value().vec();
      if (!dim.has_value()) {
        if (static_cast<int64_t>(sizes.size()) > ndim) {
          throw RuntimeError("[" + name + "] Got shape with " + std::to_string(sizes.size()) +
                             " values but input tensor only has " + std::to_string(ndim) + " dimensions.");
        }
        for (int64_t d = ndim - static_cast<int64_t>(sizes.size()); d < ndim; ++d) dims.push_back(d);
      } else if (sizes.size() != dims.size()) {
        throw RuntimeError("[" + name + "] When given, dim and shape arguments must have the same length");
      }
    } else {
      if (!dim.has_value()) {
        for (int64_t d = 0; d < ndim; ++d) dims.push_back(d);
      }
      sizes.assign(dims.size(), -1);
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == -1) sizes[i] = input.size(dims[i]);
      require(sizes[i], name);
    }
  }
  static void require(int64_t size, const std::string& name) {
    if (size < 1)
      throw RuntimeError("[" + name + "] Invalid number of data points (" + std::to_string(size) + ") specified");
  }
  void require_dims(const std::string& name) const {
    if (dims.empty()) throw RuntimeError("[" + name + "] must transform at least one axis");
  }
  // The input, truncated or padded with zeros to the sizes.
  Tensor resized(Tensor input) const {
    if (!given) return input;
    std::vector<int64_t> padding(2 * static_cast<size_t>(input.dim()), 0);
    bool pads = false;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (sizes[i] < input.size(dims[i])) input = input.narrow(dims[i], 0, sizes[i]);
      const int64_t missing = sizes[i] - input.size(dims[i]);
      padding[2 * static_cast<size_t>(input.dim() - 1 - dims[i]) + 1] = missing;
      pads = pads || missing != 0;
    }
    return pads ? ops::pad(input, padding) : input;
  }
  bool given;
  std::vector<int64_t> sizes, dims;
};

Tensor complex_to_complex(const Tensor& input, const OptionalIntArrayRef& s, const OptionalIntArrayRef& dim, Norm norm,
                          bool forward, const std::string& name) {
  const Tensor x = as_complex(input, name);
  const Plan plan(x, s, dim, name);
  if (plan.dims.empty()) return x.clone();
  return ops::fft_c2c(plan.resized(x), plan.dims, scale_of(norm, product(plan.sizes), forward), forward);
}

Tensor real_to_complex(const Tensor& input, const OptionalIntArrayRef& s, const OptionalIntArrayRef& dim, Norm norm,
                       const std::string& name) {
  const Tensor x = as_real(input, name);
  const Plan plan(x, s, dim, name);
  plan.require_dims(name);
  return ops::fft_r2c(plan.resized(x), plan.dims, scale_of(norm, product(plan.sizes), true));
}

Tensor complex_to_real(const Tensor& input, const OptionalIntArrayRef& s, const OptionalIntArrayRef& dim, Norm norm,
                       const std::string& name) {
  const Tensor x = as_complex(input, name);
  const bool has_last_size = s.has_value() && !s.value().empty() && s.value().back() != -1;
  Plan plan(x, s, dim, name);
  plan.require_dims(name);
  const int64_t last = has_last_size ? plan.sizes.back() : 2 * (x.size(plan.dims.back()) - 1);
  Plan::require(last, name);
  plan.sizes.back() = last;
  const double scale = scale_of(norm, product(plan.sizes), false);
  plan.sizes.back() = last / 2 + 1;
  return ops::fft_c2r(plan.resized(x), plan.dims, scale, last);
}

OptionalIntArrayRef one(const std::optional<int64_t>& n) { return n ? OptionalIntArrayRef(*n) : OptionalIntArrayRef(); }

Tensor frequencies(const Tensor& counts, int64_t n, double d, const std::string& name) {
  if (!counts.is_floating_point() && !counts.is_complex()) {
    throw RuntimeError("[" + name + "] expected a floating point or complex dtype, got " +
                       std::string(tt::name(counts.dtype())));
  }
  const double span = static_cast<double>(n) * d;
  return counts * (span != 0 ? 1 / span : std::numeric_limits<double>::infinity());
}

TensorOptions floating(const TensorOptions& options) {
  return options.dtype(options.dtype_opt().value_or(get_default_dtype())).requires_grad(false);
}

template <typename Shift>
Tensor shifted(const Tensor& input, const OptionalIntArrayRef& dim, Shift shift_of) {
  std::vector<int64_t> dims, shifts;
  if (dim.has_value()) {
    dims = dim.value().vec();
  } else {
    for (int64_t d = 0; d < input.dim(); ++d) dims.push_back(d);
  }
  for (const int64_t d : dims) shifts.push_back(shift_of(input.size(d)));
  return dims.empty() ? input.clone() : input.roll(shifts, dims);
}

}  // namespace

Tensor fft(const Tensor& input, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return complex_to_complex(input, one(n), dim, norm, true, "fft");
}
Tensor ifft(const Tensor& input, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return complex_to_complex(input, one(n), dim, norm, false, "ifft");
}
Tensor rfft(const Tensor& input, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return real_to_complex(input, one(n), dim, norm, "rfft");
}
Tensor irfft(const Tensor& input, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return complex_to_real(input, one(n), dim, norm, "irfft");
}
Tensor hfft(const Tensor& input, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return complex_to_real(conjugate(as_complex(input, "hfft")), one(n), dim, norm_of_inverse(norm), "hfft");
}
Tensor ihfft(const Tensor& input, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return conjugate(real_to_complex(input, one(n), dim, norm_of_inverse(norm), "ihfft"));
}

Tensor fftn(const Tensor& input, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return complex_to_complex(input, s, dim, norm, true, "fftn");
}
Tensor ifftn(const Tensor& input, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return complex_to_complex(input, s, dim, norm, false, "ifftn");
}
Tensor rfftn(const Tensor& input, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return real_to_complex(input, s, dim, norm, "rfftn");
}
Tensor irfftn(const Tensor& input, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return complex_to_real(input, s, dim, norm, "irfftn");
}
Tensor hfftn(const Tensor& input, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return complex_to_real(conjugate(as_complex(input, "hfftn")), s, dim, norm_of_inverse(norm), "hfftn");
}
Tensor ihfftn(const Tensor& input, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return conjugate(real_to_complex(input, s, dim, norm_of_inverse(norm), "ihfftn"));
}

Tensor fft2(const Tensor& input, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return fftn(input, s, dim, norm);
}
Tensor ifft2(const Tensor& input, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return ifftn(input, s, dim, norm);
}
Tensor rfft2(const Tensor& input, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return rfftn(input, s, dim, norm);
}
Tensor irfft2(const Tensor& input, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return irfftn(input, s, dim, norm);
}
Tensor hfft2(const Tensor& input, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return hfftn(input, s, dim, norm);
}
Tensor ihfft2(const Tensor& input, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return ihfftn(input, s, dim, norm);
}

Tensor fftfreq(int64_t n, double d, const TensorOptions& options) {
  if (n < 0) throw RuntimeError("[fftfreq] expected n >= 0, got " + std::to_string(n));
  const TensorOptions plain = floating(options);
  const Tensor counts = cat({arange((n + 1) / 2, plain), arange(-(n / 2), 0, 1, plain)});
  const Tensor result = frequencies(counts, n, d, "fftfreq");
  return options.requires_grad() ? result.requires_grad_() : result;
}
Tensor rfftfreq(int64_t n, double d, const TensorOptions& options) {
  if (n < 0) throw RuntimeError("[rfftfreq] expected n >= 0, got " + std::to_string(n));
  const Tensor result = frequencies(arange(n / 2 + 1, floating(options)), n, d, "rfftfreq");
  return options.requires_grad() ? result.requires_grad_() : result;
}

Tensor fftshift(const Tensor& input, OptionalIntArrayRef dim) {
  return shifted(input, dim, [](int64_t n) { return n / 2; });
}
Tensor ifftshift(const Tensor& input, OptionalIntArrayRef dim) {
  return shifted(input, dim, [](int64_t n) { return (n + 1) / 2; });
}

}  // namespace teletensor::fft
