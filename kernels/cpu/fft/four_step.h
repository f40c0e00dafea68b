// FourStep: the discrete Fourier transform of one long line of rows * columns elements, as transforms of its columns, a
// multiplication by roots of unity, and transforms of its rows (the four-step algorithm). Each step reads and writes
// the line once and works on groups of columns or rows that fit the caches. Uses the intra-op threads.
//
// Element `row * columns + column` of the line is in `row` and `column`; element `row + rows * k` of the spectrum is
// element k of the transform of `row`. Between the steps the line is stored in the caller's array `blocks`, in which
// the elements of several rows are interleaved. All transforms are forward (see FftPlan).
//
// Immutable after construction and usable from any thread. Steps throw Cancelled, std::bad_alloc, and Error
// (kOutOfMemory) if the session has no room for the threads' buffers.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/fft/factored_roots.h"
#include "kernels/cpu/fft/fft_plan.h"

namespace tt::cpu {

template <typename R>
class FourStep {
 public:
  // The lines (columns or rows) [first, first + count). Element k of line first + l is at k * width + l; width >=
  // count.
  struct Lines {
    int64_t first, count, width;
    Split<R> elements;
  };
  using Visit = absl::FunctionRef<void(const Lines&)>;

  // Requires rows, columns >= kLongestVector. `columns` may not have a prime factor above kLargestRadix.
  FourStep(int64_t rows, int64_t columns);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  // The number of elements of `blocks`.
  int64_t blocks_size() const;
  // The bytes of the tables.
  size_t bytes() const;

  // Steps 1 to 3: transforms the columns that `read` stores, and multiplies. `read` must set the first `count` elements
  // of all rows, and may be called from several threads.
  void transform_columns(Visit read, R* blocks) const;
  // Step 4: transforms the rows and calls `write` with them, from several threads. Overwrites `blocks`.
  void transform_rows(R* blocks, Visit write) const;
  // Computes a circular convolution from transformed columns: transforms the rows, multiplies by a filter's transform,
  // and transforms back all but the columns. `filter` has been transformed by transform_filter().
  void convolve_rows(R* blocks, const R* filter) const;
  // Transforms the rows in place, for convolve_rows().
  void transform_filter(R* blocks) const;
  // Completes a convolution: transforms the columns back and calls `write` with them, from several threads.
  void restore_columns(R* blocks, Visit write) const;

 private:
  // Roots of unity by which a tile of transposed columns is multiplied.
  struct Factors;

  Split<R> block(R* blocks, int64_t number) const {
    R* elements = blocks + 2 * block_size_ * number;
    return {elements, elements + block_size_};
  }
  // Calls body(lines, buffers) for each group of up to `widest` of `lines` lines, in parallel. lines.elements is not
  // set; each of the arrays of `buffers` has `size` elements.
  void for_each_group(int64_t lines, int64_t widest, int64_t size,
                      absl::FunctionRef<void(Lines, FftBuffers<R>)> body) const;
  // Calls body(row, tile, factors) for each tile of the given columns, where `tile` is at that row of the block.
  template <typename F>
  void for_each_tile(const Lines& columns, R* blocks, F body) const;

  const FftPasses<R>& passes_;
  int64_t rows_, columns_;
  FftPlan<R> column_plan_, row_plan_;
  FactoredRoots roots_;
  int64_t columns_per_group_, rows_per_block_;
  int64_t column_size_, block_size_;  // elements of each array of a group of columns, and of a block
};

extern template class FourStep<float>;
extern template class FourStep<double>;

}  // namespace tt::cpu
