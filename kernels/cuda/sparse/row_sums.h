// sum_rows: sums over rows of entries whose lengths may differ much, in an order that does not depend on timing.
//
//   struct Entries {
//     using C = float;                                                       // the type of sums
//     TT_FUNCTION EntryRow row(int64_t r) const;                             // the entries of row r
//     TT_FUNCTION C term(const EntryRow& row, int64_t i, int64_t column) const;  // of entry i
//   };
//   sum_rows(queue, entries, rows, width, count, out);   // out[r, column] = the sum of the terms of row r
//
// A thread adds the terms of an element of the result; adjacent threads read adjacent columns. If there are few columns
// and rows are long on average, a group of threads does. Rows of more than kRowPiece entries are divided into pieces,
// whose sums other threads or groups compute first.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch/inclusive_scan.h"
#include "kernels/cuda/sparse/indices.h"

namespace tt::cuda {

inline constexpr int64_t kRowPiece = 1024;

// Entries [begin, end) of a row, and the matrix of a batch that the row is in.
struct EntryRow {
  int64_t begin = 0, end = 0, matrix = 0;
  // The number of pieces: 0 if the row is not divided.
  TT_FUNCTION int64_t pieces() const {
    const int64_t n = end - begin;
    return n > kRowPiece ? (n + kRowPiece - 1) / kRowPiece : 0;
  }
  TT_FUNCTION EntryRow piece(int64_t i) const {
    const int64_t first = begin + i * kRowPiece, last = first + kRowPiece;
    return {first, last < end ? last : end, matrix};
  }
};

// The sums of pieces, and ends[r]: the number of pieces of the rows up to r. Null if no row can be that long.
template <typename C>
struct PieceSums {
  const int64_t* ends = nullptr;
  const C* sums = nullptr;
};

template <typename Entries>
struct LoadPieces {
  Entries entries;
  TT_FUNCTION int64_t operator()(int64_t r) const { return entries.row(r).pieces(); }
};
struct StorePieces {
  int64_t* ends;
  TT_FUNCTION void operator()(int64_t r, int64_t end) const { ends[r] = end; }
};

// Adds every step-th term of a row, from `offset` on.
template <typename Entries>
TT_DEVICE typename Entries::C sum_terms(const Entries& entries, const EntryRow& row, int64_t column, int64_t offset,
                                        int64_t step) {
  using C = typename Entries::C;
  C sum{};
  for (int64_t i = row.begin + offset; i < row.end; i += step) {
    sum = static_cast<C>(sum + entries.term(row, i, column));
  }
  return sum;
}

// The same for a row that may be divided.
template <typename Entries>
TT_DEVICE typename Entries::C sum_row(const Entries& entries, const PieceSums<typename Entries::C>& pieces, int64_t r,
                                      int64_t column, int64_t width, int64_t offset, int64_t step) {
  using C = typename Entries::C;
  const EntryRow row = entries.row(r);
  const int64_t count = pieces.ends ? row.pieces() : 0;
  if (count == 0) return sum_terms(entries, row, column, offset, step);
  C sum{};
  const int64_t end = pieces.ends[r];
  for (int64_t p = end - count + offset; p < end; p += step) {
    sum = static_cast<C>(sum + pieces.sums[p * width + column]);
  }
  return sum;
}

// Computes the sums of all pieces. There are at most `most`.
template <typename Entries>
void sum_pieces(const Queue& queue, const Entries& entries, int64_t rows, int64_t width, bool grouped, int64_t most,
                const int64_t* ends, typename Entries::C* sums) {
  using C = typename Entries::C;
  if (grouped) {
    return for_each_group(queue, most * width, kRowPiece, [=] TT_DEVICE(Group & group) {
      const int64_t p = group.index() / width, r = insertion_point(ends, rows, p, true);
      if (r == rows) return;
      const EntryRow row = entries.row(r), piece = row.piece(p - (ends[r] - row.pieces()));
      const C sum = group.reduce(sum_terms(entries, piece, group.index() % width, group.rank(), group.size()), Sum());
      if (group.rank() == 0) sums[group.index()] = sum;
    });
  }
  for_each(queue, most * width, [=] TT_DEVICE(int64_t at) {
    const int64_t p = at / width, r = insertion_point(ends, rows, p, true);
    if (r == rows) return;
    const EntryRow row = entries.row(r), piece = row.piece(p - (ends[r] - row.pieces()));
    sums[at] = sum_terms(entries, piece, at % width, 0, 1);
  });
}

// `count`: the number of entries of all rows.
template <typename T, typename Entries>
void sum_rows(const Queue& queue, const Entries& entries, int64_t rows, int64_t width, int64_t count, T* out) {
  using C = typename Entries::C;
  if (rows == 0 || width == 0) return;
  const bool grouped = width < 16 && count / rows >= kLongRow;
  const int64_t most = 2 * count / kRowPiece;  // a divided row has less than 2 pieces per kRowPiece entries
  PieceSums<C> pieces;
  Tensor ends, sums;
  if (most > 0) {
    ends = empty({rows}, DType::kInt64, queue.device());
    sums = empty({most * width * static_cast<int64_t>(sizeof(C))}, DType::kUInt8, queue.device());
    pieces = {ends.data_as<int64_t>(), static_cast<const C*>(sums.data())};
    inclusive_scan(queue, rows, LoadPieces<Entries>{entries}, Add(), StorePieces{ends.data_as<int64_t>()});
    sum_pieces(queue, entries, rows, width, grouped, most, pieces.ends, static_cast<C*>(sums.data()));
  }
  if (grouped) {
    return for_each_group(queue, rows * width, count / rows, [=] TT_DEVICE(Group & group) {
      const int64_t r = group.index() / width, column = group.index() % width;
      const C sum = group.reduce(sum_row(entries, pieces, r, column, width, group.rank(), group.size()), Sum());
      if (group.rank() == 0) out[group.index()] = convert<T>(sum);
    });
  }
  for_each(queue, rows * width, [=] TT_DEVICE(int64_t at) {
    out[at] = convert<T>(sum_row(entries, pieces, at / width, at % width, width, 0, 1));
  });
}

}  // namespace tt::cuda
