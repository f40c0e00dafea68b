// Heap: a pool's segments, and how they are cut into blocks. Layout without policy: what to cut, whom to serve and when
// to ask the system is the pool's to say.
//
// No two free blocks, and no two holes, are ever neighbours. Under the pool's lock.
#pragma once

#include "absl/container/btree_map.h"
#include "engine/memory/allocator_stats.h"
#include "engine/memory/block.h"

namespace tt {

class Heap {
 public:
  // Keeps `stats.inactive_split`.
  explicit Heap(AllocatorStats& stats) : stats_(stats) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Takes over what `segment` describes; its one block is free, or a hole where it is expandable.
  Segment* add(const Segment& segment);
  // Requires one block, free or a hole. The memory is the caller's again.
  void remove(Segment* segment);

  // Takes a free block; where it is larger than `size` and `split`, the rest becomes a free block.
  void use(Block* block, size_t size, bool split);
  // Gives it back: merged with its free neighbours, that is the result.
  Block* free(Block* block);

  // Memory is under the first `bytes` of the hole now: part of a free block, which is the result.
  Block* fill(Block* hole, size_t bytes);
  // There is no memory from `from` to `to` within a free block any more.
  void punch(Block* block, char* from, char* to);

  // By address.
  const absl::btree_map<void*, std::unique_ptr<Segment>>& segments() const { return segments_; }

 private:
  void insert(Block* block);
  void erase(Block* block);
  Block* cut(Block* block, size_t size);  // what is right of `size`, in the same state
  void absorb_right(Block* block);

  AllocatorStats& stats_;
  absl::btree_map<void*, std::unique_ptr<Segment>> segments_;
};

// Of every allocation and every free: for the compiler to put in place.

inline void Heap::use(Block* block, size_t size, bool split) {
  erase(block);
  block->state = Block::State::kUsed;
  if (!split || block->size == size) return;
  Block* rest = cut(block, size);
  rest->state = Block::State::kFree;
  rest->freed_at = block->freed_at;
  insert(rest);
}

inline Block* Heap::free(Block* block) {
  if (block->right && block->right->is_free()) {
    erase(block->right);
    absorb_right(block);
  }
  if (block->left && block->left->is_free()) {
    Block* left = block->left;
    erase(left);
    left->freed_at = block->freed_at;
    absorb_right(left);  // drops `block`
    block = left;
  }
  block->state = Block::State::kFree;
  insert(block);
  return block;
}

inline void Heap::insert(Block* block) {
  block->segment->arena->free(block->segment->small).insert(block);
  if (block->is_split()) stats_.add(&PoolStats::inactive_split, block->segment->small, block->size);
}

inline void Heap::erase(Block* block) {
  block->segment->arena->free(block->segment->small).erase(block);
  if (block->is_split()) stats_.take(&PoolStats::inactive_split, block->segment->small, block->size);
}

inline Block* Heap::cut(Block* block, size_t size) {
  auto* rest = new Block;
  rest->data = block->data + size;
  rest->size = block->size - size;
  rest->stream = block->stream;
  rest->segment = block->segment;
  rest->state = block->state;
  rest->tenant = block->tenant;
  rest->left = block;
  rest->right = block->right;
  if (rest->right) rest->right->left = rest;
  block->right = rest;
  block->size = size;
  return rest;
}

inline void Heap::absorb_right(Block* block) {
  Block* right = block->right;
  block->size += right->size;
  if (block->tenant == Block::kZeros) {
    block->tenant = right->tenant;
  } else if (right->tenant != Block::kZeros && right->tenant != block->tenant) {
    block->tenant = kNobody;
  }
  block->right = right->right;
  if (right->right) right->right->left = block;
  delete right;
}

}  // namespace tt
