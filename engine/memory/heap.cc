#include "engine/memory/heap.h"

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

Block* Heap::fill_hole(Block* hole, size_t bytes) {
  if (hole->size > bytes) split_off(hole, bytes);
  hole->tenant = kNoTenant;
  return free(hole);
}

void Heap::punch_hole(Block* block, char* from, char* to) {
  erase(block);
  Block* before = nullptr;
  if (from > block->data) {
    before = block;
    block = split_off(before, static_cast<size_t>(from - before->data));
  }
  Block* after = to < block->data + block->size ? split_off(block, static_cast<size_t>(to - block->data)) : nullptr;
  block->state = Block::State::kHole;
  if (before) insert(before);
  if (after) insert(after);
  if (!after && block->right && block->right->is_hole()) merge_right(block);
  if (!before && block->left && block->left->is_hole()) merge_right(block->left);
}

}  // namespace tt
