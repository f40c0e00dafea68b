#include "engine/memory/expandable_segments.h"

namespace tt {
namespace {

size_t free_size(const Block* block) { return block && (block->is_free() || block->is_hole()) ? block->size : 0; }

}  // namespace

ExpandableSegments::~ExpandableSegments() {
  for (const auto& [data, segment] : heap_.segments()) {
    if (!segment->expandable) continue;
    const size_t step = piece(segment->small);
    char* at = segment->data;
    for (const Block* block = segment->first; block; block = block->right) {
      char* end = block->data + block->size;
      if (block->is_hole()) at = end;
      for (; at < end; at += step) source_->unmap(at, step, segment->stream);
    }
    source_->release(segment->data, segment->bytes);
  }
}

bool ExpandableSegments::grow(Arena& arena, uintptr_t stream, bool small, size_t size, uint64_t limit) {
  const size_t step = piece(small);
  Block* hole = find_hole(arena, stream, small, size);
  if (!hole) hole = reserve(arena, stream, small, size);
  if (!hole) return false;
  const Block* left = hole->left;
  size_t have = left && left->is_free() ? left->size : 0;
  while (have < size) {
    if (limit != 0 && stats_.all.reserved.now + step > limit) return false;
    ++stats_.system_allocations;
    if (!source_->map(hole->data, step)) return false;
    stats_.add(&PoolStats::reserved, small, step);
    const Block* grown = heap_.fill_hole(hole, step);
    have = grown->size;
    hole = grown->right;  // still a hole if `have` is too small, because find_hole checked the sum
  }
  return true;
}

Block* ExpandableSegments::find_hole(const Arena& arena, uintptr_t stream, bool small, size_t size) const {
  for (const Segment* segment : arena.expandable) {
    if (segment->stream != stream || segment->small != small) continue;
    for (Block* block = segment->first; block; block = block->right) {
      if (!block->is_hole()) continue;
      const bool grows_left = block->left && block->left->is_free();
      if ((grows_left ? block->left->size : 0) + block->size + free_size(block->right) >= size) return block;
    }
  }
  return nullptr;
}

Block* ExpandableSegments::reserve(Arena& arena, uintptr_t stream, bool small, size_t size) {
  const size_t step = piece(small);
  const size_t bytes = (source_->range_bytes() + step - 1) / step * step;
  if (size > bytes) return nullptr;
  void* data = source_->reserve(bytes);
  if (!data) return nullptr;
  return heap_.add({static_cast<char*>(data), bytes, stream, &arena, small, true, nullptr})->first;
}

bool ExpandableSegments::shrink(Arena& arena, absl::FunctionRef<bool(const Segment*)> is_selected) {
  bool any = false;
  const std::vector<Segment*> segments = arena.expandable;
  for (Segment* segment : segments) {
    if (is_selected(segment)) any |= release_segment(segment);
  }
  return any;
}

bool ExpandableSegments::release_segment(Segment* segment) {
  const size_t step = piece(segment->small);
  bool any = false;
  for (Block* block = segment->first; block;) {
    Block* next = block->right;
    const auto begin = static_cast<size_t>(block->data - segment->data);
    char* from = segment->data + (begin + step - 1) / step * step;
    char* to = segment->data + (begin + block->size) / step * step;
    if (block->is_free() && from < to) {
      for (char* at = from; at < to; at += step) {
        source_->unmap(at, step, segment->stream);
        ++stats_.system_frees;
        stats_.subtract(&PoolStats::reserved, segment->small, step);
      }
      // The new hole may merge with the next one.
      const bool merges_right = next && next->is_hole() && to == next->data;
      if (merges_right) next = next->right;
      heap_.punch_hole(block, from, to);
      any = true;
    }
    block = next;
  }
  if (segment->first->is_hole() && !segment->first->right) {
    source_->release(segment->data, segment->bytes);
    heap_.remove(segment);
  }
  return any;
}

}  // namespace tt
