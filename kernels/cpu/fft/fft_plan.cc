#include "kernels/cpu/fft/fft_plan.h"

#include <algorithm>

#include "kernels/common/fft/fft_roots.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

namespace {

// y = x * w for n rows of `lines` elements. w has one element per row.
template <typename R>
TT_CLONES void multiply_rows(const R* xr, const R* xi, const R* wr, const R* wi, int64_t n, int64_t lines, R* yr,
                             R* yi) {
  for (int64_t k = 0; k < n; ++k) {
    const R c = wr[k], s = wi[k];
    for (int64_t l = k * lines; l < (k + 1) * lines; ++l) {
      const R re = xr[l], im = xi[l];
      yr[l] = re * c - im * s;
      yi[l] = re * s + im * c;
    }
  }
}

// The radices of a length whose prime factors are all small, starting with eights and fours.
std::vector<int64_t> eights_first(int64_t n) {
  int64_t twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  std::vector<int64_t> result;
  while (twos >= 3 && twos != 4) {
    result.push_back(8);
    twos -= 3;
  }
  for (; twos >= 2; twos -= 2) result.push_back(4);
  if (twos == 1) result.push_back(2);
  const std::vector<int64_t> others = radices(n);
  result.insert(result.end(), others.begin(), others.end());
  return result;
}

}  // namespace

// exp(-2 pi i k / n) for all k < n.
template <typename R>
class FftPlan<R>::RootTable {
 public:
  explicit RootTable(int64_t n) : roots_(static_cast<size_t>(n)) {
    for (int64_t k = 0; 2 * k <= n; ++k) {
      const Root root = root_of_unity(k, n, true);
      roots_[static_cast<size_t>(k)] = root;
      if (k > 0) roots_[static_cast<size_t>(n - k)] = {root.re, -root.im};
    }
  }
  // exp(-2 pi i k / part), where part divides n.
  Root at(int64_t k, int64_t part) const {
    const auto n = static_cast<int64_t>(roots_.size());
    return roots_[static_cast<size_t>(k % part * (n / part))];
  }

 private:
  std::vector<Root> roots_;
};

// Bluestein's algorithm: X[k] = w[k] sum over j of (x[j] w[j]) conj(w[k - j]) with w[k] = exp(-pi i k^2 / n). The sum
// is a convolution, computed by transforms whose length is a power of two.
template <typename R>
struct FftPlan<R>::Bluestein {
  explicit Bluestein(int64_t size) : size(size), plan(size) {}

  int64_t size;
  FftPlan plan;
  std::vector<R> re, im;                // parts of w
  std::vector<R> filter_re, filter_im;  // parts of the transform of conj(w), divided by `size`
};

template <typename R>
FftPlan<R>::FftPlan(int64_t n, bool for_reals) : n_(n), passes_(fft_passes<R>()) {
  if (for_reals) {
    roots_.resize(static_cast<size_t>(2 * (n + 1)));
    for (int64_t k = 0; k <= n; ++k) {
      const Root root = root_of_unity(k, 2 * n, true);
      roots_[static_cast<size_t>(k)] = static_cast<R>(root.re);
      roots_[static_cast<size_t>(n + 1 + k)] = static_cast<R>(root.im);
    }
  }
  if (n == 1) return;
  if (!radices(n).empty()) {
    const RootTable root_table(n);
    int64_t width = 1;
    for (int64_t radix : eights_first(n)) {
      stages_.push_back(stage(root_table, radix, width, false));
      width *= radix;
    }
    plan_line(root_table);
    return;
  }
  int64_t size = 1;
  while (size < 2 * n - 1) size *= 2;
  bluestein_ = std::make_unique<Bluestein>(size);
  Bluestein& c = *bluestein_;
  c.re.resize(static_cast<size_t>(n));
  c.im.resize(static_cast<size_t>(n));
  const auto elements = static_cast<size_t>(c.plan.buffer_size(1));
  std::vector<R> fr(elements), fi(elements), wr(elements), wi(elements);
  for (int64_t k = 0; k < n; ++k) {
    const Root w = bluestein_factor(k, n, true);
    c.re[k] = static_cast<R>(w.re);
    c.im[k] = static_cast<R>(w.im);
    const int64_t mirror = k == 0 ? 0 : size - k;
    fr[k] = fr[mirror] = static_cast<R>(w.re / static_cast<double>(size));
    fi[k] = fi[mirror] = static_cast<R>(-w.im / static_cast<double>(size));
  }
  const Split<R> filter = c.plan.run({fr.data(), fi.data()}, {wr.data(), wi.data()}, 1);
  c.filter_re.assign(filter.re, filter.re + size);
  c.filter_im.assign(filter.im, filter.im + size);
}

template <typename R>
FftPlan<R>::~FftPlan() = default;

template <typename R>
size_t FftPlan<R>::bytes() const {
  size_t elements = roots_.size();
  for (const std::vector<Stage>* stages : {&stages_, &line_stages_}) {
    for (const Stage& s : *stages) elements += s.twiddles.size() + s.radix_roots.size();
  }
  if (!bluestein_) return elements * sizeof(R);
  const Bluestein& c = *bluestein_;
  elements += c.re.size() + c.im.size() + c.filter_re.size() + c.filter_im.size();
  return elements * sizeof(R) + c.plan.bytes();
}

template <typename R>
double FftPlan<R>::creation_bytes(int64_t n) {
  // Per element: a root in double, up to 6 numbers of the roots and of the stages' twiddles.
  const double direct = sizeof(Root) + 6 * sizeof(R);
  if (n == 1 || !radices(n).empty()) return static_cast<double>(n) * direct;
  double size = 1;
  while (size < 2 * static_cast<double>(n) - 1) size *= 2;
  return size * (direct + 8 * sizeof(R));  // with the filter, its buffers and w
}

template <typename R>
bool FftPlan<R>::vectorises_line() const {
  return bluestein_ ? bluestein_->plan.vectorises_line() : !line_stages_.empty();
}

// Returns the stage that follows stages whose radices have the product `width`.
template <typename R>
typename FftPlan<R>::Stage FftPlan<R>::stage(const RootTable& root_table, int64_t radix, int64_t width,
                                             bool shuffled) const {
  const int64_t left = n_ / width, rest = left / radix;
  Stage s{radix, width, rest, shuffled, {}, {}};
  if (shuffled) {
    const int64_t lanes = passes_.lanes, vectors = (rest * width + lanes - 1) / lanes;
    s.twiddles.reserve(static_cast<size_t>(2 * vectors * (radix - 1) * lanes));
    for (int64_t v = 0; v < vectors; ++v) {
      for (int64_t t = 1; t < radix; ++t) {
        for (bool imaginary : {false, true}) {
          for (int64_t lane = 0; lane < lanes; ++lane) {
            const Root w = root_table.at((v * lanes + lane) / width * t, left);
            s.twiddles.push_back(static_cast<R>(imaginary ? w.im : w.re));
          }
        }
      }
    }
  } else {
    s.twiddles.reserve(static_cast<size_t>(2 * rest * (radix - 1)));
    for (int64_t k = 0; k < rest; ++k) {
      for (int64_t t = 1; t < radix; ++t) {
        const Root w = root_table.at(k * t, left);
        s.twiddles.push_back(static_cast<R>(w.re));
        s.twiddles.push_back(static_cast<R>(w.im));
      }
    }
  }
  for (int64_t j = 0; j < radix; ++j) {
    const Root w = root_table.at(j, radix);
    s.radix_roots.push_back(static_cast<R>(w.re));
    s.radix_roots.push_back(static_cast<R>(w.im));
  }
  return s;
}

// Plans the stages for a single line. A stage that is narrower than a vector shuffles its elements, which requires that
// its width divides the number of lanes.
template <typename R>
void FftPlan<R>::plan_line(const RootTable& root_table) {
  const int64_t lanes = passes_.lanes;
  if (n_ % lanes != 0 || n_ < 8 * lanes) return;
  int64_t width = 1;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const int64_t radix = stages_[i].radix;
    const bool last = i + 1 == stages_.size(), shuffled = width < lanes;
    if (shuffled && (last || radix > 8 || radix % 2 != 0)) {
      line_stages_.clear();
      return;
    }
    line_stages_.push_back(shuffled ? stage(root_table, radix, width, true) : stages_[i]);
    width *= radix;
  }
  for (const Stage& s : line_stages_) {
    line_passes_.push_back({s.radix, s.width, s.rest, s.twiddles.data(), s.radix_roots.data()});
  }
}

template <typename R>
int64_t FftPlan<R>::buffer_size(int64_t lines) const {
  const int64_t elements = (bluestein_ ? bluestein_->size : n_) * lines + kFftPadding;
  return (elements + kLongestVector - 1) / kLongestVector * kLongestVector;
}

// Whether the first pass of a single line can read interleaved pairs.
template <typename R>
bool FftPlan<R>::reads_pairs() const {
  return !line_passes_.empty() && line_passes_[0].rest % passes_.lanes == 0;
}

namespace {

// Runs passes [first, last). Inlined, so that the pointers of a short line stay in registers.
template <typename R>
__attribute__((always_inline)) inline Split<R> run_passes(const FftPasses<R>& passes, const FftPass<R>* first,
                                                          const FftPass<R>* last, Split<R> data, Split<R> work) {
  for (; first != last; ++first) {
    (first->width < passes.lanes ? passes.shuffled : passes.wide)(*first, data, work);
    std::swap(data, work);
  }
  return data;
}

}  // namespace

template <typename R>
Split<R> FftPlan<R>::run(Split<R> data, Split<R> work, int64_t lines) const {
  if (bluestein_) return run_bluestein(data, work, lines);
  const FftPass<R>* passes = line_passes_.data();
  if (lines == 1 && passes) return run_passes(passes_, passes, passes + line_passes_.size(), data, work);
  for (const Stage& s : stages_) {
    passes_.wide({s.radix, s.width * lines, s.rest, s.twiddles.data(), s.radix_roots.data()}, data, work);
    std::swap(data, work);
  }
  return data;
}

template <typename R>
Split<R> FftPlan<R>::run_from_pairs(const R* pairs, FftBuffers<R> buffers) const {
  if (!reads_pairs()) {
    passes_.split_pairs(pairs, n_, buffers.data());
    return run(buffers.data(), buffers.work(), 1);
  }
  const FftPass<R>* passes = line_passes_.data();
  passes_.shuffled_from_pairs(passes[0], pairs, false, buffers.work());
  return run_passes(passes_, passes + 1, passes + line_passes_.size(), buffers.work(), buffers.data());
}

template <typename R>
void FftPlan<R>::run_to_pairs(FftBuffers<R> buffers, R* pairs, bool swapped, R scale) const {
  if (line_passes_.empty()) {
    const Split<R> z = run(buffers.data(), buffers.work(), 1);
    passes_.join_pairs(swapped ? z.swapped() : z, n_, scale, pairs);
    return;
  }
  const FftPass<R>*first = line_passes_.data(), *last = first + line_passes_.size() - 1;
  const Split<R> z = run_passes(passes_, first, last, buffers.data(), buffers.work());
  passes_.wide_to_pairs(*last, z, pairs, swapped, scale);
}

template <typename R>
void FftPlan<R>::run_pairs(const R* from, R* to, bool swapped, R scale, FftBuffers<R> buffers) const {
  if (!reads_pairs()) {
    passes_.split_pairs(from, n_, swapped ? buffers.data().swapped() : buffers.data());
    run_to_pairs(buffers, to, swapped, scale);
    return;
  }
  const FftPass<R>*first = line_passes_.data(), *last = first + line_passes_.size() - 1;
  passes_.shuffled_from_pairs(*first, from, swapped, buffers.work());
  const Split<R> z = run_passes(passes_, first + 1, last, buffers.work(), buffers.data());
  passes_.wide_to_pairs(*last, z, to, swapped, scale);
}

template <typename R>
Split<R> FftPlan<R>::run_bluestein(Split<R> data, Split<R> work, int64_t lines) const {
  const Bluestein& c = *bluestein_;
  const auto multiply = [&](Split<R> x, const std::vector<R>& re, const std::vector<R>& im, int64_t n) {
    if (lines == 1)
      passes_.multiply(x, {re.data(), im.data()}, n, x);
    else
      multiply_rows(x.re, x.im, re.data(), im.data(), n, lines, x.re, x.im);
  };
  multiply(data, c.re, c.im, n_);
  std::fill(data.re + n_ * lines, data.re + c.size * lines, R(0));
  std::fill(data.im + n_ * lines, data.im + c.size * lines, R(0));
  const Split<R> spectrum = c.plan.run(data, work, lines);
  multiply(spectrum, c.filter_re, c.filter_im, c.size);
  const Split<R> other = spectrum.re == data.re ? work : data;
  const Split<R> result = c.plan.run(spectrum.swapped(), other.swapped(), lines).swapped();
  multiply(result, c.re, c.im, n_);
  return result;
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace tt::cpu
