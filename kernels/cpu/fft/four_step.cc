#include "kernels/cpu/fft/four_step.h"

#include <algorithm>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "engine/memory/workspace_charge.h"

namespace tt::cpu {

namespace {

constexpr int64_t kRunBytes = 256;        // of adjacent pairs read or written at once, where the buffers fit the cache
constexpr int64_t kCacheBytes = 1 << 20;  // of a thread's buffers: a core's second-level cache
constexpr int64_t kFactorRows = 32;       // rows of a tile of factors; a multiple of every vector length

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The number of lines of length n to transform at once: a multiple of `lanes`.
template <typename R>
int64_t lines_at_once(int64_t n, int64_t lanes) {
  const auto element_bytes = static_cast<int64_t>(sizeof(R));
  const int64_t most = kCacheBytes / (4 * n * element_bytes), wanted = kRunBytes / (2 * element_bytes);
  return std::max(lanes, std::min(most, wanted) / lanes * lanes);
}

}  // namespace

// roots.at((column + i) * (row + j)) of a tile, as the product of rows[i] and tiles[j / lanes][i][j % lanes].
template <typename R>
struct FourStep<R>::Factors {
  Factors(const FourStep& plan, int64_t column) : plan(plan), column(column) {
    const int64_t lanes = plan.passes_.lanes;
    for (int64_t i = 0; i < lanes; ++i) {
      const int64_t at = column + i < plan.columns_ ? column + i : 0;  // columns past the end contain zeros
      for (int64_t j = 0; j < kFactorRows; ++j) {
        const Root w = plan.roots_.at(at * j);
        const int64_t element = (j / lanes * lanes + i) * lanes + j % lanes;
        re[element] = static_cast<R>(w.re);
        im[element] = static_cast<R>(w.im);
      }
    }
  }
  // Sets the row factors of the kFactorRows rows that start at `row`.
  void start(int64_t row) {
    for (int64_t i = 0; i < plan.passes_.lanes; ++i) {
      const int64_t at = column + i < plan.columns_ ? column + i : 0;
      const Root w = plan.roots_.at(at * row);
      row_re[i] = static_cast<R>(w.re);
      row_im[i] = static_cast<R>(w.im);
    }
  }
  Split<const R> of_rows() const { return {row_re, row_im}; }
  Split<const R> tile(int64_t row) const {
    const int64_t at = row % kFactorRows * plan.passes_.lanes;
    return {re + at, im + at};
  }

  const FourStep& plan;
  int64_t column;
  alignas(64) R re[kFactorRows * kLongestVector], im[kFactorRows * kLongestVector];
  R row_re[kLongestVector], row_im[kLongestVector];
};

template <typename R>
FourStep<R>::FourStep(int64_t rows, int64_t columns)
    : passes_(fft_passes<R>()),
      rows_(rows),
      columns_(columns),
      column_plan_(rows),
      row_plan_(columns),
      roots_(rows * columns),
      columns_per_group_(lines_at_once<R>(rows, passes_.lanes)),
      rows_per_block_(lines_at_once<R>(columns, passes_.lanes)),
      column_size_(
          std::max(column_plan_.buffer_size(columns_per_group_), round_up(rows, passes_.lanes) * columns_per_group_)),
      block_size_(round_up(columns, passes_.lanes) * rows_per_block_ + kFftPadding) {}

template <typename R>
int64_t FourStep<R>::blocks_size() const {
  return (rows_ + rows_per_block_ - 1) / rows_per_block_ * 2 * block_size_;
}

template <typename R>
size_t FourStep<R>::bytes() const {
  return column_plan_.bytes() + row_plan_.bytes() + roots_.bytes();
}

template <typename R>
void FourStep<R>::for_each_group(int64_t lines, int64_t widest, int64_t size,
                                 absl::FunctionRef<void(Lines, FftBuffers<R>)> body) const {
  const int64_t groups = (lines + widest - 1) / widest;
  const auto threads = static_cast<uint64_t>(std::min<int64_t>(groups, num_threads()));
  const WorkspaceCharge charge(threads * static_cast<uint64_t>(4 * size) * sizeof(R));
  parallel_for(groups, 1, [&](int64_t begin, int64_t end) {
    AlignedVector<R> memory(static_cast<size_t>(4 * size));
    for (int64_t g = begin; g < end && !cancel_requested(); ++g) {
      const int64_t first = g * widest, count = std::min(widest, lines - first);
      body({first, count, round_up(count, passes_.lanes), {}}, {memory.data(), size});
    }
  });
}

template <typename R>
template <typename F>
void FourStep<R>::for_each_tile(const Lines& columns, R* blocks, F body) const {
  const int64_t lanes = passes_.lanes;
  for (int64_t i = 0; i < columns.width; i += lanes) {
    Factors factors(*this, columns.first + i);
    for (int64_t row = 0; row < rows_; row += lanes) {
      if (row % kFactorRows == 0) factors.start(row);
      const int64_t number = row / rows_per_block_, first = number * rows_per_block_;
      const int64_t width = std::min(rows_per_block_, round_up(rows_ - first, lanes));
      const int64_t at = (columns.first + i) * width + row - first;
      const Split<R> tile = block(blocks, number);
      body(row, i, Split<R>{tile.re + at, tile.im + at}, width, factors);
    }
  }
}

template <typename R>
void FourStep<R>::transform_columns(Visit read, R* blocks) const {
  for_each_group(columns_, columns_per_group_, column_size_, [&](Lines columns, FftBuffers<R> buffers) {
    const int64_t width = columns.width;
    columns.elements = buffers.data();
    for (int64_t row = 0; width > columns.count && row < rows_; ++row) {
      std::fill(buffers.data().re + row * width + columns.count, buffers.data().re + (row + 1) * width, R(0));
      std::fill(buffers.data().im + row * width + columns.count, buffers.data().im + (row + 1) * width, R(0));
    }
    read(columns);
    const Split<R> z = column_plan_.run(buffers.data(), buffers.work(), width);
    const int64_t end = rows_ * width, rounded = round_up(rows_, passes_.lanes) * width;
    std::fill(z.re + end, z.re + rounded, R(0));
    std::fill(z.im + end, z.im + rounded, R(0));
    for_each_tile(columns, blocks, [&](int64_t row, int64_t i, Split<R> tile, int64_t stride, const Factors& factors) {
      const int64_t from = row * width + i;
      passes_.transpose_multiplied({z.re + from, z.im + from}, width, factors.of_rows(), factors.tile(row), tile,
                                   stride);
    });
  });
}

template <typename R>
void FourStep<R>::transform_rows(R* blocks, Visit write) const {
  for_each_group(rows_, rows_per_block_, block_size_, [&](Lines rows, FftBuffers<R> buffers) {
    rows.elements = row_plan_.run(block(blocks, rows.first / rows_per_block_), buffers.work(), rows.width);
    write(rows);
  });
}

template <typename R>
void FourStep<R>::transform_filter(R* blocks) const {
  transform_rows(blocks, [&](const Lines& rows) {
    const Split<R> to = block(blocks, rows.first / rows_per_block_);
    if (rows.elements.re == to.re) return;
    std::copy_n(rows.elements.re, columns_ * rows.width, to.re);
    std::copy_n(rows.elements.im, columns_ * rows.width, to.im);
  });
}

template <typename R>
void FourStep<R>::convolve_rows(R* blocks, const R* filter) const {
  for_each_group(rows_, rows_per_block_, block_size_, [&](Lines rows, FftBuffers<R> buffers) {
    const int64_t number = rows.first / rows_per_block_, size = columns_ * rows.width;
    const R* factors = filter + 2 * block_size_ * number;
    const Split<R> data = block(blocks, number), work = buffers.work();
    const Split<R> z = row_plan_.run(data, work, rows.width), other = z.re == data.re ? work : data;
    passes_.multiply(z, {factors, factors + block_size_}, size, z);
    const Split<R> result = row_plan_.run(z.swapped(), other.swapped(), rows.width).swapped();
    if (result.re == data.re) return;
    std::copy_n(result.re, size, data.re);
    std::copy_n(result.im, size, data.im);
  });
}

template <typename R>
void FourStep<R>::restore_columns(R* blocks, Visit write) const {
  for_each_group(columns_, columns_per_group_, column_size_, [&](Lines columns, FftBuffers<R> buffers) {
    const Split<R> data = buffers.data();
    for_each_tile(columns, blocks, [&](int64_t row, int64_t i, Split<R> tile, int64_t stride, const Factors& factors) {
      const int64_t to = row * columns.width + i;
      passes_.multiply_transposed(tile.swapped(), stride, factors.of_rows(), factors.tile(row),
                                  {data.re + to, data.im + to}, columns.width);
    });
    columns.elements = column_plan_.run(data, buffers.work(), columns.width).swapped();
    write(columns);
  });
}

template class FourStep<float>;
template class FourStep<double>;

}  // namespace tt::cpu
