// FftPasses: the inner loops of Fourier transforms, compiled once per instruction set (isa/fft_passes.cc).
//
// All loops are those of a forward transform. A backward one is the same with real and imaginary parts exchanged, in
// what is read and in what is written. Constant; any thread. Arrays need no alignment and do not overlap.
#pragma once

#include <cstdint>

namespace tt::cpu {

// Real and imaginary parts, apart.
template <typename R>
struct Split {
  R* re;
  R* im;

  Split swapped() const { return {im, re}; }
};

inline constexpr int kLongestVector = 16;  // elements of the widest vector of any instruction set

// What passes that shuffle write beyond their last element.
inline constexpr int kFftPadding = 8 * kLongestVector;

// A pass of Stockham's algorithm: `rest` groups of butterflies, each over `width` neighbours.
//   y[(k * radix + t) * width + q] = w(k, t) * sum over j of x[(j * rest + k) * width + q] * circle[j * t % radix]
template <typename R>
struct FftPass {
  int64_t radix, width, rest;
  // Of w(k, t), t > 0: pairs (re, im) by k and t. Of a pass that shuffles: by vector, t, part and lane.
  const R* twiddles;
  const R* circle;  // pairs: exp(-2 pi i j / radix)
};

template <typename R>
struct FftPasses {
  int lanes;  // elements of a vector

  // One pass over any width.
  void (*wide)(const FftPass<R>& pass, Split<R> x, Split<R> y);
  // The last pass (rest = 1) of one line, width a multiple of lanes: to interleaved parts, multiplied by `scale`.
  void (*wide_to_pairs)(const FftPass<R>& pass, Split<R> x, R* pairs, bool swapped, R scale);
  // A pass whose width divides lanes, radix 2, 4 or 8. Reads and writes up to kFftPadding elements too many.
  void (*shuffled)(const FftPass<R>& pass, Split<R> x, Split<R> y);
  // The first pass (width 1) from interleaved parts; rest is a multiple of lanes.
  void (*shuffled_from_pairs)(const FftPass<R>& pass, const R* pairs, bool swapped, Split<R> y);

  // dst[i] = pairs[i]; pairs[i] = src[i] * scale.
  void (*split_pairs)(const R* pairs, int64_t n, Split<R> dst);
  void (*join_pairs)(Split<R> src, int64_t n, R scale, R* pairs);
  // The same of `lanes` lines: element k of line l is dst[k * lanes + l], and pairs[l * stride + 2 * k].
  void (*split_lines)(const R* pairs, int64_t stride, int64_t n, Split<R> dst);
  void (*join_lines)(Split<R> src, int64_t n, R scale, R* pairs, int64_t stride);
  // y = x * w; y may be x.
  void (*multiply)(Split<R> x, Split<const R> w, int64_t n, Split<R> y);

  // The half + 1 first elements of the spectrum of 2 * half real values, multiplied by `scale`, from the transform z of
  // the pairs of neighbours; roots[k] = exp(-pi i k / half).
  void (*spectrum_of_reals)(Split<R> z, Split<const R> roots, int64_t half, R scale, R* pairs);
  // From such a spectrum, the z whose backward transform is the pairs of neighbours of the real values.
  void (*reals_from_spectrum)(const R* pairs, Split<const R> roots, int64_t half, Split<R> z);
  // The same of `lines` interleaved lines, element k of line l at k * lines + l, without a scale. The imaginary parts
  // of a spectrum's first and last elements are set to 0.
  void (*spectra_of_reals)(Split<R> z, Split<const R> roots, int64_t half, int64_t lines, Split<R> spectra);
  void (*reals_from_spectra)(Split<R> spectra, Split<const R> roots, int64_t half, int64_t lines, Split<R> z);
};

// The loops for this machine; TELETENSOR_CPU_ISA asks for those of a lesser instruction set (iteration/block.h).
template <typename R>
const FftPasses<R>& fft_passes();

}  // namespace tt::cpu
