// FftPlan: the discrete Fourier transform of one length, over several lines at once.
//
// Stockham's autosort with radices 4, 2, 3, 5 and other small primes; a length with a large prime
// factor becomes a convolution (Bluestein), so that no length takes more than n log n. Lines stand
// side by side, real and imaginary parts apart, so that every loop is over neighbours and
// vectorises, whatever the radix. Twiddles are computed in double.
//
// A plan is constant after construction; any thread. What it works in is the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tt::cpu {

// `lines` lines of n: element k of line l at k * lines + l.
template <typename R>
struct Split {
  R* re;
  R* im;
};

template <typename R>
class FftPlan {
 public:
  // Transforms with exp(-2 pi i / n) (forward) or its conjugate; n >= 1.
  FftPlan(int64_t n, bool forward);
  ~FftPlan();
  FftPlan(const FftPlan&) = delete;
  FftPlan& operator=(const FftPlan&) = delete;

  int64_t length() const { return n_; }
  // Elements that each of data's and work's arrays must hold for a number of lines.
  int64_t room(int64_t lines) const;
  // Transforms `data`; the result is in what is returned: `data` or `work`, which is overwritten either way.
  Split<R> run(Split<R> data, Split<R> work, int64_t lines) const;

 private:
  struct Stage {
    int64_t radix;
    int64_t before;                       // the product of earlier radices
    int64_t rest;                         // what is left of n after this stage
    std::vector<R> re, im;                // twiddles: rest x (radix - 1)
    std::vector<R> circle_re, circle_im;  // of a general radix: its roots of unity
  };
  struct Chirp;

  void add_stage(int64_t radix, int64_t before, int64_t left);
  Split<R> run_chirp(Split<R> data, Split<R> work, int64_t lines) const;

  int64_t n_;
  bool forward_;
  std::vector<Stage> stages_;
  std::unique_ptr<Chirp> chirp_;  // where n has a large prime factor
};

extern template class FftPlan<float>;
extern template class FftPlan<double>;

}  // namespace tt::cpu
