// FftPlan: the discrete Fourier transform of one length, of one line or of several lines at once.
//
// Stockham's algorithm with radices 8, 4, 2, 3, 5 and other small primes; a length with a large prime
// factor becomes a convolution (Bluestein's algorithm), so that every length takes O(n log n). Several
// lines are interleaved, so that loops over neighbours vectorise for any radix. A single line whose
// length is divisible by a vector's is vectorised by itself: its first passes shuffle vectors.
// Twiddles are computed in double.
//
// All transforms are forward, with exp(-2 pi i / n). For a backward transform, exchange the real and
// the imaginary parts of the input and of the output.
//
// A plan is constant after construction; any thread. The caller owns the buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "kernels/cpu/iteration/fft_passes.h"

namespace tt::cpu {

// Allocates at multiples of a vector's size: vectors that straddle cache lines take twice as long to load.
template <typename T>
struct VectorAligned {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  VectorAligned() = default;
  template <typename U>
  VectorAligned(const VectorAligned<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlignment); }
  // Elements of numbers stay uninitialised.
  template <typename U>
  void construct(U*) {}
  template <typename U, typename V>
  void construct(U* p, V&& v) {
    ::new (static_cast<void*>(p)) U(std::forward<V>(v));
  }
  bool operator==(const VectorAligned&) const = default;
};
template <typename T>
using AlignedVector = std::vector<T, VectorAligned<T>>;

// Two pairs of arrays of `room` elements each, one after the other.
template <typename R>
struct FftBuffers {
  R* memory;
  int64_t room;

  Split<R> data() const { return {memory, memory + room}; }
  Split<R> work() const { return {memory + 2 * room, memory + 3 * room}; }
  // The one of the two that `used` is not.
  Split<R> other(Split<R> used) const { return used.re == memory || used.im == memory ? work() : data(); }
};

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
  // The same of one line of n pairs, real part first.
  Split<R> run_from_pairs(const R* pairs, FftBuffers<R> buffers) const;
  // The transform of one line in buffers.data() to n pairs (imaginary part first where `swapped`), multiplied by
  // `scale`.
  void run_to_pairs(FftBuffers<R> buffers, R* pairs, bool swapped, R scale) const;
  // From n pairs to n pairs, which may be the same; `swapped` applies to both.
  void run_pairs(const R* from, R* to, bool swapped, R scale, FftBuffers<R> buffers) const;

 private:
  struct Stage {
    int64_t radix, width, rest;
    bool shuffled;
    AlignedVector<R> twiddles, circle;
  };
  struct Chirp;
  class Circle;

  Stage stage(const Circle& circle, int64_t radix, int64_t width, bool shuffled) const;
  void plan_line(const Circle& circle);
  bool reads_pairs() const;
  Split<R> run_chirp(Split<R> data, Split<R> work, int64_t lines) const;

  int64_t n_;
  const FftPasses<R>& passes_;
  std::vector<Stage> stages_;       // of several lines
  std::vector<Stage> line_stages_;  // of a single line; empty where it is not vectorised
  std::vector<FftPass<R>> line_passes_;
  AlignedVector<R> roots_;
  std::unique_ptr<Chirp> chirp_;  // where n has a large prime factor
};

extern template class FftPlan<float>;
extern template class FftPlan<double>;

}  // namespace tt::cpu
