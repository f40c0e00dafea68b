// Operators that draw from the session's generator. For the same generator state, the numbers equal those of the CPU
// (engine/session/generator.h).
#include <vector>

#include "engine/dispatch/boxed.h"
#include "engine/session/context.h"
#include "kernels/common/iteration/complex_as_real.h"
#include "kernels/common/math/scalar_math.h"
#include "kernels/common/random/random_ranges.h"
#include "kernels/common/random/dropout_scale.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/access.h"
#include "kernels/cuda/launch/device_error.h"
#include "kernels/cuda/launch/floating.h"
#include "kernels/cuda/launch/layout.h"
#include "kernels/cuda/launch/vectors.h"
#include "kernels/cuda/pointwise/chain.h"
#include "kernels/cuda/random/random.h"

namespace tt::cuda {

namespace {

using OptionalDType = std::optional<DType>;
using OptionalDevice = std::optional<Device>;

// Returns a uniform number in [0, 1), from 24 bits of one word or from 53 bits of two words.
TT_FUNCTION float unit(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
TT_FUNCTION double unit(uint32_t high, uint32_t low) {
  return static_cast<double>(uint64_t{high >> 5} << 26 | low >> 6) * 0x1p-53;
}
TT_FUNCTION uint64_t pair_of(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

// The numbers from one Philox block: four floats or two doubles.
template <typename C>
struct Drawn {
  static constexpr int kCount = 16 / sizeof(C);
  C at[kCount];
};

struct Uniform {
  TT_FUNCTION void operator()(const std::array<uint32_t, 4>& w, Drawn<float>* out) const {
    for (int j = 0; j < 4; ++j) out->at[j] = unit(w[j]);
  }
  TT_FUNCTION void operator()(const std::array<uint32_t, 4>& w, Drawn<double>* out) const {
    for (int j = 0; j < 2; ++j) out->at[j] = unit(w[2 * j], w[2 * j + 1]);
  }
};

// Normal numbers by the Box-Muller transform, which computes radii and angles from uniform numbers.
struct Normal {
  template <typename C>
  TT_FUNCTION void operator()(const std::array<uint32_t, 4>& w, Drawn<C>* out) const {
    Uniform()(w, out);
    for (int j = 0; j < Drawn<C>::kCount; j += 2) {
      const C radius = math::sqrt(C(-2) * math::log(C(1) - out->at[j])), angle = C(2) * math::kPi<C> * out->at[j + 1];
      out->at[j] = radius * math::cos(angle);
      out->at[j + 1] = radius * math::sin(angle);
    }
  }
};

struct Integers {
  IntegerRange range;
  // Computes four integers from one word each, or two integers from two words each.
  TT_FUNCTION void operator()(const std::array<uint32_t, 4>& w, int64_t (&out)[4]) const {
    for (int j = 0; j < 4; ++j) out[j] = range.from_word(w[j]);
  }
  TT_FUNCTION void operator()(const std::array<uint32_t, 4>& w, int64_t (&out)[2]) const {
    for (int j = 0; j < 2; ++j) out[j] = range.from_words(pair_of(w[2 * j], w[2 * j + 1]));
  }
};

// The Philox blocks of one draw: `blocks` blocks from position `begin` of the generator's sequence.
struct PhiloxRange {
  PhiloxState begin;
  int64_t blocks;

  // Reserves the words for n elements of `each` words per element, and advances the generator past them.
  static PhiloxRange reserve(int64_t n, int64_t each) {
    const int64_t groups = (n * each + kGroupWords - 1) / kGroupWords, blocks = groups * kGroupBlocks;
    return {Context::current().draw(static_cast<uint64_t>(blocks)), blocks};
  }
  TT_FUNCTION std::array<uint32_t, 4> words(int64_t block) const {
    const uint64_t at = begin.offset + static_cast<uint64_t>(block);
    return begin.state ? philox(begin.state[0], begin.state[1] + at) : philox(begin.seed, at);
  }
};

// Returns the index of the element that receives number j of a block. A block yields `count` numbers.
TT_FUNCTION int64_t element_of(int64_t block, int j, int count) {
  return block / kGroupBlocks * kGroupBlocks * count + j * kGroupBlocks + block % kGroupBlocks;
}

// Stores out[i] = after(number i of `distribution`, i) in out's dtype and layout.
template <typename C, typename Distribution, typename After>
struct Draw {
  PhiloxRange counters;
  int64_t n;
  Layout<1> layout;
  Access out;
  Distribution distribution;
  After after;

  TT_DEVICE void operator()(int64_t block) const {
    Drawn<C> drawn;
    distribution(counters.words(block), &drawn);
    for (int j = 0; j < drawn.kCount; ++j) {
      const int64_t i = element_of(block, j, drawn.kCount);
      if (i < n) store_any<C>(out, layout.offsets(i).at[0], after(drawn.at[j], i));
    }
  }
};

template <typename C, typename Distribution, typename After>
void draw_as(const Tensor& out, Distribution distribution, After after) {
  const PhiloxRange counters = PhiloxRange::reserve(out.numel(), sizeof(C) / sizeof(uint32_t));
  for_each(queue_of(out), counters.blocks,
           Draw<C, Distribution, After>{counters, out.numel(), Layout<1>(out.sizes(), {out.strides()}), Access(out),
                                        distribution, after});
}

// Draws in double for float64 results, in float for other dtypes.
template <typename Distribution, typename After>
void draw(const Tensor& out, Distribution distribution, After after) {
  out.dtype() == DType::kFloat64 ? draw_as<double>(out, distribution, after) : draw_as<float>(out, distribution, after);
}

// Functions that convert drawn numbers to results. They are the `after` of draw().
struct Scaled {
  double from, by;
  template <typename C>
  TT_FUNCTION C operator()(C u, int64_t) const {
    return static_cast<C>(from) + u * static_cast<C>(by);
  }
};
struct InRange {
  UniformRange range;
  template <typename C>
  TT_FUNCTION C operator()(C u, int64_t) const {
    return range(u);
  }
};
struct Waiting {
  double lambd;
  template <typename C>
  TT_FUNCTION C operator()(C u, int64_t) const {
    constexpr C kLeast = kLeastExponential<C>;
    const C sample = -math::log1p(-u);
    return (sample < kLeast ? kLeast : sample) / static_cast<C>(lambd);
  }
};
struct Below {
  double p;
  template <typename C>
  TT_FUNCTION C operator()(C u, int64_t) const {
    return u < static_cast<C>(p) ? C(1) : C(0);
  }
};
struct BelowOwn {
  Layout<1> layout;
  Access probability;
  DeviceErrorCell* cell;
  TT_DEVICE double operator()(double u, int64_t i) const {
    const double p = load_any<double>(probability.data, probability.dtype, layout.offsets(i).at[0]);
    if (!(p >= 0 && p <= 1)) report_error(cell, 0, 0, 0);
    return u < p ? 1 : 0;
  }
};

}  // namespace

void draw_unit(const Tensor& out, double from, double to) {
  draw(out, Uniform(), InRange{uniform_range(from, to, out.dtype())});
}

void draw_normal(const Tensor& out, double mean, double std) { draw(out, Normal(), Scaled{mean, std}); }

namespace {

template <int kCount>
struct DrawIntegers {
  PhiloxRange counters;
  int64_t n;
  Layout<1> layout;
  Access out;
  Integers integers;

  TT_DEVICE void operator()(int64_t block) const {
    int64_t drawn[kCount];
    integers(counters.words(block), drawn);
    for (int j = 0; j < kCount; ++j) {
      const int64_t i = element_of(block, j, kCount);
      if (i < n) store_any<int64_t>(out, layout.offsets(i).at[0], drawn[j]);
    }
  }
};

template <int kCount>
void draw_integers_as(const Tensor& out, const IntegerRange& range) {
  const PhiloxRange counters = PhiloxRange::reserve(out.numel(), 4 / kCount);
  for_each(queue_of(out), counters.blocks,
           DrawIntegers<kCount>{counters, out.numel(), Layout<1>(out.sizes(), {out.strides()}), Access(out), {range}});
}

}  // namespace

void draw_integers(const Tensor& out, const IntegerRange& range) {
  range.uses_one_word() ? draw_integers_as<4>(out, range) : draw_integers_as<2>(out, range);
}

namespace {

Error no_probability(const DeviceErrorCell&) { return Error(ErrorKind::kRuntime, kNoProbability); }

}  // namespace

void exponential_like(const Tensor&, double lambd, Tensor& out) {
  check_exponential(lambd);
  draw(out, Uniform(), Waiting{lambd});
}

void bernoulli_like(const Tensor&, double p, Tensor& out) {
  check_bernoulli(p);
  draw(out, Uniform(), Below{p});
}

void bernoulli(const Tensor& input, Tensor& out) {
  DeviceErrorCell* cell = open_error_cell(queue_of(out), &no_probability);
  draw_as<double>(out, Uniform(), BelowOwn{Layout<1>(input.sizes(), {input.strides()}), Access(input), cell});
}

namespace {

// Draws `kept` like the functor Below, and scales the kept elements like the operator scale_kept.
template <typename T>
struct Dropout {
  PhiloxRange counters;
  int64_t n;
  AccumulateType<T> share;  // fraction of elements that is kept
  const T* x;
  T* y;
  Bool* kept;

  TT_DEVICE void operator()(int64_t block) const {
    using C = AccumulateType<T>;
    Drawn<float> drawn;
    Uniform()(counters.words(block), &drawn);
    TT_UNROLL
    for (int j = 0; j < drawn.kCount; ++j) {
      const int64_t i = element_of(block, j, drawn.kCount);
      if (i >= n) continue;
      const bool keep = drawn.at[j] < static_cast<float>(share);
      kept[i] = Bool(keep);
      y[i] = convert<T>(keep ? convert<C>(x[i]) / share : C(0));
    }
  }
};

}  // namespace

void dropout(const Tensor& input, double p, Tensor& output, Tensor& kept) {
  if (is_complex(input.dtype())) {
    bernoulli_like(input, 1 - p, kept);
    return run_chain(DropoutScale(input, kept, p).steps(), output);
  }
  const Tensor x = contiguous(input);
  const PhiloxRange counters = PhiloxRange::reserve(x.numel(), 1);
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    for_each(queue_of(output), counters.blocks,
             Dropout<T>{counters, x.numel(), static_cast<AccumulateType<T>>(1 - p), x.data_as<T>(), output.data_as<T>(),
                        kept.data_as<Bool>()});
  });
}

// A permutation is drawn sequentially, so the host computes and uploads it. randperm cannot be captured into a graph.
void randperm(int64_t n, OptionalDType, OptionalDevice, Tensor& out) {
  check_randperm(n, out.dtype());
  const PhiloxRange counters = PhiloxRange::reserve(n, 2);
  std::vector<uint64_t> drawn(n);
  for (int64_t block = 0; block < counters.blocks; ++block) {
    const std::array<uint32_t, 4> w = counters.words(block);
    for (int j = 0; j < 2; ++j) {
      const int64_t i = element_of(block, j, 2);
      if (i < n) drawn[i] = pair_of(w[2 * j], w[2 * j + 1]);
    }
  }
  with_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    upload(out, [&](void* to) { shuffle(drawn.data(), n, static_cast<T*>(to)); });
  });
}

}  // namespace tt::cuda
