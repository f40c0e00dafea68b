// Heap: a pool's segments and their division into blocks. Implements the layout; the pool decides which blocks to split
// and when to call the system.
//
// No two free blocks, and no two holes, are ever neighbours. Used under the pool's lock.
#pragma once

#include "absl/container/btree_map.h"
#include "engine/memory/allocator_stats.h"
#include "engine/memory/block.h"

namespace tt {

class Heap {
 public:
  // Updates `stats.inactive_split`.
  explicit Heap(AllocatorStats& stats) : stats_(stats) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Adds a segment with one block: free, or a hole if the segment is expandable.
  Segment* add(const Segment& segment);
  // Requires that the segment has one block, free or a hole. Ownership of the memory returns to the caller.
  void remove(Segment* segment);

  // Marks a free block as used. If `split`, the part beyond `size` becomes a free block.
  void use(Block* block, size_t size, bool split);
  // Frees a block and merges it with its free neighbours. Returns the merged block.
  Block* free(Block* block);

  // Call when memory was mapped in the first `bytes` of the hole. Returns the free block that contains this memory.
  Block* fill_hole(Block* hole, size_t bytes);
  // Call when the memory from `from` to `to` in a free block was unmapped.
  void punch_hole(Block* block, char* from, char* to);

  // Segments by address.
  const absl::btree_map<void*, std::unique_ptr<Segment>>& segments() const { return segments_; }

 private:
  void insert(Block* block);
  void erase(Block* block);
  Block* split_off(Block* block, size_t size);  // returns the part after `size`, in the same state
  void merge_right(Block* block);

  AllocatorStats& stats_;
  absl::btree_map<void*, std::unique_ptr<Segment>> segments_;
};

// Inline: called for every allocation and every free.

inline void Heap::use(Block* block, size_t size, bool split) {
  erase(block);
  block->state = Block::State::kUsed;
  if (!split || block->size == size) return;
  Block* rest = split_off(block, size);
  rest->state = Block::State::kFree;
  rest->freed_at = block->freed_at;
  insert(rest);
}

inline Block* Heap::free(Block* block) {
  if (block->right && block->right->is_free()) {
    erase(block->right);
    merge_right(block);
  }
  if (block->left && block->left->is_free()) {
    Block* left = block->left;
    erase(left);
    left->freed_at = block->freed_at;
    merge_right(left);  // deletes `block`
    block = left;
  }
  block->state = Block::State::kFree;
  block->discarded = false;
  insert(block);
  return block;
}

inline void Heap::insert(Block* block) {
  block->segment->arena->free(block->segment->small).insert(block);
  if (block->is_split()) stats_.add(&PoolStats::inactive_split, block->segment->small, block->size);
}

inline void Heap::erase(Block* block) {
  block->segment->arena->free(block->segment->small).erase(block);
  if (block->is_split()) stats_.subtract(&PoolStats::inactive_split, block->segment->small, block->size);
}

inline Block* Heap::split_off(Block* block, size_t size) {
  auto* rest = new Block;
  rest->data = block->data + size;
  rest->size = block->size - size;
  rest->stream = block->stream;
  rest->segment = block->segment;
  rest->state = block->state;
  rest->discarded = block->discarded;
  rest->tenant = block->tenant;
  rest->left = block;
  rest->right = block->right;
  if (rest->right) rest->right->left = rest;
  block->right = rest;
  block->size = size;
  return rest;
}

inline void Heap::merge_right(Block* block) {
  Block* right = block->right;
  block->size += right->size;
  if (block->tenant == Block::kZeros) {
    block->tenant = right->tenant;
  } else if (right->tenant != Block::kZeros && right->tenant != block->tenant) {
    block->tenant = kNoTenant;
  }
  block->right = right->right;
  if (right->right) right->right->left = block;
  delete right;
}

}  // namespace tt
