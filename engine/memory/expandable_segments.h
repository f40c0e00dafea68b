// ExpandableSegments: a heap's segments that grow in place, so that no shape of requests leaves gaps which nothing
// fits.
//
// One a stream, size class and arena (more where one is full). Under the pool's lock.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "engine/device/range_source.h"
#include "engine/memory/heap.h"

namespace tt {

class ExpandableSegments {
 public:
  struct Pieces {  // what memory comes in, bytes
    size_t small;
    size_t large;
  };
  ExpandableSegments(std::unique_ptr<RangeSource> source, Heap& heap, AllocatorStats& stats, Pieces pieces)
      : source_(std::move(source)), heap_(heap), stats_(stats), pieces_(pieces) {}
  ~ExpandableSegments();

  // After it there is a free block of `size` for `arena` and `stream`. False where the system has no more, or
  // `reserved` would exceed `limit` (0: none); what was added until then is a free block too.
  bool grow(Arena& arena, uintptr_t stream, bool small, size_t size, uint64_t limit);
  // Gives back every whole piece that no block is in, of the segments that are meant. False where there was none.
  bool shrink(Arena& arena, absl::FunctionRef<bool(const Segment*)> is_meant);

 private:
  size_t piece(bool small) const { return small ? pieces_.small : pieces_.large; }
  Block* find_hole(const Arena& arena, uintptr_t stream, bool small, size_t size) const;
  Block* reserve(Arena& arena, uintptr_t stream, bool small, size_t size);
  bool give_back(Segment* segment);

  std::unique_ptr<RangeSource> source_;
  Heap& heap_;
  AllocatorStats& stats_;
  const Pieces pieces_;
};

}  // namespace tt
