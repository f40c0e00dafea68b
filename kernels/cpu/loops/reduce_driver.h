// reduce: runs a reduction over a plan, in parallel.
//
// A reduction R is a value with
//   using Value;       float, double, int64_t or uint8_t: the type of input blocks; or BFloat16, for bfloat16 only
//   using Total;       the state of one output; plain data
//   kRows              maximum number of rows that columns() accepts
//   kRawBytes          whether one-byte dtypes may be read as uint8_t without conversion
//   Total init() const;
//   void block(Total&, const Value* x, int64_t n, int64_t position) const;
//     Adds n <= kLongestRow contiguous elements. `position` is the first element's index along the reduction.
//   void columns(Total*, const Value* x, int64_t stride, int64_t rows, int64_t cols, int64_t position) const;
//     Adds rows <= kRows rows of cols <= kTileColumns elements; column j belongs to total j.
//   void merge(Total&, const Total& later) const;
//
// The partitioning of a long reduction depends only on its sizes, never on the number of threads, so that the same
// input gives the same bits on every machine.
#pragma once

#include <absl/functional/function_ref.h>

#include <algorithm>
#include <vector>

#include "engine/device/parallel.h"
#include "kernels/common/reduce/reduce_plan.h"
#include "kernels/cpu/loops/block_source.h"
#include "kernels/cpu/loops/strided_block.h"

namespace tt::cpu {

inline constexpr int64_t kLongestRow = 16384;
inline constexpr int64_t kTileColumns = 1024;

template <typename R>
class ReduceRun {
 public:
  using Value = typename R::Value;
  using Total = typename R::Total;

  // With a source, `input` has no data: it describes what the source computes, and is contiguous and of type Value.
  ReduceRun(const R& reduction, const Tensor& input, const ReducePlan& plan, const BlockSource* source)
      : reduction_(reduction),
        plan_(plan),
        source_(source),
        inner_(plan.reduced.back()),
        data_(static_cast<const char*>(input.data())),
        dtype_(input.dtype()),
        item_(static_cast<int64_t>(item_size(dtype_))),
        direct_(is_stored_as<Value>(dtype_) || (R::kRawBytes && sizeof(Value) == 1 && item_ == 1)) {
    if (plan.kept.empty()) return;
    column_ = plan.kept.back();
    bool columns_are_closer = column_.stride < inner_.stride;
    bool rows_are_tiny = inner_.size < 8 && column_.size > inner_.size;
    if (columns_are_closer || rows_are_tiny) {
      int64_t most = direct_ && column_.stride == 1 ? kTileColumns : kLoaded / R::kRows;
      width_ = std::min(most, column_.size);
    }
  }

  // Calls finish(first, totals, n) when outputs [first, first + n) are complete. Not a template parameter: every result
  // of a reduction would instantiate the loops again.
  using Finish = absl::FunctionRef<void(int64_t first, const Total* totals, int64_t n)>;
  void run(Finish finish) const {
    if (plan_.outputs == 0) return;
    const int64_t spans = by_columns() ? (column_.size + width_ - 1) / width_ : 0;
    const int64_t items = by_columns() ? plan_.outputs / column_.size * spans : plan_.outputs;
    const int64_t work = std::max<int64_t>(plan_.count * std::max<int64_t>(width_, 1), 1);  // elements per item
    if (items < kEnoughItems && work >= 2 * kPiece) {
      const int64_t pieces = std::min(work / kPiece, kMaxPieces);
      for (int64_t i = 0; i < items; ++i) run_item_in_pieces(i, spans, pieces, finish);
      return;
    }
    auto body = [&](int64_t begin, int64_t end) {
      if (by_columns()) {
        for (int64_t i = begin; i < end; ++i) run_item(i, spans, finish);
      } else {
        run_outputs(begin, end, finish);
      }
    };
    if (items * work <= kGrain) {
      body(0, items);
    } else {
      parallel_for(items, std::max<int64_t>(kGrain / work, 1), body);
    }
  }

 private:
  static constexpr int64_t kGrain = 128 * 1024;   // minimum elements per thread: about 8 us of the fastest reduction
  static constexpr int64_t kPiece = 256 * 1024;   // minimum elements per piece of a split reduction
  static constexpr int64_t kMaxPieces = 64;       // limits the memory for the pieces' totals
  static constexpr int64_t kPieceAlignment = 64;  // pieces start at multiples of kPieceAlignment elements
  static constexpr int64_t kEnoughItems = 16;     // if there are at least this many items, none is split
  static constexpr int64_t kTotals = 128;         // outputs of a reduction by rows that are finished together
  static constexpr int64_t kLoadedRow = 1024;     // elements per converted row
  static constexpr int64_t kLoaded = 8192;        // elements per converted tile

  // Uninitialised memory: BFloat16's constructor would zero the buffer for each row, even if it is not used.
  template <int64_t kElements>
  struct UninitializedBuffer {
    alignas(64) char bytes[kElements * sizeof(Value)];
    Value* elements() { return reinterpret_cast<Value*>(bytes); }
  };

  bool by_columns() const { return width_ > 0; }

  // The maximum number of elements read at a time along a row.
  int64_t longest() const { return direct_ && inner_.stride == 1 ? kLongestRow : kLoadedRow; }

  const Value* read(int64_t offset, int64_t stride, int64_t n, Value* buffer) const {
    const char* at = data_ + offset * item_;
    if (direct_ && (stride == 1 || n == 1)) return reinterpret_cast<const Value*>(at);
    load_block(buffer, at, dtype_, stride, n);
    return buffer;
  }

  // Calls body(offset, position, n) for runs of the innermost reduced extent that cover positions [begin, end).
  template <typename Body>
  void for_each_run(int64_t begin, int64_t end, int64_t longest, Body body) const {
    if (begin == end) return;
    // Fast path: for a short row, an ExtentIterator would take longer than the reduction.
    if (plan_.reduced.size() == 1) {
      for (int64_t position = begin, n; position < end; position += n) {
        n = std::min(end - position, longest);
        body(position * inner_.stride, position, n);
      }
      return;
    }
    ExtentIterator outer(absl::MakeConstSpan(plan_.reduced).first(plan_.reduced.size() - 1), begin / inner_.size);
    int64_t at = begin % inner_.size;
    for (int64_t position = begin; position < end;) {
      int64_t n = std::min({inner_.size - at, end - position, longest});
      body(outer.offset() + at * inner_.stride, position, n);
      position += n;
      at += n;
      if (at == inner_.size) {
        at = 0;
        outer.next();
      }
    }
  }

  // A function of its own, because of the size of its buffer.
  [[gnu::noinline]] void reduce_computed_row(Total& total, int64_t base, int64_t begin, int64_t end) const {
    if constexpr (requires { R::kChunk; }) {  // while the values are in the L1 cache
      UninitializedBuffer<R::kChunk> memory;
      for_each_run(begin, end, kLongestRow, [&](int64_t offset, int64_t, int64_t n) {
        reduction_.block_of(total, n, [&](int64_t first, int64_t count) {
          source_->read(base + offset + first, count, memory.elements());
          return memory.elements();
        });
      });
    } else {
      UninitializedBuffer<kLongestRow> memory;
      for_each_run(begin, end, kLongestRow, [&](int64_t offset, int64_t position, int64_t n) {
        source_->read(base + offset, n, memory.elements());
        reduction_.block(total, memory.elements(), n, position);
      });
    }
  }

  void reduce_row(Total& total, int64_t base, int64_t begin, int64_t end) const {
    if (source_ != nullptr) return reduce_computed_row(total, base, begin, end);
    UninitializedBuffer<kLoadedRow> memory;
    Value* buffer = memory.elements();
    for_each_run(begin, end, longest(), [&](int64_t offset, int64_t position, int64_t n) {
      reduction_.block(total, read(base + offset, inner_.stride, n, buffer), n, position);
    });
  }

  void reduce_computed_columns(Total* totals, int64_t base, int64_t cols, int64_t begin, int64_t end) const {
    constexpr int64_t kWidth = kLoaded / R::kRows;  // a column's total does not depend on it
    UninitializedBuffer<kLoaded> memory;
    Value* const buffer = memory.elements();
    for_each_run(begin, end, R::kRows, [&](int64_t offset, int64_t position, int64_t rows) {
      for (int64_t first = 0; first < cols; first += kWidth) {
        const int64_t width = std::min(kWidth, cols - first);
        for (int64_t r = 0; r < rows; ++r) {
          source_->read(base + offset + r * inner_.stride + first, width, buffer + r * width);
        }
        reduction_.columns(totals + first, buffer, width, rows, width, position);
      }
    });
  }

  void reduce_columns(Total* totals, int64_t base, int64_t cols, int64_t begin, int64_t end) const {
    if (source_ != nullptr) return reduce_computed_columns(totals, base, cols, begin, end);
    UninitializedBuffer<kLoaded> memory;
    Value* buffer = memory.elements();
    bool in_place = direct_ && column_.stride == 1;
    for_each_run(begin, end, R::kRows, [&](int64_t offset, int64_t position, int64_t rows) {
      const char* at = data_ + (base + offset) * item_;
      if (in_place) {
        reduction_.columns(totals, reinterpret_cast<const Value*>(at), inner_.stride, rows, cols, position);
        return;
      }
      for (int64_t r = 0; r < rows; ++r) {
        load_block(buffer + r * cols, at + r * inner_.stride * item_, dtype_, column_.stride, cols);
      }
      reduction_.columns(totals, buffer, cols, rows, cols, position);
    });
  }

  void run_outputs(int64_t begin, int64_t end, Finish finish) const {
    Total totals[kTotals];
    ExtentIterator at(plan_.kept, begin);
    for (int64_t first = begin; first < end; first += kTotals) {
      int64_t n = std::min(kTotals, end - first);
      for (int64_t i = 0; i < n; ++i, at.next()) {
        totals[i] = reduction_.init();
        reduce_row(totals[i], at.offset(), 0, plan_.count);
      }
      finish(first, totals, n);
    }
  }

  // An item of a reduction by columns: `cols` adjacent columns at one position of the outer extents. `first` is the
  // first column's output, `base` its offset in the input.
  struct Tile {
    int64_t first, base, cols;
  };
  Tile tile(int64_t item, int64_t spans) const {
    int64_t outer = item / spans, from = item % spans * width_;
    ExtentIterator at(absl::MakeConstSpan(plan_.kept).first(plan_.kept.size() - 1), outer);
    return {outer * column_.size + from, at.offset() + from * column_.stride, std::min(width_, column_.size - from)};
  }

  void run_item(int64_t item, int64_t spans, Finish finish) const {
    Total totals[kTileColumns];
    Tile t = tile(item, spans);
    std::fill_n(totals, t.cols, reduction_.init());
    reduce_columns(totals, t.base, t.cols, 0, plan_.count);
    finish(t.first, totals, t.cols);
  }

  void run_item_in_pieces(int64_t item, int64_t spans, int64_t pieces, Finish finish) const {
    Tile t = by_columns() ? tile(item, spans) : Tile{item, ExtentIterator(plan_.kept, item).offset(), 1};
    // The allocation is small compared with at least kPiece elements of work per piece.
    std::vector<Total> totals(pieces * t.cols, reduction_.init());
    parallel_for(pieces, 1, [&](int64_t from, int64_t to) {
      for (int64_t p = from; p < to; ++p) {
        int64_t begin = piece_start(p, pieces), end = piece_start(p + 1, pieces);
        if (by_columns()) {
          reduce_columns(&totals[p * t.cols], t.base, t.cols, begin, end);
        } else {
          reduce_row(totals[p], t.base, begin, end);
        }
      }
    });
    for (int64_t p = 1; p < pieces; ++p) {
      for (int64_t j = 0; j < t.cols; ++j) reduction_.merge(totals[j], totals[p * t.cols + j]);
    }
    finish(t.first, totals.data(), t.cols);
  }

  // The start of piece p, aligned so that no load straddles cache lines.
  int64_t piece_start(int64_t p, int64_t pieces) const {
    return p == pieces ? plan_.count : (plan_.count / pieces * p) & ~int64_t{kPieceAlignment - 1};
  }

  const R& reduction_;
  const ReducePlan& plan_;
  const BlockSource* const source_;  // null: the elements are at data_
  Extent inner_;
  Extent column_{1, 0};
  const char* data_;
  DType dtype_;
  int64_t item_;
  bool direct_;
  int64_t width_ = 0;  // number of columns processed at a time; 0 if the reduction is by rows
};

template <typename R>
void reduce(const R& reduction, const Tensor& input, const ReducePlan& plan, typename ReduceRun<R>::Finish finish,
            const BlockSource* source = nullptr) {
  ReduceRun<R>(reduction, input, plan, source).run(finish);
}

}  // namespace tt::cpu
