// Block: a stretch of a segment; Segment: what was taken from the system at once; FreeBlocks: free ones, by size;
// Arena: segments that only serve each other.
//
// For CachingPool, under its lock.
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
#include "engine/schema/recycled.h"

namespace tt {

struct Arena;
struct Block;

struct Segment {
  char* data;
  size_t bytes;      // of addresses
  uintptr_t stream;  // in whose order its blocks are handed out
  Arena* arena;
  bool small;       // holds small blocks only
  bool expandable;  // addresses under which memory comes and goes
  Block* first;
};

struct Block final : Recycled<Block> {
  enum class State : uint8_t {
    kFree,
    kUsed,
    kWaiting,  // freed, but another stream may still use it
    kHole,     // of an expandable segment: addresses without memory
  };

  char* data = nullptr;
  size_t size = 0;
  uintptr_t stream = 0;  // the segment's
  Segment* segment = nullptr;
  Block* left = nullptr;  // neighbours in the segment; null at its ends
  Block* right = nullptr;
  State state = State::kFree;
  uint64_t freed_at = 0;  // by the pool's count of searches
  // Of one that is not in use: whose bytes are in it. kNobody: several tenants', or it is not known.
  Tenant tenant = kNobody;

  // Of one in use.
  uint32_t site = 0;
  size_t requested = 0;
  std::shared_ptr<const Account> owner;
  absl::InlinedVector<StreamId, 1> other_streams;  // that use it too, and have no event yet
  int events = 0;                                  // that it waits for

  // Of a block that is zero.
  static constexpr Tenant kZeros = ~Tenant{0};

  bool is_free() const { return state == State::kFree; }
  bool is_hole() const { return state == State::kHole; }
  bool is_whole_segment() const { return !left && !right && !segment->expandable; }
  // Has a neighbour that keeps it from being given back.
  bool is_split() const { return (left && !left->is_hole()) || (right && !right->is_hole()); }
};

class FreeBlocks {
 public:
  // The smallest of `stream` that is large enough, of those the one at the lowest address. Null: none.
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
  uint64_t id = 0;  // 0: everybody's; else a private pool's
  int users = 0;    // of a private pool; without any its memory goes back to the system when that is short
  int segments = 0;
  FreeBlocks small;
  FreeBlocks large;
  std::vector<Segment*> expandable;

  FreeBlocks& free(bool is_small) { return is_small ? small : large; }
  bool is_abandoned() const { return id != 0 && users == 0; }
};

}  // namespace tt
