// FftPass: one of the passes of a Fourier transform whose length has small prime factors only.
//
// A length n is a product of factors that fit what a group's threads share. Pass by pass each factor is transformed, along
// a dimension of the line seen as a tensor of these sizes, and what comes of it is turned by the roots that the rest wants;
// the last one puts every result where it belongs. Within a pass it is Stockham's autosort, as on the CPU (fft_plan.h).
#pragma once

#include "kernels/cuda/fft_ends.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/shared_groups.h"

namespace tt::cuda {

inline constexpr int64_t kFftTogether = 64;        // lines of a group at most
inline constexpr int64_t kFftRoom = 16 * 1024;     // bytes of their points
inline constexpr int kFftStages = 12;              // of as many points, twos among them

template <typename R>
inline constexpr int64_t kFftPoints = kFftRoom / static_cast<int64_t>(sizeof(Complex<R>));

// Every root exp(-+2 pi i k / n), of which those of n's divisors are a part.
template <typename R>
struct FftRoots {
  const Complex<R>* roots;
  int64_t n;
  // exp(-+2 pi i k / m) for a divisor m of n, k < m.
  TT_FUNCTION Complex<R> root(int64_t k, int64_t m) const { return roots[k * (n / m)]; }
};

// Of one butterfly: point j of x and result t of y.
template <typename R>
struct Butterfly {
  const Complex<R>* x;
  Complex<R>* y;
  int64_t x_step, y_step;
  const FftRoots<R>& roots;
  int64_t k, left;  // result t is turned by exp(-+2 pi i k t / left)
  R turn;           // i's sign: -1 for a transform forward

  TT_FUNCTION Complex<R> at(int64_t j) const { return x[j * x_step]; }
  TT_FUNCTION void put(int64_t t, Complex<R> value) const {
    y[t * y_step] = k == 0 ? value : value * roots.root(k * t, left);
  }
  // i times it, with the sign.
  TT_FUNCTION Complex<R> turned(Complex<R> value) const { return {-turn * value.im, turn * value.re}; }

  TT_FUNCTION void two() const {
    const Complex<R> a = at(0), b = at(1);
    put(0, a + b);
    put(1, a - b);
  }
  TT_FUNCTION void three() const {
    const Complex<R> a = at(0), sum = at(1) + at(2), side = turned(at(1) - at(2)) * Complex<R>(R(0.86602540378443864676));
    const Complex<R> middle = a - sum * Complex<R>(R(0.5));
    put(0, a + sum);
    put(1, middle + side);
    put(2, middle - side);
  }
  TT_FUNCTION void four() const {
    const Complex<R> a = at(0) + at(2), b = at(0) - at(2), c = at(1) + at(3), d = turned(at(1) - at(3));
    put(0, a + c);
    put(1, b + d);
    put(2, a - c);
    put(3, b - d);
  }
  // By the sum itself.
  TT_FUNCTION void any(int64_t radix) const {
    for (int64_t t = 0; t < radix; ++t) {
      Complex<R> sum = at(0);
      int64_t angle = 0;
      for (int64_t j = 1; j < radix; ++j) {
        angle += t;
        if (angle >= radix) angle -= radix;
        sum += at(j) * roots.root(angle, radix);
      }
      put(t, sum);
    }
  }
};

template <typename R>
struct FftPass {
  using C = Complex<R>;
  // Where a line begins in the source and in the target, and which of the whole line's points is its first in each.
  struct Line {
    int64_t from, to, first_point, first_result;
  };
  static constexpr size_t kBytes = 2 * kFftRoom + kFftTogether * sizeof(Line);

  Layout<3> lines;  // offsets in the source and in the target, and first_result
  int64_t count, length, together;
  FftSource<R> source;
  FftTarget<R> target;
  FftRoots<R> roots;
  bool forward;
  int64_t rest;         // points of a line are so far apart; more than 1 in all passes but the last
  int64_t left;         // the product of this factor and the later ones
  int64_t result_step;  // from result to result
  bool loads_across, stores_across;  // lines are closer than points, so neighbouring threads take neighbouring lines
  int stages = 0;
  uint8_t radix[kFftStages] = {};

  TT_DEVICE void operator()(Group& group, std::byte* memory) const {
    C *x = reinterpret_cast<C*>(memory), *y = x + kFftPoints<R>;
    Line* where = reinterpret_cast<Line*>(memory + 2 * kFftRoom);
    const int64_t first = group.index() * together, here = count - first < together ? count - first : together;
    for (int64_t l = group.rank(); l < here; l += group.size()) {
      const Offsets<3> at = lines.offsets(first + l);
      where[l] = {at.at[0], at.at[1], (first + l) % rest, at.at[2]};
    }
    group.sync();
    for (int64_t e = group.rank(); e < here * length; e += group.size()) {
      const int64_t l = line_of(e, here, loads_across), j = point_of(e, here, loads_across);
      x[l * length + j] = source.load(where[l].from, where[l].first_point + j * rest);
    }
    group.sync();
    int64_t before = 1;
    for (int s = 0; s < stages; ++s) {
      run_stage(group, x, y, here, radix[s], before);
      before *= radix[s];
      C* const other = x;
      x = y;
      y = other;
      group.sync();
    }
    for (int64_t e = group.rank(); e < here * length; e += group.size()) {
      const int64_t l = line_of(e, here, stores_across), k = point_of(e, here, stores_across);
      C value = x[l * length + k];
      if (rest > 1) value *= roots.root(k * where[l].first_point, left);
      target.store(where[l].to, where[l].first_result + k * result_step, value);
    }
  }

 private:
  TT_FUNCTION int64_t line_of(int64_t e, int64_t here, bool across) const { return across ? e % here : e / length; }
  TT_FUNCTION int64_t point_of(int64_t e, int64_t here, bool across) const { return across ? e / here : e % length; }

  // Each of the lines' butterflies b: its points are all those b apart, its results neighbours but for earlier radices.
  TT_DEVICE void run_stage(Group& group, const C* x, C* y, int64_t here, int64_t radix, int64_t before) const {
    const int64_t each = length / radix;
    for (int64_t e = group.rank(); e < here * each; e += group.size()) {
      const int64_t start = e / each * length, b = e % each, k = b / before, neighbour = b % before;
      const Butterfly<R> butterfly{x + start + b, y + start + k * radix * before + neighbour, each, before, roots, k,
                                   length / before, forward ? R(-1) : R(1)};
      if (radix == 4) butterfly.four();
      else if (radix == 2) butterfly.two();
      else if (radix == 3) butterfly.three();
      else butterfly.any(radix);
    }
  }
};

}  // namespace tt::cuda
