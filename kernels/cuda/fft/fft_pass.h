// FftPass: one pass of a Fourier transform whose length has only small prime factors.
//
// The length n is a product of factors, each small enough for the shared memory of a group. A line of n points is
// treated as a tensor whose sizes are these factors. Each pass transforms one dimension of the tensor and multiplies
// the result by the twiddle factors that the later passes require. The last pass stores the results in their final
// order. Within a pass, the algorithm is Stockham's autosort, as on the CPU (fft_plan.h).
#pragma once

#include "kernels/cuda/fft/fft_load_store.h"
#include "kernels/cuda/launch/layout.h"
#include "kernels/cuda/launch/shared_groups.h"

namespace tt::cuda {

inline constexpr int64_t kFftMaxLines = 64;            // maximum number of lines per group
inline constexpr int64_t kFftBufferBytes = 16 * 1024;  // maximum bytes of a group's points
inline constexpr int kFftStages = 12;                  // maximum number of stages, reached if all radices are 2

template <typename R>
inline constexpr int64_t kFftPoints = kFftBufferBytes / static_cast<int64_t>(sizeof(Complex<R>));

// One butterfly: computes results y from points x.
template <typename R>
struct Butterfly {
  const Complex<R>* x;
  Complex<R>* y;
  uint32_t x_step, y_step;
  const Complex<R>* roots;
  int64_t twiddle_step;  // result t is multiplied by roots[t * twiddle_step]
  int64_t root_step;     // distance between the radix's roots of unity in `roots`
  R sign;                // sign of i: -1 for a forward transform

  TT_FUNCTION Complex<R> at(uint32_t j) const { return x[j * x_step]; }
  TT_FUNCTION void put(uint32_t t, Complex<R> value) const {
    y[t * y_step] = twiddle_step == 0 ? value : value * roots[t * twiddle_step];
  }
  // value times i, multiplied by `sign`.
  TT_FUNCTION Complex<R> rotated(Complex<R> value) const { return {-sign * value.im, sign * value.re}; }

  TT_FUNCTION void two() const {
    const Complex<R> a = at(0), b = at(1);
    put(0, a + b);
    put(1, a - b);
  }
  TT_FUNCTION void three() const {
    const Complex<R> a = at(0), sum = at(1) + at(2),
                     side = rotated(at(1) - at(2)) * Complex<R>(R(0.86602540378443864676));
    const Complex<R> middle = a - sum * Complex<R>(R(0.5));
    put(0, a + sum);
    put(1, middle + side);
    put(2, middle - side);
  }
  TT_FUNCTION void four() const {
    const Complex<R> a = at(0) + at(2), b = at(0) - at(2), c = at(1) + at(3), d = rotated(at(1) - at(3));
    put(0, a + c);
    put(1, b + d);
    put(2, a - c);
    put(3, b - d);
  }
  // Computes each result directly as a sum over the points.
  TT_FUNCTION void any(uint32_t radix) const {
    for (uint32_t t = 0; t < radix; ++t) {
      Complex<R> sum = at(0);
      uint32_t angle = 0;
      for (uint32_t j = 1; j < radix; ++j) {
        angle += t;
        if (angle >= radix) angle -= radix;
        sum += at(j) * roots[angle * root_step];
      }
      put(t, sum);
    }
  }
};

template <typename R>
struct FftPass {
  using C = Complex<R>;
  // The points that one line of a pass transforms. `from` and `to` are the offsets of the whole line in the source and
  // in the target; `first_point` and `first_result` are the indices in the whole line of the first point and of the
  // first result.
  struct Line {
    int64_t from, to, first_point, first_result;
  };
  static constexpr size_t kBytes = 2 * kFftBufferBytes + kFftMaxLines * sizeof(Line);

  Layout<3> lines;  // per line: `from`, `to` and `first_result` of Line
  int64_t count, lines_per_group;
  uint32_t length;
  FftSource<R> source;
  FftTarget<R> target;
  const C* roots;  // exp(-+2 pi i k / points); includes the roots of every factor
  int64_t points;
  bool forward;
  int64_t rest;                      // distance of a line's points; greater than 1 in all passes but the last
  int64_t left;                      // product of the lengths of this pass and the later ones
  int64_t result_step;               // distance between results
  bool loads_across, stores_across;  // lines are closer than points, so neighbouring threads access neighbouring lines
  int stages = 0;
  uint8_t radix[kFftStages] = {};

  TT_DEVICE void operator()(Group& group, std::byte* memory) const {
    C *x = reinterpret_cast<C*>(memory), *y = x + kFftPoints<R>;
    Line* where = reinterpret_cast<Line*>(memory + 2 * kFftBufferBytes);
    const int64_t first = group.index() * lines_per_group;
    const auto here = static_cast<uint32_t>(count - first < lines_per_group ? count - first : lines_per_group);
    for (uint32_t l = group.rank(); l < here; l += group.size()) {
      const Offsets<3> at = lines.offsets(first + l);
      where[l] = {at.at[0], at.at[1], (first + l) % rest, at.at[2]};
    }
    group.sync();
    for (uint32_t e = group.rank(); e < here * length; e += group.size()) {
      const uint32_t l = line_of(e, here, loads_across), j = point_of(e, here, loads_across);
      x[l * length + j] = source.load(where[l].from, where[l].first_point + j * rest);
    }
    group.sync();
    uint32_t before = 1;
    for (int s = 0; s < stages; ++s) {
      run_stage(group, x, y, here, radix[s], before);
      before *= radix[s];
      C* const other = x;
      x = y;
      y = other;
      group.sync();
    }
    const int64_t twiddle_step = points / left;
    for (uint32_t e = group.rank(); e < here * length; e += group.size()) {
      const uint32_t l = line_of(e, here, stores_across), k = point_of(e, here, stores_across);
      C value = x[l * length + k];
      if (rest > 1) value *= roots[k * where[l].first_point * twiddle_step];
      target.store(where[l].to, where[l].first_result + k * result_step, value);
    }
  }

 private:
  TT_FUNCTION uint32_t line_of(uint32_t e, uint32_t here, bool across) const { return across ? e % here : e / length; }
  TT_FUNCTION uint32_t point_of(uint32_t e, uint32_t here, bool across) const { return across ? e / here : e % length; }

  // Computes the butterflies of one stage. `before` is the product of the earlier radices. The points of a butterfly
  // are length / radix apart, and its results are `before` apart.
  TT_DEVICE void run_stage(Group& group, const C* x, C* y, uint32_t here, uint32_t radix, uint32_t before) const {
    const uint32_t each = length / radix;
    const int64_t twiddle_step = points / length * before, root_step = points / radix;
    for (uint32_t e = group.rank(); e < here * each; e += group.size()) {
      const uint32_t start = e / each * length, b = e % each, k = b / before, neighbour = b % before;
      const Butterfly<R> butterfly{x + start + b, y + start + k * radix * before + neighbour,
                                   each,          before,
                                   roots,         k * twiddle_step,
                                   root_step,     forward ? R(-1) : R(1)};
      if (radix == 4)
        butterfly.four();
      else if (radix == 2)
        butterfly.two();
      else if (radix == 3)
        butterfly.three();
      else
        butterfly.any(radix);
    }
  }
};

}  // namespace tt::cuda
