// LongLine: the discrete Fourier transform of a line that exceeds a core's caches, which FftPlan would read once per
// radix. Uses the intra-op threads.
//
// A length that is the product of two suitable numbers is transformed in four steps (four_step.h). Any other length
// becomes a convolution of a length that is such a product (Bluestein's algorithm), which reads the line six times.
//
// Lines are interleaved pairs. Transforms are unnormalised; `scale` multiplies the result. Immutable after construction
// and usable from any thread. Construction and transforms throw Cancelled, std::bad_alloc, and Error (kOutOfMemory) if
// the session has no room for the threads' buffers.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/fft/factored_roots.h"
#include "kernels/cpu/fft/four_step.h"

namespace tt::cpu {

template <typename R>
class LongLine {
 public:
  // Whether a LongLine is faster than an FftPlan of length n.
  static bool is_faster(int64_t n);

  // Requires 1024 <= n <= 2^40. With `for_reals`, also computes the roots that relate n pairs to 2 * n real values.
  explicit LongLine(int64_t n, bool for_reals = false);

  int64_t length() const { return n_; }
  // The bytes of the tables.
  size_t bytes() const;
  // At least the bytes that creating a transform of length n allocates.
  static double creation_bytes(int64_t n);
  // The number of elements of `workspace`.
  int64_t workspace_size() const { return steps_.blocks_size(); }

  // Transforms n pairs; `to` may equal `from`. If `swapped`, both store the imaginary part first, so that the transform
  // of ordinary pairs is the backward one.
  void run(const R* from, R* to, bool swapped, R scale, R* workspace) const;

  // Converts the transform of 2 * n real values, read as n pairs of neighbours, in place to the first n + 1 pairs of
  // the values' spectrum. Requires `for_reals`.
  void spectrum_of_reals(R* pairs, R scale) const;
  // The inverse: computes n pairs from the first n + 1 of a spectrum. Their backward transform consists of the real
  // values. Requires `for_reals`.
  void reals_from_spectrum(const R* spectrum, R* pairs) const;

 private:
  struct Shape {
    int64_t rows, columns;
    bool convolution;
  };
  // The best rows and columns whose product is n, if there are any.
  static std::optional<Shape> product(int64_t n);
  static Shape shape(int64_t n);

  LongLine(int64_t n, bool for_reals, Shape shape);
  void plan_convolution();
  void run_convolution(const R* from, R* to, bool swapped, R scale, R* workspace) const;
  // Calls body(first, count, roots) for parts of the elements 1 to (n - 1) / 2, in parallel.
  void for_each_part(absl::FunctionRef<void(int64_t first, int64_t count, Split<const R> roots)> body) const;

  int64_t n_;
  const FftPasses<R>& passes_;
  FourStep<R> steps_;
  std::optional<FactoredRoots> real_roots_;
  AlignedVector<R> chirp_, filter_;  // Bluestein's factors and the transform of their conjugates; empty if not needed
};

extern template class LongLine<float>;
extern template class LongLine<double>;

}  // namespace tt::cpu
