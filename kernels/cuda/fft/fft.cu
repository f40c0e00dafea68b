// Fourier transforms along dimensions, by cuFFT, or by our own kernels if cuFFT is missing or does not support the
// transform. Our kernels transform one dimension after the other, in one or more passes per dimension.
#include <algorithm>
#include <numeric>

#include "engine/schema/rules/shape_rules.h"
#include "kernels/common/fft/fft_roots.h"
#include "kernels/cuda/fft/fft_pass.h"
#include "kernels/cuda/fft/library_transform.h"
#include "kernels/cuda/kernels.h"

namespace tt::cuda {

namespace {

using Dims = absl::Span<const int64_t>;

template <typename R>
constexpr DType kNumbers = sizeof(R) == 4 ? DType::kComplex64 : DType::kComplex128;

// A batch of one-dimensional transforms of n points each. The points of a transform are a line; `sizes` are the sizes
// of the batch of lines, `from` and `to` the strides between lines in the source and in the target.
template <typename R>
struct Job {
  Queue queue;
  int64_t n;
  bool forward;
  Sizes sizes, from, to;
  FftSource<R> source;
  FftTarget<R> target;

  int64_t lines() const { return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()); }
};

// Returns an in-place transform of contiguous lines of n complex points.
template <typename R>
Job<R> packed_job(const Queue& queue, const Tensor& t, int64_t lines, int64_t n, bool forward) {
  return {queue,
          n,
          forward,
          {lines},
          {n},
          {n},
          {t.data(), FftPointFormat::kComplex, 1, n},
          {t.data(), FftPointFormat::kComplex, 1, n, R(1)}};
}

// ---- Lengths with small prime factors ---------------------------------------------------------

template <typename R>
struct MakeRoots {
  int64_t n;
  bool forward;
  Complex<R>* roots;
  TT_DEVICE void operator()(int64_t k) const {
    const Root root = root_of_unity(k, n, forward);
    roots[k] = {static_cast<R>(root.re), static_cast<R>(root.im)};
  }
};

template <typename R>
Tensor roots_of(const Queue& queue, int64_t n, bool forward) {
  Tensor roots = empty({n}, kNumbers<R>, queue.device());
  for_each(queue, n, MakeRoots<R>{n, forward, roots.data_as<Complex<R>>()});
  return roots;
}

using Radices = std::vector<int64_t>;

int64_t product(const Radices& radices) {
  return std::accumulate(radices.begin(), radices.end(), int64_t{1}, std::multiplies<>());
}

// Distributes the radices of n over passes and returns the radices of each pass. Uses the smallest number of passes of
// at most `most` points each; their lengths are about equal.
std::vector<Radices> passes_of(int64_t n, int64_t most) {
  Radices all = radices(n);
  std::sort(all.rbegin(), all.rend());
  for (size_t count = 1;; ++count) {
    std::vector<Radices> passes(count);
    for (int64_t radix : all) {
      const auto least = std::min_element(passes.begin(), passes.end(),
                                          [](const Radices& a, const Radices& b) { return product(a) < product(b); });
      least->push_back(radix);
    }
    const auto fits = [most](const Radices& pass) { return product(pass) <= most; };
    if (std::all_of(passes.begin(), passes.end(), fits)) return passes;
  }
}

// Sizes and strides of the lines and points of a pass, in its source, target and results.
struct Distances {
  Sizes sizes, from, to, results;

  void add(int64_t size, int64_t in_source, int64_t in_target, int64_t in_results) {
    sizes.push_back(size);
    from.push_back(in_source);
    to.push_back(in_target);
    results.push_back(in_results);
  }
};

template <typename R>
void launch_pass(const Queue& queue, FftPass<R> pass, const Distances& d) {
  constexpr int64_t kEnoughGroups = 512;
  const bool lined = !d.sizes.empty();
  const int64_t from = lined ? (pass.rest > 1 ? pass.source.stride : d.from.back()) : 0;
  const int64_t to = lined ? d.to.back() + d.results.back() * pass.target.stride : 0;
  pass.loads_across = lined && from < pass.rest * pass.source.stride;
  pass.stores_across = lined && to < pass.result_step * pass.target.stride;
  const int64_t least = pass.loads_across || pass.stores_across ? 16 : 1;  // to access whole memory sectors
  const int64_t most = std::min(kFftMaxLines, kFftPoints<R> / pass.length);
  pass.lines_per_group = std::min(most, std::max(least, pass.count / kEnoughGroups));
  for_each_shared_group<FftPass<R>::kBytes>(queue, (pass.count + pass.lines_per_group - 1) / pass.lines_per_group,
                                            pass.lines_per_group * pass.length, pass);
}

template <typename R>
void run_passes(const Job<R>& job) {
  const std::vector<Radices> passes = passes_of(job.n, kFftPoints<R>);
  const Tensor roots = roots_of<R>(job.queue, job.n, job.forward);
  const int64_t lines = job.lines();
  Tensor between;
  if (passes.size() > 1) between = empty({lines, job.n}, kNumbers<R>, job.queue.device());
  Sizes packed = contiguous_strides(job.sizes);
  for (int64_t& stride : packed) stride *= job.n;
  // `done` is the product of the lengths of the earlier passes, `left` the product of the lengths of this and the later
  // passes.
  int64_t done = 1, left = job.n;
  for (size_t p = 0; p < passes.size(); ++p) {
    const bool first = p == 0, last = p + 1 == passes.size();
    const int64_t length = product(passes[p]), rest = left / length;
    Distances d{job.sizes, first ? job.from : packed, last ? job.to : packed, Sizes(job.sizes.size(), 0)};
    for (size_t earlier = 0, before = 1, after = job.n; earlier < p; ++earlier) {
      const int64_t factor = product(passes[earlier]);
      after /= factor;
      d.add(factor, after, last ? 0 : after, last ? before : 0);
      before *= factor;
    }
    if (rest > 1) d.add(rest, 0, 0, 1);
    const FftSource<R> source = first ? job.source : FftSource<R>{between.data(), FftPointFormat::kComplex, 1, job.n};
    const FftTarget<R> target =
        last ? job.target : FftTarget<R>{between.data(), FftPointFormat::kComplex, 1, job.n, R(1)};
    FftPass<R> pass{Layout<3>(d.sizes, {d.from, d.to, d.results}),
                    lines * (job.n / length),
                    1,
                    static_cast<uint32_t>(length),
                    source,
                    target,
                    roots.data_as<Complex<R>>(),
                    job.n,
                    job.forward,
                    rest,
                    left,
                    last ? done : rest,
                    false,
                    false};
    for (int64_t radix : passes[p]) pass.radix[pass.stages++] = static_cast<uint8_t>(radix);
    launch_pass(job.queue, pass, d);
    done *= length;
    left = rest;
  }
}

// ---- Other lengths: a convolution whose length is a power of two (fft_plan.cc) ----------------

TT_FUNCTION int64_t distance_from(int64_t k, int64_t n, int64_t size) { return k < n ? k : size - k; }

// For each line, stores the points times w, padded with zeros. After the last line, stores the filter conj(w) / size.
template <typename R>
struct ChirpIn {
  Layout<1> starts;
  FftSource<R> source;
  const Complex<R>* w;
  int64_t n, size, lines;
  Complex<R>* to;

  TT_DEVICE void operator()(int64_t i) const {
    const int64_t line = i / size, k = i % size, near = distance_from(k, n, size);
    Complex<R> value(R(0));
    if (line < lines && k < n) value = source.load(starts.offsets(line).at[0], k) * w[k];
    if (line == lines && near < n) value = {w[near].re / static_cast<R>(size), -w[near].im / static_cast<R>(size)};
    to[i] = value;
  }
};

template <typename R>
struct Filter {
  int64_t size;
  const Complex<R>* filter;
  Complex<R>* numbers;
  TT_DEVICE void operator()(int64_t i) const { numbers[i] *= filter[i % size]; }
};

template <typename R>
struct ChirpOut {
  Layout<1> starts;
  FftTarget<R> target;
  const Complex<R>* w;
  int64_t n, size;
  const Complex<R>* from;

  TT_DEVICE void operator()(int64_t i) const {
    const int64_t line = i / n, k = i % n;
    target.store(starts.offsets(line).at[0], k, from[line * size + k] * w[k]);
  }
};

template <typename R>
struct MakeChirps {
  int64_t n;
  bool forward;
  Complex<R>* w;
  TT_DEVICE void operator()(int64_t k) const {
    const Root root = bluestein_factor(k, n, forward);
    w[k] = {static_cast<R>(root.re), static_cast<R>(root.im)};
  }
};

template <typename R>
void run_chirp(const Job<R>& job) {
  const int64_t n = job.n, lines = job.lines();
  int64_t size = 1;
  while (size < 2 * n - 1) size *= 2;
  const Tensor chirps = empty({n}, kNumbers<R>, job.queue.device());
  const Tensor buffer = empty({lines + 1, size}, kNumbers<R>, job.queue.device());
  auto *w = chirps.data_as<Complex<R>>(), *numbers = buffer.data_as<Complex<R>>();
  for_each(job.queue, n, MakeChirps<R>{n, job.forward, w});
  for_each(job.queue, buffer.numel(),
           ChirpIn<R>{Layout<1>(job.sizes, {job.from}), job.source, w, n, size, lines, numbers});
  run_passes(packed_job<R>(job.queue, buffer, lines + 1, size, true));
  for_each(job.queue, lines * size, Filter<R>{size, numbers + lines * size, numbers});
  run_passes(packed_job<R>(job.queue, buffer, lines, size, false));
  for_each(job.queue, lines * n, ChirpOut<R>{Layout<1>(job.sizes, {job.to}), job.target, w, n, size, numbers});
}

// ---- Tensors ----------------------------------------------------------------------------------

struct Ends {
  FftPointFormat source = FftPointFormat::kComplex, target = FftPointFormat::kComplex;
};

// Transforms lines of n points along `dim`. `x` and `out` may be the same tensor.
template <typename R>
void transform(const Tensor& x, int64_t dim, int64_t n, Ends ends, bool forward, double scale, const Tensor& out) {
  Job<R> job{queue_of(out),
             n,
             forward,
             out.sizes(),
             x.strides(),
             out.strides(),
             {x.data(), ends.source, x.stride(dim), n},
             {out.data(), ends.target, out.stride(dim), n, static_cast<R>(scale)}};
  for (Sizes* places : {&job.sizes, &job.from, &job.to}) places->erase(places->begin() + dim);
  n > 1 && radices(n).empty() ? run_chirp(job) : run_passes(job);
}

// Transforms complex numbers along each of `dims`. `x` and `out` may be the same tensor.
template <typename R>
void transform_dims(const Tensor& x, Dims dims, bool forward, double scale, const Tensor& out) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const double factor = i + 1 == dims.size() ? scale : 1;
    transform<R>(i == 0 ? x : out, dims[i], out.size(dims[i]), Ends(), forward, factor, out);
  }
}

// Transforms complex numbers along `dims`, up to kMaxFftDims of them at once. `x` and `out` may be the same tensor.
template <typename R>
void transform_complex(const Tensor& x, Dims dims, bool forward, double scale, const Tensor& out) {
  for (size_t first = 0; first < dims.size(); first += kMaxFftDims) {
    const Dims some = dims.subspan(first, kMaxFftDims);
    const Tensor& from = first == 0 ? x : out;
    const double factor = first + some.size() == dims.size() ? scale : 1;
    if (transform_by_library(FftKind::kComplexToComplex, from, some, forward, factor, out)) continue;
    transform_dims<R>(from, some, forward, factor, out);
  }
}

template <typename F>
void with_parts(DType complex, F f) {
  complex == DType::kComplex64 ? f(std::type_identity<float>()) : f(std::type_identity<double>());
}

Sizes wrapped(Dims dims, int64_t ndim) {
  Sizes result;
  for (int64_t dim : dims) result.push_back(shape_rules::wrap_dim(dim, ndim));
  return result;
}

}  // namespace

void fft_c2c(const Tensor& input, Dims dim, double scale, bool forward, Tensor& out) {
  if (out.numel() == 0) return;
  const Sizes dims = wrapped(dim, out.dim());
  with_parts(out.dtype(),
             [&]<typename R>(std::type_identity<R>) { transform_complex<R>(input, dims, forward, scale, out); });
}

void fft_r2c(const Tensor& input, Dims dim, double scale, Tensor& out) {
  if (out.numel() == 0) return;
  const Sizes dims = wrapped(dim, out.dim());
  const size_t several = std::min<size_t>(dims.size(), kMaxFftDims);
  const Dims last = Dims(dims).last(several);
  with_parts(out.dtype(), [&]<typename R>(std::type_identity<R>) {
    size_t done = several;
    if (!transform_by_library(FftKind::kRealToComplex, input, last, true, scale, out)) {
      done = 1;
      transform<R>(input, dims.back(), input.size(dims.back()), {FftPointFormat::kReal, FftPointFormat::kHalf}, true,
                   scale, out);
    }
    transform_complex<R>(out, Dims(dims).first(dims.size() - done), true, 1, out);
  });
}

void fft_c2r(const Tensor& input, Dims dim, double scale, int64_t, Tensor& out) {
  if (out.numel() == 0) return;
  const Sizes dims = wrapped(dim, out.dim());
  const Dims last = Dims(dims).last(1), others = Dims(dims).first(dims.size() - 1);
  with_parts(input.dtype(), [&]<typename R>(std::type_identity<R>) {
    Tensor x = input;
    if (!others.empty()) {
      x = empty(input.sizes(), input.dtype(), input.device());
      transform_complex<R>(input, others, false, 1, x);
    }
    if (transform_by_library(FftKind::kComplexToReal, x, last, false, scale, out)) return;
    transform<R>(x, dims.back(), out.size(dims.back()), {FftPointFormat::kHalf, FftPointFormat::kReal}, false, scale,
                 out);
  });
}

}  // namespace tt::cuda
