#include "engine/heap.h"

namespace tt {

Heap::~Heap() {
  for (auto& [data, segment] : segments_) {
    for (Block* block = segment->first; block;) delete std::exchange(block, block->right);
  }
}

Segment* Heap::add(const Segment& described) {
  auto made = std::make_unique<Segment>(described);
  Segment* segment = made.get();
  auto* block = new Block;
  block->data = segment->data;
  block->size = segment->bytes;
  block->stream = segment->stream;
  block->segment = segment;
  block->state = segment->expandable ? Block::State::kHole : Block::State::kFree;
  segment->first = block;
  ++segment->arena->segments;
  if (segment->expandable) segment->arena->expandable.push_back(segment);
  segments_.emplace(segment->data, std::move(made));
  if (block->is_free()) insert(block);
  return segment;
}

void Heap::remove(Segment* segment) {
  Block* block = segment->first;
  if (block->is_free()) erase(block);
  delete block;
  --segment->arena->segments;
  if (segment->expandable) std::erase(segment->arena->expandable, segment);
  segments_.erase(segment->data);
}

void Heap::use(Block* block, size_t size, bool split) {
  erase(block);
  block->state = Block::State::kUsed;
  if (!split || block->size == size) return;
  Block* rest = cut(block, size);
  rest->state = Block::State::kFree;
  rest->freed_at = block->freed_at;
  insert(rest);
}

Block* Heap::free(Block* block) {
  if (block->right && block->right->is_free()) {
    erase(block->right);
    absorb_right(block);
  }
  if (block->left && block->left->is_free()) {
    Block* left = block->left;
    erase(left);
    absorb_right(left);
    left->freed_at = block->freed_at;
    block = left;
  }
  block->state = Block::State::kFree;
  insert(block);
  return block;
}

Block* Heap::fill(Block* hole, size_t bytes) {
  if (hole->size > bytes) cut(hole, bytes);
  return free(hole);
}

void Heap::punch(Block* block, char* from, char* to) {
  erase(block);
  Block* before = nullptr;
  if (from > block->data) {
    before = block;
    block = cut(before, static_cast<size_t>(from - before->data));
  }
  Block* after = to < block->data + block->size ? cut(block, static_cast<size_t>(to - block->data)) : nullptr;
  block->state = Block::State::kHole;
  if (before) insert(before);
  if (after) insert(after);
  if (!after && block->right && block->right->is_hole()) absorb_right(block);
  if (!before && block->left && block->left->is_hole()) absorb_right(block->left);
}

void Heap::insert(Block* block) {
  block->segment->arena->free(block->segment->small).insert(block);
  if (block->is_split()) stats_.add(&PoolStats::inactive_split, block->segment->small, block->size);
}

void Heap::erase(Block* block) {
  block->segment->arena->free(block->segment->small).erase(block);
  if (block->is_split()) stats_.take(&PoolStats::inactive_split, block->segment->small, block->size);
}

Block* Heap::cut(Block* block, size_t size) {
  auto* rest = new Block;
  rest->data = block->data + size;
  rest->size = block->size - size;
  rest->stream = block->stream;
  rest->segment = block->segment;
  rest->state = block->state;
  rest->left = block;
  rest->right = block->right;
  if (rest->right) rest->right->left = rest;
  block->right = rest;
  block->size = size;
  return rest;
}

void Heap::absorb_right(Block* block) {
  Block* right = block->right;
  block->size += right->size;
  block->right = right->right;
  if (right->right) right->right->left = block;
  delete right;
}

}  // namespace tt
