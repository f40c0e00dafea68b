// OutgoingFrame: a frame, from its first instruction until it is acknowledged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "google/protobuf/arena.h"
#include "proto/wire.h"

namespace tt::client {

// Frames are reused: a cleared frame keeps its instructions' memory, so that calls of a warm session do not allocate.
// Not thread-safe; has one owner at a time.
class OutgoingFrame {
 public:
  OutgoingFrame() : frame_(google::protobuf::Arena::CreateMessage<v1::Frame>(&arena_)) {}
  OutgoingFrame(const OutgoingFrame&) = delete;
  OutgoingFrame& operator=(const OutgoingFrame&) = delete;

  v1::Frame& message() { return *frame_; }
  uint64_t sequence() const { return frame_->sequence(); }
  bool empty() const { return bytes_ == 0; }
  int instructions() const { return frame_->instructions_size(); }
  int reads() const { return frame_->reads_size() + frame_->number_reads_size() / 2; }
  // Removes the reads with the requests [first, first + count).
  void drop_reads(uint64_t first, size_t count) {
    auto* reads = frame_->mutable_reads();
    const auto dropped = [&](const v1::Read& read) { return read.request() - first < count; };
    reads->erase(std::remove_if(reads->begin(), reads->end(), dropped), reads->end());
  }
  // Estimated encoded size in bytes.
  size_t bytes() const { return bytes_; }
  void count_bytes(size_t bytes) { bytes_ += bytes; }
  // Number of names that the frame's instructions assign to results.
  size_t names() const { return names_; }
  void count_names(size_t names) { names_ += names; }

  void clear() {
    bytes_ = names_ = 0;
    if (arena_.SpaceUsed() < kMaxKept) {
      frame_->Clear();
      return;
    }
    // Clear() does not reuse the memory of inline bytes and lists, so the arena is reset before that memory
    // accumulates.
    arena_.Reset();
    frame_ = google::protobuf::Arena::CreateMessage<v1::Frame>(&arena_);
  }

 private:
  static constexpr uint64_t kMaxKept = 4 << 20;

  google::protobuf::Arena arena_;
  v1::Frame* frame_;
  size_t bytes_ = 0;
  size_t names_ = 0;
};

}  // namespace tt::client
