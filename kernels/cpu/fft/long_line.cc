#include "kernels/cpu/fft/long_line.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/device/parallel.h"
#include "kernels/common/fft/fft_roots.h"

namespace tt::cpu {

namespace {

constexpr int64_t kSmoothBytes = 1 << 21;     // of a line's pairs, from which four steps are faster (measured)
constexpr int64_t kConvolvedBytes = 1 << 18;  // the same for a length with a large prime factor
constexpr int64_t kFewestLines = 32;          // rows or columns
constexpr int64_t kPart = 512;                // elements whose roots are computed at once
constexpr int64_t kGrain = 1 << 14;

bool is_smooth(int64_t n) { return n == 1 || !radices(n).empty(); }

// An estimate of the time per element of transforms of length n, of which several are computed at once.
double cost(int64_t n) {
  const auto length = static_cast<double>(n);
  double result = std::log2(length);
  if (!is_smooth(n)) {
    const double convolution = std::exp2(std::ceil(std::log2(2 * length - 1)));
    result = 2 * convolution / length * std::log2(convolution) + 4;
  }
  // Lines that exceed the caches.
  return result + 4 * std::max(0.0, std::log2(length / 4096));
}

// The part of a row of `lines` that is within the first n elements of a line with `columns` columns.
template <typename Lines>
struct RowPart {
  RowPart(const Lines& lines, int64_t row, int64_t columns, int64_t n)
      : element(row * columns + lines.first),
        count(std::clamp<int64_t>(n - element, 0, lines.count)),
        at(row * lines.width) {}
  int64_t element, count, at;  // the first element, the number of elements, and the index of the first in `lines`
};

}  // namespace

template <typename R>
bool LongLine<R>::is_faster(int64_t n) {
  if (n < kFewestLines * kFewestLines || n > int64_t{1} << 40) return false;
  const int64_t bytes = 2 * n * static_cast<int64_t>(sizeof(R));
  return bytes >= kSmoothBytes || (bytes >= kConvolvedBytes && !is_smooth(n));
}

// The best product of rows and columns that equals n.
template <typename R>
std::optional<typename LongLine<R>::Shape> LongLine<R>::product(int64_t n) {
  std::optional<Shape> best;
  double lowest = std::numeric_limits<double>::infinity();
  for (int64_t d = kFewestLines; d * d <= n; ++d) {
    if (n % d != 0) continue;
    for (const auto [rows, columns] : {std::pair{d, n / d}, std::pair{n / d, d}}) {
      if (!is_smooth(columns)) continue;
      const double estimate = cost(rows) + cost(columns);
      if (estimate >= lowest) continue;
      lowest = estimate;
      best = Shape{rows, columns, false};
    }
  }
  return best;
}

template <typename R>
typename LongLine<R>::Shape LongLine<R>::shape(int64_t n) {
  // The shortest convolution whose rows and columns are about equal and divisible by all vector lengths.
  Shape convolution{0, 0, true};
  double shortest = std::numeric_limits<double>::infinity();
  std::vector<int64_t> smooth;  // multiples of kFewestLines with the factors 2, 3 and 5
  const double root = std::sqrt(2 * static_cast<double>(n));
  for (int64_t twos = kFewestLines; twos < 4 * root; twos *= 2) {
    for (int64_t threes = twos; threes < 4 * root; threes *= 3) {
      for (int64_t fives = threes; fives < 4 * root; fives *= 5) smooth.push_back(fives);
    }
  }
  std::sort(smooth.begin(), smooth.end());
  for (int64_t rows : smooth) {
    const auto columns = std::lower_bound(smooth.begin(), smooth.end(), (2 * n - 2) / rows + 1);
    if (columns == smooth.end() || std::max(rows, *columns) > 3 * std::min(rows, *columns)) continue;
    const double length = static_cast<double>(rows) * static_cast<double>(*columns);
    if (length >= shortest) continue;
    shortest = length;
    convolution.rows = rows;
    convolution.columns = *columns;
  }
  const std::optional<Shape> direct = product(n);
  if (!direct) return convolution;
  const double ratio = shortest / static_cast<double>(n);
  const bool is_cheaper =
      cost(direct->rows) + cost(direct->columns) <= 2 * ratio * (cost(convolution.rows) + cost(convolution.columns));
  return is_cheaper ? *direct : convolution;
}

template <typename R>
LongLine<R>::LongLine(int64_t n, bool for_reals) : LongLine(n, for_reals, shape(n)) {}

template <typename R>
LongLine<R>::LongLine(int64_t n, bool for_reals, Shape shape)
    : n_(n), passes_(fft_passes<R>()), steps_(shape.rows, shape.columns) {
  if (for_reals) real_roots_.emplace(2 * n);
  if (shape.convolution) plan_convolution();
}

template <typename R>
size_t LongLine<R>::bytes() const {
  const size_t roots = real_roots_ ? real_roots_->bytes() : 0;
  return steps_.bytes() + roots + (chirp_.size() + filter_.size()) * sizeof(R);
}

template <typename R>
double LongLine<R>::creation_bytes(int64_t n) {
  const Shape s = shape(n);
  const double size = static_cast<double>(s.rows) * static_cast<double>(s.columns);
  const double roots = 8 * sizeof(Root) * std::sqrt(2 * std::max(size, static_cast<double>(n)));
  const double lines = FftPlan<R>::creation_bytes(s.rows) + FftPlan<R>::creation_bytes(s.columns);
  // The filter, its padding, and the factors.
  const double convolution = s.convolution ? (2.5 * size + 2 * static_cast<double>(n)) * sizeof(R) : 0;
  return roots + lines + convolution;
}

template <typename R>
void LongLine<R>::run(const R* from, R* to, bool swapped, R scale, R* workspace) const {
  if (!filter_.empty()) return run_convolution(from, to, swapped, scale, workspace);
  using Lines = typename FourStep<R>::Lines;
  const int64_t rows = steps_.rows(), columns = steps_.columns();
  steps_.transform_columns(
      [&](const Lines& lines) {
        const Split<R> parts = swapped ? lines.elements.swapped() : lines.elements;
        for (int64_t row = 0; row < rows; ++row) {
          const int64_t at = row * lines.width;
          passes_.split_pairs(from + 2 * (row * columns + lines.first), lines.count, {parts.re + at, parts.im + at});
        }
      },
      workspace);
  steps_.transform_rows(workspace, [&](const Lines& lines) {
    const Split<R> parts = swapped ? lines.elements.swapped() : lines.elements;
    for (int64_t k = 0; k < columns; ++k) {
      const int64_t at = k * lines.width;
      passes_.join_pairs({parts.re + at, parts.im + at}, lines.count, scale, to + 2 * (k * rows + lines.first));
    }
  });
}

template <typename R>
void LongLine<R>::plan_convolution() {
  const int64_t rows = steps_.rows(), columns = steps_.columns(), size = rows * columns;
  chirp_.resize(static_cast<size_t>(2 * n_));
  filter_.resize(static_cast<size_t>(steps_.blocks_size()));
  R *const re = chirp_.data(), *const im = re + n_;
  const FactoredRoots roots(2 * n_);
  parallel_for(n_, kGrain, [&](int64_t begin, int64_t end) {
    auto square = static_cast<int64_t>(static_cast<unsigned __int128>(begin) * static_cast<uint64_t>(begin) %
                                       static_cast<uint64_t>(2 * n_));
    for (int64_t k = begin; k < end; ++k) {
      const Root w = roots.at(square);
      re[k] = static_cast<R>(w.re);
      im[k] = static_cast<R>(w.im);
      square += 2 * k + 1;  // at most 2 n - 1, like `square`
      if (square >= 2 * n_) square -= 2 * n_;
    }
  });
  const R scale = R(1) / static_cast<R>(size);
  using Lines = typename FourStep<R>::Lines;
  steps_.transform_columns(
      [&](const Lines& lines) {
        for (int64_t row = 0; row < rows; ++row) {
          const int64_t first = row * columns + lines.first;
          R *const to_re = lines.elements.re + row * lines.width, *const to_im = lines.elements.im + row * lines.width;
          for (int64_t l = 0; l < lines.count; ++l) {
            const int64_t k = std::min(first + l, size - first - l);
            to_re[l] = k < n_ ? re[k] * scale : R(0);
            to_im[l] = k < n_ ? -im[k] * scale : R(0);
          }
        }
      },
      filter_.data());
  steps_.transform_filter(filter_.data());
}

template <typename R>
void LongLine<R>::run_convolution(const R* from, R* to, bool swapped, R scale, R* workspace) const {
  using Lines = typename FourStep<R>::Lines;
  const int64_t rows = steps_.rows(), columns = steps_.columns();
  const Split<const R> chirp{chirp_.data(), chirp_.data() + n_};
  steps_.transform_columns(
      [&](const Lines& lines) {
        for (int64_t row = 0; row < rows; ++row) {
          const RowPart<Lines> part(lines, row, columns, n_);
          const Split<R> z{lines.elements.re + part.at, lines.elements.im + part.at};
          if (part.count > 0) {
            passes_.split_pairs(from + 2 * part.element, part.count, swapped ? z.swapped() : z);
            passes_.multiply(z, {chirp.re + part.element, chirp.im + part.element}, part.count, z);
          }
          std::fill(z.re + part.count, z.re + lines.width, R(0));
          std::fill(z.im + part.count, z.im + lines.width, R(0));
        }
      },
      workspace);
  steps_.convolve_rows(workspace, filter_.data());
  steps_.restore_columns(workspace, [&](const Lines& lines) {
    for (int64_t row = 0; row < rows; ++row) {
      const RowPart<Lines> part(lines, row, columns, n_);
      if (part.count == 0) return;
      const Split<R> z{lines.elements.re + part.at, lines.elements.im + part.at};
      passes_.multiply(z, {chirp.re + part.element, chirp.im + part.element}, part.count, z);
      passes_.join_pairs(swapped ? z.swapped() : z, part.count, scale, to + 2 * part.element);
    }
  });
}

template <typename R>
void LongLine<R>::for_each_part(absl::FunctionRef<void(int64_t, int64_t, Split<const R>)> body) const {
  parallel_for((n_ - 1) / 2, kGrain, [&](int64_t begin, int64_t end) {
    R re[kPart], im[kPart];
    for (int64_t first = begin; first < end; first += kPart) {
      const int64_t count = std::min(kPart, end - first);
      real_roots_->copy(first + 1, count, Split<R>{re, im});
      body(first + 1, count, {re, im});
    }
  });
}

template <typename R>
void LongLine<R>::spectrum_of_reals(R* pairs, R scale) const {
  for_each_part([&](int64_t first, int64_t count, Split<const R> roots) {
    R *const low = pairs + 2 * first, *const high = pairs + 2 * (n_ - first);
    passes_.pairs_of_spectrum(low, high, roots, count, scale, low, high);
  });
  if (n_ % 2 == 0) {  // the element in the middle
    pairs[n_] *= scale;
    pairs[n_ + 1] *= -scale;
  }
  const R re = pairs[0], im = pairs[1];
  pairs[0] = (re + im) * scale;
  pairs[2 * n_] = (re - im) * scale;
  pairs[1] = pairs[2 * n_ + 1] = 0;
}

template <typename R>
void LongLine<R>::reals_from_spectrum(const R* spectrum, R* pairs) const {
  for_each_part([&](int64_t first, int64_t count, Split<const R> roots) {
    const int64_t low = 2 * first, high = 2 * (n_ - first);
    passes_.pairs_of_reals(spectrum + low, spectrum + high, roots, count, pairs + low, pairs + high);
  });
  if (n_ % 2 == 0) {
    pairs[n_] = 2 * spectrum[n_];
    pairs[n_ + 1] = -2 * spectrum[n_ + 1];
  }
  pairs[0] = spectrum[0] + spectrum[2 * n_];
  pairs[1] = spectrum[0] - spectrum[2 * n_];
}

template class LongLine<float>;
template class LongLine<double>;

}  // namespace tt::cpu
