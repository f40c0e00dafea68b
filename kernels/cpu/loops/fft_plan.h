// FftPlan: the discrete Fourier transform of one length, of one line or of several lines at once.
//
// Stockham's algorithm with radices 8, 4, 2, 3, 5 and other small primes; a length with a large prime
// factor becomes a convolution (Bluestein's algorithm), so that every length takes O(n log n). Several
// lines are interleaved, so that loops over neighbours vectorise for any radix. A single line whose
// length is divisible by a vector's is vectorised by itself: its first passes shuffle vectors.
// Twiddles are computed in double.
//
// All transforms are forward, with exp(-2 pi i / n). For a backward transform, exchange the real and
// the imaginary parts of what is read and of what is written.
//
// A plan is constant after construction; any thread. The caller owns the buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/loops/fft_passes.h"

namespace tt::cpu {

template <typename R>
class FftPlan {
 public:
  // n >= 1. `for_reals`: also has the roots that relate n complex values to 2 * n real ones.
  explicit FftPlan(int64_t n, bool for_reals = false);
  ~FftPlan();
  FftPlan(const FftPlan&) = delete;
  FftPlan& operator=(const FftPlan&) = delete;

  int64_t length() const { return n_; }
  // Whether a single line is vectorised. If not, transform as many lines at once as a vector has elements.
  bool vectorises_line() const;
  // exp(-pi i k / n), k <= n; requires for_reals.
  Split<const R> roots() const { return {roots_.data(), roots_.data() + n_ + 1}; }

  // Elements that each array of `data` and `work` must hold for a number of lines.
  int64_t room(int64_t lines) const;
  // Transforms `data`: element k of line l is at k * lines + l. Returns `data` or `work`, whichever holds the result;
  // both are overwritten.
  Split<R> run(Split<R> data, Split<R> work, int64_t lines) const;
  // The same of one line of n pairs (real part first; imaginary part first where `swapped`).
  Split<R> run_from_pairs(const R* pairs, bool swapped, Split<R> data, Split<R> work) const;
  // The transform of one line in `data` to n pairs, multiplied by `scale`.
  void run_to_pairs(Split<R> data, Split<R> work, R* pairs, bool swapped, R scale) const;
  // From n pairs to n pairs, which may be the same.
  void run_pairs(const R* from, R* to, bool swapped, R scale, Split<R> data, Split<R> work) const;

 private:
  struct Stage {
    int64_t radix, width, rest;
    bool shuffled;
    std::vector<R> twiddles, circle;
  };
  struct Chirp;
  class Circle;

  Stage stage(const Circle& circle, int64_t radix, int64_t width, bool shuffled) const;
  void plan_line(const Circle& circle);
  FftPass<R> pass(const Stage& stage, int64_t lines) const;
  Split<R> run_stages(size_t first, size_t last, Split<R> data, Split<R> work) const;
  Split<R> run_chirp(Split<R> data, Split<R> work, int64_t lines) const;

  int64_t n_;
  const FftPasses<R>& passes_;
  std::vector<Stage> stages_;       // of several lines
  std::vector<Stage> line_stages_;  // of a single line; empty where it is not vectorised
  std::vector<R> roots_;
  std::unique_ptr<Chirp> chirp_;  // where n has a large prime factor
};

extern template class FftPlan<float>;
extern template class FftPlan<double>;

}  // namespace tt::cpu
