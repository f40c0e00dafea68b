// ExpandableSegments: segments of a heap that grow in place, which avoids fragmentation between segments.
//
// There is one segment per stream, size class and arena, and a further one when it is full. Used under the pool's lock.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "engine/device/address_range_allocator.h"
#include "engine/memory/heap.h"

namespace tt {

class ExpandableSegments {
 public:
  struct Pieces {  // sizes of the pieces that are mapped at a time, in bytes
    size_t small;
    size_t large;
  };
  ExpandableSegments(std::unique_ptr<AddressRangeAllocator> source, Heap& heap, AllocatorStats& stats, Pieces pieces)
      : source_(std::move(source)), heap_(heap), stats_(stats), pieces_(pieces) {}
  ~ExpandableSegments();

  // Makes a free block of at least `size` bytes for `arena` and `stream`. Returns false if the system has no more
  // memory, or `reserved` would exceed `limit` (0 if unlimited). Memory that was already added then remains as a free
  // block.
  bool grow(Arena& arena, uintptr_t stream, bool small, size_t size, uint64_t limit);
  // Releases every whole piece that no block in use overlaps, in segments selected by `is_selected`. Returns false if
  // there was none.
  bool shrink(Arena& arena, absl::FunctionRef<bool(const Segment*)> is_selected);

 private:
  size_t piece(bool small) const { return small ? pieces_.small : pieces_.large; }
  Block* find_hole(const Arena& arena, uintptr_t stream, bool small, size_t size) const;
  Block* reserve(Arena& arena, uintptr_t stream, bool small, size_t size);
  bool release_segment(Segment* segment);

  std::unique_ptr<AddressRangeAllocator> source_;
  Heap& heap_;
  AllocatorStats& stats_;
  const Pieces pieces_;
};

}  // namespace tt
