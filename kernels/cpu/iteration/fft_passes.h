// FftPasses: the inner loops of Fourier transforms, compiled once per instruction set (isa/fft_passes.cc).
//
// All loops compute forward transforms. For a backward transform, swap the real and imaginary parts of input and
// output. Immutable and usable from any thread. Arrays need no alignment and must not overlap.
#pragma once

#include <cstdint>

namespace tt::cpu {

// Real and imaginary parts in separate arrays.
template <typename R>
struct Split {
  R* re;
  R* im;

  Split swapped() const { return {im, re}; }
};

inline constexpr int kLongestVector = 16;  // elements in the longest vector of any instruction set

// The number of elements that shuffled passes may write after their last element.
inline constexpr int kFftPadding = 8 * kLongestVector;

// A pass of Stockham's algorithm: `rest` groups of butterflies, each over `width` neighbouring elements.
//   y[(k * radix + t) * width + q] = w(k, t) * sum over j of x[(j * rest + k) * width + q] * radix_roots[j * t % radix]
template <typename R>
struct FftPass {
  int64_t radix, width, rest;
  // w(k, t), t > 0: pairs (re, im) ordered by k and t; for shuffled passes, ordered by vector, t, part and lane.
  const R* twiddles;
  const R* radix_roots;  // pairs: exp(-2 pi i j / radix)
};

template <typename R>
struct FftPasses {
  int lanes;  // number of elements per vector

  // A pass of any width.
  void (*wide)(const FftPass<R>& pass, Split<R> x, Split<R> y);
  // The last pass (rest = 1) of one line. Its width must be a multiple of lanes. Writes interleaved pairs, multiplied
  // by `scale`.
  void (*wide_to_pairs)(const FftPass<R>& pass, Split<R> x, R* pairs, bool swapped, R scale);
  // A pass whose width divides lanes, with radix 2, 4 or 8. Reads and writes up to kFftPadding elements past the end.
  void (*shuffled)(const FftPass<R>& pass, Split<R> x, Split<R> y);
  // The first pass (width 1), reading interleaved pairs; rest must be a multiple of lanes.
  void (*shuffled_from_pairs)(const FftPass<R>& pass, const R* pairs, bool swapped, Split<R> y);

  // split_pairs(): dst[i] = pairs[i]. join_pairs(): pairs[i] = src[i] * scale.
  void (*split_pairs)(const R* pairs, int64_t n, Split<R> dst);
  void (*join_pairs)(Split<R> src, int64_t n, R scale, R* pairs);
  // split_lines() and join_lines() do the same for `lanes` lines. Element k of line l is at k * lanes + l in `dst` or
  // `src`, and at l * stride + 2 * k in `pairs`.
  void (*split_lines)(const R* pairs, int64_t stride, int64_t n, Split<R> dst);
  void (*join_lines)(Split<R> src, int64_t n, R scale, R* pairs, int64_t stride);
  // y = x * w; y may be x.
  void (*multiply)(Split<R> x, Split<const R> w, int64_t n, Split<R> y);

  // The first half + 1 elements of the spectrum of 2 * half real values, multiplied by `scale`. z is the transform of
  // the values read as pairs of neighbours; roots[k] = exp(-pi i k / half).
  void (*spectrum_of_reals)(Split<R> z, Split<const R> roots, int64_t half, R scale, R* pairs);
  // The inverse: computes z from such a spectrum. The backward transform of z consists of the real values, read as
  // pairs of neighbours.
  void (*reals_from_spectrum)(const R* pairs, Split<const R> roots, int64_t half, Split<R> z);
  // The same two conversions for `lines` interleaved lines, without a scale. Element k of line l is at k * lines + l.
  // reals_from_spectra() sets the imaginary parts of each spectrum's first and last element to 0.
  void (*spectra_of_reals)(Split<R> z, Split<const R> roots, int64_t half, int64_t lines, Split<R> spectra);
  void (*reals_from_spectra)(Split<R> spectra, Split<const R> roots, int64_t half, int64_t lines, Split<R> z);
  // The same two conversions for parts of one line, of `n` elements each, as interleaved pairs: the part that starts at
  // x_low (elements k, k + 1, ...) and the part that ends at x_high (elements half - k, half - k - 1, ...), which must
  // not overlap. Results are stored in y_low and y_high, which may be x_low and x_high; roots[i] belongs to element
  // k + i. pairs_of_spectrum() multiplies by `scale`.
  void (*pairs_of_spectrum)(const R* x_low, const R* x_high, Split<const R> roots, int64_t n, R scale, R* y_low,
                            R* y_high);
  void (*pairs_of_reals)(const R* x_low, const R* x_high, Split<const R> roots, int64_t n, R* y_low, R* y_high);

  // Transposes a tile of lanes x lanes elements, whose rows are x_stride and y_stride elements apart, and multiplies it
  // by row_factors[i] * factors[i * lanes + j]. Here i is a row of the result for transpose_multiplied(), and a row of
  // the argument for multiply_transposed().
  void (*transpose_multiplied)(Split<R> x, int64_t x_stride, Split<const R> row_factors, Split<const R> factors,
                               Split<R> y, int64_t y_stride);
  void (*multiply_transposed)(Split<R> x, int64_t x_stride, Split<const R> row_factors, Split<const R> factors,
                              Split<R> y, int64_t y_stride);
};

// The loops for this machine. TELETENSOR_CPU_ISA selects another instruction set (iteration/block.h).
template <typename R>
const FftPasses<R>& fft_passes();

}  // namespace tt::cpu
