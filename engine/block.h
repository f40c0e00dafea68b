// Block: a stretch of a segment; FreeBlocks: the free ones, by size.
//
// For CachingPool, under its lock.
#pragma once

#include <cstddef>

#include "absl/container/btree_set.h"

namespace tt {

struct Block {
  char* data = nullptr;
  size_t size = 0;
  Block* left = nullptr;  // neighbours in the segment; null at its ends
  Block* right = nullptr;
  bool free = false;
  bool small = false;  // lies in a segment for small blocks

  bool is_whole_segment() const { return !left && !right; }
};

class FreeBlocks {
 public:
  // The smallest that is large enough, of those the one at the lowest address. Null: none.
  Block* best_fit(size_t size) const {
    auto at = blocks_.lower_bound(Wanted{size});
    return at == blocks_.end() ? nullptr : *at;
  }
  void insert(Block* block) { blocks_.insert(block); }
  void erase(Block* block) { blocks_.erase(block); }
  auto begin() const { return blocks_.begin(); }
  auto end() const { return blocks_.end(); }

 private:
  struct Wanted {
    size_t size;
  };
  struct Less {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : a->data < b->data;
    }
    bool operator()(const Block* a, const Wanted& b) const { return a->size < b.size; }
    bool operator()(const Wanted& a, const Block* b) const { return a.size < b->size; }
  };
  absl::btree_set<Block*, Less> blocks_;
};

}  // namespace tt
