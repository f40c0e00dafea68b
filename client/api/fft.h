// fft: discrete Fourier transforms, with libtorch's names.
//
// `norm` selects which transforms are scaled: "backward" (the default) scales the inverse by 1/n, "ortho" scales both
// directions by 1/sqrt(n), "forward" scales the forward transform by 1/n. `n` and `s` truncate the input or pad it with
// zeros; -1 in `s` is the dimension's size. Invalid arguments throw RuntimeError or IndexError.
#pragma once

#include <optional>
#include <string_view>

#include "client/api/tensor.h"

namespace teletensor::fft {

using Norm = std::optional<std::string_view>;

/// The one-dimensional transform along dim.
Tensor fft(const Tensor& input, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = std::nullopt);
Tensor ifft(const Tensor& input, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = std::nullopt);
/// The first half of a real signal's spectrum; the second half is its conjugate mirror image.
Tensor rfft(const Tensor& input, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = std::nullopt);
/// The inverse of rfft: n real numbers, by default 2 (size - 1).
Tensor irfft(const Tensor& input, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = std::nullopt);
/// The real spectrum of a Hermitian signal, whose first half is the input; and its inverse.
Tensor hfft(const Tensor& input, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = std::nullopt);
Tensor ihfft(const Tensor& input, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = std::nullopt);

/// Along several dimensions: all of them, the last ones that `s` has sizes of, or those of `dim`.
Tensor fftn(const Tensor& input, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt,
            Norm norm = std::nullopt);
Tensor ifftn(const Tensor& input, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt,
             Norm norm = std::nullopt);
Tensor rfftn(const Tensor& input, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt,
             Norm norm = std::nullopt);
Tensor irfftn(const Tensor& input, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt,
              Norm norm = std::nullopt);
Tensor hfftn(const Tensor& input, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt,
             Norm norm = std::nullopt);
Tensor ihfftn(const Tensor& input, OptionalIntArrayRef s = std::nullopt, OptionalIntArrayRef dim = std::nullopt,
              Norm norm = std::nullopt);

/// Along two dimensions.
Tensor fft2(const Tensor& input, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
            Norm norm = std::nullopt);
Tensor ifft2(const Tensor& input, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
             Norm norm = std::nullopt);
Tensor rfft2(const Tensor& input, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
             Norm norm = std::nullopt);
Tensor irfft2(const Tensor& input, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
              Norm norm = std::nullopt);
Tensor hfft2(const Tensor& input, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
             Norm norm = std::nullopt);
Tensor ihfft2(const Tensor& input, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
              Norm norm = std::nullopt);

/// The frequencies of fft's results for n samples with spacing d; the second half is negative.
Tensor fftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {});
Tensor rfftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {});
/// Moves frequency zero to the middle of each dimension; and the inverse.
Tensor fftshift(const Tensor& input, OptionalIntArrayRef dim = std::nullopt);
Tensor ifftshift(const Tensor& input, OptionalIntArrayRef dim = std::nullopt);

}  // namespace teletensor::fft
