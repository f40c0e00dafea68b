// Fourier transforms, one dimension after the other. The one-dimensional slices along the transformed dimension, called
// lines, are processed in blocks.

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/device/parallel.h"
#include "engine/memory/workspace_charge.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"
#include "kernels/common/math/complex.h"
#include "kernels/cpu/fft/fft.h"
#include "kernels/cpu/fft/fft_plan.h"
#include "kernels/cpu/fft/long_line.h"
#include "kernels/cpu/fft/long_transforms.h"
#include "kernels/cpu/fft/plan_cache.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

constexpr int64_t kBlockElements = 1 << 18;  // maximum number per block of lines; its buffers fit the caches
constexpr int64_t kGrain = 1 << 15;          // minimum number of elements per thread

// The lines of a contiguous tensor along one dimension.
struct LineSet {
  int64_t outer = 1, length = 1, inner = 1;

  LineSet(int64_t outer, int64_t length, int64_t inner) : outer(outer), length(length), inner(inner) {}
  LineSet(SizesView sizes, int64_t dim) {
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
      (d < dim ? outer : d == dim ? length : inner) *= sizes[d];
    }
  }
  int64_t lines() const { return outer * inner; }
  // Offset of line l's first element.
  int64_t start(int64_t l) const { return l / inner * length * inner + l % inner; }
  // Whether, for each k, the k-th elements of lines [first, first + count) are adjacent in memory.
  bool adjacent(int64_t first, int64_t count) const { return inner > 1 && first % inner + count <= inner; }
};

// The lines [first, first + count).
struct Block {
  int64_t first, count;
};

// Calls body(block, buffers) for each block of lines, in parallel.
template <typename R, typename Body>
void for_each_block(const FftPlan<R>& plan, const LineSet& set, Body body) {
  const int64_t lanes = fft_passes<R>().lanes, lines = set.lines();
  const bool single = plan.vectorises_line() && set.inner < lanes;
  const int64_t count = single ? 1 : std::clamp<int64_t>(kBlockElements / plan.length(), 1, std::min(lanes, lines));
  const int64_t blocks = (lines + count - 1) / count;
  const int64_t threads = std::min<int64_t>(blocks, num_threads());
  const WorkspaceCharge charge(plan.bytes() + static_cast<uint64_t>(4 * plan.buffer_size(count) * threads) * sizeof(R));
  parallel_for(blocks, std::max<int64_t>(1, kGrain / (count * plan.length())), [&](int64_t begin, int64_t end) {
    const int64_t size = plan.buffer_size(count);
    AlignedVector<R> memory(static_cast<size_t>(4 * size));
    const FftBuffers<R> buffers{memory.data(), size};
    for (int64_t b = begin; b < end; ++b) body(Block{b * count, std::min(count, lines - b * count)}, buffers);
  });
}

// Calls f(k * count + l, element) for each element k < `length` of each line l of the block, where `element` is the
// element's offset in the tensor.
template <typename F>
void each_element(const LineSet& set, Block block, int64_t length, F f) {
  for (int64_t l = 0; l < block.count; ++l) {
    const int64_t start = set.start(block.first + l);
    for (int64_t k = 0; k < length; ++k) f(k * block.count + l, start + k * set.inner);
  }
}

// gather_pairs() copies element k of line l of a block to index k * count + l. scatter_pairs() copies back and
// multiplies by `scale`.
template <typename R>
void gather_pairs(const LineSet& set, Block block, const R* pairs, Split<R> to) {
  const FftPasses<R>& passes = fft_passes<R>();
  const R* from = pairs + 2 * set.start(block.first);
  if (set.inner == 1 && block.count == 1) {
    passes.split_pairs(from, set.length, to);
  } else if (set.inner == 1 && block.count == passes.lanes) {
    passes.split_lines(from, 2 * set.length, set.length, to);
  } else if (set.adjacent(block.first, block.count)) {
    for (int64_t k = 0; k < set.length; ++k) {
      const int64_t row = k * block.count;
      passes.split_pairs(from + 2 * k * set.inner, block.count, {to.re + row, to.im + row});
    }
  } else {
    each_element(set, block, set.length, [&](int64_t at, int64_t element) {
      to.re[at] = pairs[2 * element];
      to.im[at] = pairs[2 * element + 1];
    });
  }
}

template <typename R>
void scatter_pairs(const LineSet& set, Block block, Split<R> from, R scale, R* pairs) {
  const FftPasses<R>& passes = fft_passes<R>();
  R* to = pairs + 2 * set.start(block.first);
  if (set.inner == 1 && block.count == 1) {
    passes.join_pairs(from, set.length, scale, to);
  } else if (set.inner == 1 && block.count == passes.lanes) {
    passes.join_lines(from, set.length, scale, to, 2 * set.length);
  } else if (set.adjacent(block.first, block.count)) {
    for (int64_t k = 0; k < set.length; ++k) {
      const int64_t row = k * block.count;
      passes.join_pairs({from.re + row, from.im + row}, block.count, scale, to + 2 * k * set.inner);
    }
  } else {
    each_element(set, block, set.length, [&](int64_t at, int64_t element) {
      pairs[2 * element] = from.re[at] * scale;
      pairs[2 * element + 1] = from.im[at] * scale;
    });
  }
}

// Transforms complex lines; `to` may equal `from`.
template <typename R>
void transform(const Complex<R>* from, Complex<R>* to, const LineSet& set, bool forward, R scale) {
  const auto plan = PlanCache<FftPlan<R>>::get(set.length, false);
  const auto* in = reinterpret_cast<const R*>(from);
  auto* out = reinterpret_cast<R*>(to);
  for_each_block(*plan, set, [&](Block block, FftBuffers<R> buffers) {
    if (block.count == 1 && set.inner == 1) {
      const int64_t start = 2 * set.start(block.first);
      plan->run_pairs(in + start, out + start, !forward, scale, buffers);
      return;
    }
    const Split<R> data = buffers.data(), work = buffers.work();
    gather_pairs(set, block, in, data);
    const Split<R> z =
        forward ? plan->run(data, work, block.count) : plan->run(data.swapped(), work.swapped(), block.count).swapped();
    scatter_pairs(set, block, z, scale, out);
  });
}

template <typename R>
void transform(const Tensor& from, const Tensor& to, int64_t dim, bool forward, R scale) {
  if (is_long<R>(to.size(dim), false)) return transform_long<R>(from, to, dim, forward, scale);
  transform<R>(from.data_as<Complex<R>>(), to.data_as<Complex<R>>(), LineSet(to.sizes(), dim), forward, scale);
}

// gather_reals() copies every `step`-th element of real lines, starting at `offset`, to index k * count + l.
// scatter_reals() copies back and multiplies by `scale`.
template <typename R>
void gather_reals(const LineSet& set, Block block, const R* from, int64_t offset, int64_t step, R* to) {
  const int64_t n = set.length / step;
  if (set.adjacent(block.first, block.count)) {
    const R* rows = from + set.start(block.first) + offset * set.inner;
    for (int64_t k = 0; k < n; ++k) std::copy_n(rows + k * step * set.inner, block.count, to + k * block.count);
    return;
  }
  for (int64_t l = 0; l < block.count; ++l) {
    const R* line = from + set.start(block.first + l) + offset * set.inner;
    for (int64_t k = 0; k < n; ++k) to[k * block.count + l] = line[k * step * set.inner];
  }
}

template <typename R>
void scatter_reals(const LineSet& set, Block block, const R* from, R scale, R* to, int64_t offset, int64_t step) {
  const int64_t n = set.length / step;
  if (set.adjacent(block.first, block.count)) {
    R* rows = to + set.start(block.first) + offset * set.inner;
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t l = 0; l < block.count; ++l) rows[k * step * set.inner + l] = from[k * block.count + l] * scale;
    }
    return;
  }
  for (int64_t l = 0; l < block.count; ++l) {
    R* line = to + set.start(block.first + l) + offset * set.inner;
    for (int64_t k = 0; k < n; ++k) line[k * step * set.inner] = from[k * block.count + l] * scale;
  }
}

// Transforms real lines of length n to the first n / 2 + 1 elements of their spectrum. Lines of even length are
// transformed as complex lines of half the length, from which the spectra of even and odd elements are separated and
// combined.
template <typename R>
void transform_real(const Tensor& x, int64_t dim, R scale, Tensor& out) {
  if (is_long<R>(x.size(dim), true)) return transform_long_real<R>(x, out, dim, scale);
  const LineSet from(x.sizes(), dim), to(out.sizes(), dim);
  const int64_t n = from.length, half = n / 2;
  const bool even = n % 2 == 0;
  const auto plan = PlanCache<FftPlan<R>>::get(even ? half : n, even);
  const R* reals = x.data_as<R>();
  auto* spectrum = reinterpret_cast<R*>(out.data_as<Complex<R>>());
  for_each_block(*plan, from, [&](Block block, FftBuffers<R> buffers) {
    const Split<R> data = buffers.data(), work = buffers.work();
    if (even && block.count == 1 && from.inner == 1) {
      const Split<R> z = plan->run_from_pairs(reals + from.start(block.first), buffers);
      fft_passes<R>().spectrum_of_reals(z, plan->roots(), half, scale, spectrum + 2 * to.start(block.first));
      return;
    }
    if (even && from.inner == 1) {
      gather_pairs(LineSet(from.outer, half, 1), block, reals, data);
    } else if (even) {
      gather_reals(from, block, reals, 0, 2, data.re);
      gather_reals(from, block, reals, 1, 2, data.im);
    } else {
      gather_reals(from, block, reals, 0, 1, data.re);
      std::fill_n(data.im, n * block.count, R(0));
    }
    Split<R> z = plan->run(data, work, block.count);
    if (even) {
      const Split<R> result = buffers.other(z);
      fft_passes<R>().spectra_of_reals(z, plan->roots(), half, block.count, result);
      z = result;
    } else {
      std::fill_n(z.im, block.count, R(0));  // sums of real numbers, without rounding errors
    }
    scatter_pairs(to, block, z, scale, spectrum);
  });
}

// Transforms the first n / 2 + 1 elements of Hermitian spectra back to real lines of length n, which is the size of
// `out`.
template <typename R>
void transform_to_real(const Tensor& x, int64_t dim, R scale, Tensor& out) {
  if (is_long<R>(out.size(dim), true)) return transform_long_to_real<R>(x, out, dim, scale);
  const LineSet from(x.sizes(), dim), to(out.sizes(), dim);
  const int64_t n = to.length, half = n / 2;
  const bool even = n % 2 == 0;
  const auto plan = PlanCache<FftPlan<R>>::get(even ? half : n, even);
  const auto* spectrum = reinterpret_cast<const R*>(x.data_as<Complex<R>>());
  R* reals = out.data_as<R>();
  for_each_block(*plan, to, [&](Block block, FftBuffers<R> buffers) {
    const Split<R> data = buffers.data(), work = buffers.work();
    const int64_t count = block.count;
    if (even && count == 1 && to.inner == 1) {
      fft_passes<R>().reals_from_spectrum(spectrum + 2 * from.start(block.first), plan->roots(), half, data.swapped());
      plan->run_to_pairs(buffers, reals + to.start(block.first), true, scale);
      return;
    }
    gather_pairs(from, block, spectrum, even ? work : data);
    if (even) {
      fft_passes<R>().reals_from_spectra(work, plan->roots(), half, count, data);
    } else {
      std::fill_n(data.im, count, R(0));
      for (int64_t k = half + 1; k < n; ++k) {
        std::copy_n(data.re + (n - k) * count, count, data.re + k * count);
        std::transform(data.im + (n - k) * count, data.im + (n - k + 1) * count, data.im + k * count,
                       [](R v) { return -v; });
      }
    }
    const Split<R> z = plan->run(data.swapped(), work.swapped(), count).swapped();
    if (even && to.inner == 1) {
      scatter_pairs(LineSet(to.outer, half, 1), block, z, scale, reals);
    } else if (even) {
      scatter_reals(to, block, z.re, scale, reals, 0, 2);
      scatter_reals(to, block, z.im, scale, reals, 1, 2);
    } else {
      scatter_reals(to, block, z.re, scale, reals, 0, 1);
    }
  });
}

template <typename F>
void with_parts(DType complex, F f) {
  complex == DType::kComplex64 ? f(float()) : f(double());
}

}  // namespace

void forget_fft_plans() {
  PlanCache<FftPlan<float>>::clear();
  PlanCache<FftPlan<double>>::clear();
  PlanCache<LongLine<float>>::clear();
  PlanCache<LongLine<double>>::clear();
}

void fft_c2c(const Tensor& input, absl::Span<const int64_t> dim, double scale, bool forward, Tensor& out) {
  if (out.numel() == 0) return;
  const bool direct = !dim.empty() && input.dtype() == out.dtype() && input.is_contiguous();
  if (!direct) copy(input, out);
  with_parts(out.dtype(), [&]<typename R>(R) {
    for (size_t i = 0; i < dim.size(); ++i) {
      const int64_t d = shape_rules::wrap_dim(dim[i], out.dim());
      const R factor = i + 1 == dim.size() ? static_cast<R>(scale) : R(1);
      transform<R>(i == 0 && direct ? input : out, out, d, forward, factor);
    }
  });
}

void fft_r2c(const Tensor& input, absl::Span<const int64_t> dim, double scale, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor x = contiguous(input);
  with_parts(out.dtype(), [&]<typename R>(R) {
    transform_real<R>(x, shape_rules::wrap_dim(dim.back(), x.dim()), static_cast<R>(scale), out);
    for (size_t i = dim.size() - 1; i-- > 0;) {
      transform<R>(out, out, shape_rules::wrap_dim(dim[i], out.dim()), true, R(1));
    }
  });
}

void fft_c2r(const Tensor& input, absl::Span<const int64_t> dim, double scale, int64_t, Tensor& out) {
  if (out.numel() == 0) return;
  Tensor x = input;
  with_parts(input.dtype(), [&]<typename R>(R) {
    if (dim.size() > 1) {
      x = empty(input.sizes(), input.dtype(), input.device());
      copy(input, x);
      for (size_t i = 0; i + 1 < dim.size(); ++i) {
        transform<R>(x, x, shape_rules::wrap_dim(dim[i], x.dim()), false, R(1));
      }
    }
    transform_to_real<R>(contiguous(x), shape_rules::wrap_dim(dim.back(), x.dim()), static_cast<R>(scale), out);
  });
}

}  // namespace tt::cpu
