// FftPlan: the discrete Fourier transform of a given length. Transforms one line (a sequence of this length) or several
// lines at once.
//
// Uses Stockham's algorithm with radices 8, 4, 2, 3, 5 and other small primes; a length with a large prime factor
// becomes a convolution (Bluestein's algorithm), so that every length takes O(n log n). Several lines are interleaved,
// so that loops over neighbouring elements vectorise for any radix. A single line can be vectorised if its length is
// divisible by the vector length; its first passes shuffle vectors. Twiddle factors are computed in double.
//
// All transforms are forward, with exp(-2 pi i / n). For a backward transform, swap the real and imaginary parts of
// the input and of the output.
//
// A plan is immutable after construction and may be used by any thread. The caller owns the buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "kernels/cpu/iteration/fft_passes.h"

namespace tt::cpu {

// Allocates at multiples of 64 bytes: a vector that straddles cache lines takes twice as long to load.
template <typename T>
struct VectorAligned {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  VectorAligned() = default;
  template <typename U>
  VectorAligned(const VectorAligned<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlignment); }
  // Leaves numeric elements uninitialised.
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

// Two pairs of arrays (real and imaginary), stored one after the other with `size` elements each.
template <typename R>
struct FftBuffers {
  R* memory;
  int64_t size;

  Split<R> data() const { return {memory, memory + size}; }
  Split<R> work() const { return {memory + 2 * size, memory + 3 * size}; }
  // Returns the buffer that is not `used`.
  Split<R> other(Split<R> used) const { return used.re == memory || used.im == memory ? work() : data(); }
};

template <typename R>
class FftPlan {
 public:
  // Requires n >= 1. With `for_reals`, also computes the roots that relate n complex values to 2 * n real ones.
  explicit FftPlan(int64_t n, bool for_reals = false);
  ~FftPlan();
  FftPlan(const FftPlan&) = delete;
  FftPlan& operator=(const FftPlan&) = delete;

  int64_t length() const { return n_; }
  // The bytes of the plan's tables.
  size_t bytes() const;
  // At least the bytes that creating a plan of length n allocates.
  static double creation_bytes(int64_t n);
  // Whether a single line is vectorised. If not, callers should transform as many lines at once as a vector has
  // elements.
  bool vectorises_line() const;
  // exp(-pi i k / n) for all k <= n. Requires `for_reals`.
  Split<const R> roots() const { return {roots_.data(), roots_.data() + n_ + 1}; }

  // The number of elements that each array of `data` and `work` must hold for `lines` lines.
  int64_t buffer_size(int64_t lines) const;
  // Transforms `data`, in which element k of line l is at k * lines + l. Returns `data` or `work`, whichever holds
  // the result. Overwrites both.
  Split<R> run(Split<R> data, Split<R> work, int64_t lines) const;
  // Transforms one line, given as n pairs with the real part first. Returns the buffer that holds the result.
  Split<R> run_from_pairs(const R* pairs, FftBuffers<R> buffers) const;
  // Transforms one line in buffers.data() to n pairs (imaginary part first if `swapped`), multiplied by `scale`.
  void run_to_pairs(FftBuffers<R> buffers, R* pairs, bool swapped, R scale) const;
  // Transforms one line from n pairs to n pairs; `to` may equal `from`. If `swapped`, both store the imaginary part
  // first.
  void run_pairs(const R* from, R* to, bool swapped, R scale, FftBuffers<R> buffers) const;

 private:
  struct Stage {
    int64_t radix, width, rest;
    bool shuffled;
    AlignedVector<R> twiddles, radix_roots;
  };
  struct Bluestein;
  class RootTable;

  Stage stage(const RootTable& root_table, int64_t radix, int64_t width, bool shuffled) const;
  void plan_line(const RootTable& root_table);
  bool reads_pairs() const;
  Split<R> run_bluestein(Split<R> data, Split<R> work, int64_t lines) const;

  int64_t n_;
  const FftPasses<R>& passes_;
  std::vector<Stage> stages_;       // transform several lines
  std::vector<Stage> line_stages_;  // transform a single line; empty if it is not vectorised
  std::vector<FftPass<R>> line_passes_;
  AlignedVector<R> roots_;
  std::unique_ptr<Bluestein> bluestein_;  // set if n has a large prime factor
};

extern template class FftPlan<float>;
extern template class FftPlan<double>;

}  // namespace tt::cpu
