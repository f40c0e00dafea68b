// Block: part of a segment; Segment: memory obtained from the system in one call; FreeBlocks: free blocks by size;
// Arena: segments that share their free blocks.
//
// Used by CachingPool under its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/inlined_vector.h"
#include "engine/device/stream_events.h"
#include "engine/memory/account.h"
#include "engine/memory/allocator.h"
#include "engine/schema/thread_cached.h"

namespace tt {

struct Arena;
struct Block;

struct Segment {
  char* data;
  size_t bytes;      // size of the address range
  uintptr_t stream;  // the stream that orders the use of its blocks
  Arena* arena;
  bool small;       // holds small blocks only
  bool expandable;  // address range in which memory is mapped and unmapped
  Block* first;
};

struct Block final : ThreadCached<Block> {
  enum class State : uint8_t {
    kFree,
    kUsed,
    kWaiting,  // freed, but another stream may still use it
    kHole,     // addresses without memory in an expandable segment
  };

  char* data = nullptr;
  size_t size = 0;
  uintptr_t stream = 0;  // the segment's stream
  Segment* segment = nullptr;
  Block* left = nullptr;  // neighbours in the segment; null at its ends
  Block* right = nullptr;
  State state = State::kFree;
  bool discarded = false;  // free, and its pages have been returned to the system
  uint64_t freed_at = 0;   // value of the pool's search counter when the block was freed
  // The tenant whose bytes a free block contains; kNoTenant if they belong to several tenants or an unknown one.
  Tenant tenant = kNoTenant;

  // The following members describe a block in use.
  uint32_t site = 0;
  size_t requested = 0;
  std::shared_ptr<const Account> owner;
  absl::InlinedVector<StreamId, 1> other_streams;  // other streams that use the block and have no event yet
  int events = 0;                                  // number of pending events

  // Value of `tenant` for a block that contains only zeros.
  static constexpr Tenant kZeros = ~Tenant{0};

  bool is_free() const { return state == State::kFree; }
  bool is_hole() const { return state == State::kHole; }
  bool is_whole_segment() const { return !left && !right && !segment->expandable; }
  // Whether a neighbour prevents the release of the block to the system.
  bool is_split() const { return (left && !left->is_hole()) || (right && !right->is_hole()); }
};

class FreeBlocks {
 public:
  // Returns the smallest block of `stream` with at least `size` bytes; among blocks of equal size, the one at the
  // lowest address. Null if there is none.
  Block* best_fit(uintptr_t stream, size_t size) const {
    auto at = blocks_.lower_bound(Wanted{stream, size});
    return at == blocks_.end() || (*at)->stream != stream ? nullptr : *at;
  }
  void insert(Block* block) { blocks_.insert(block); }
  void erase(Block* block) { blocks_.erase(block); }
  auto begin() const { return blocks_.begin(); }
  auto end() const { return blocks_.end(); }

 private:
  struct Wanted {
    uintptr_t stream;
    size_t size;
  };
  struct Less {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const {
      if (a->stream != b->stream) return a->stream < b->stream;
      return a->size != b->size ? a->size < b->size : std::less<>()(a->data, b->data);
    }
    bool operator()(const Block* a, const Wanted& b) const {
      return a->stream != b.stream ? a->stream < b.stream : a->size < b.size;
    }
    bool operator()(const Wanted& a, const Block* b) const {
      return a.stream != b->stream ? a.stream < b->stream : a.size < b->size;
    }
  };
  absl::btree_set<Block*, Less> blocks_;
};

struct Arena {
  uint64_t id = 0;  // 0: the shared arena; else a private pool's id
  int users = 0;    // users of a private pool; without users, its memory may be released
  int segments = 0;
  FreeBlocks small;
  FreeBlocks large;
  std::vector<Segment*> expandable;

  FreeBlocks& free(bool is_small) { return is_small ? small : large; }
  bool is_abandoned() const { return id != 0 && users == 0; }
};

}  // namespace tt
