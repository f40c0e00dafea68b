// OutgoingFrame: a frame, from its first instruction until it is acknowledged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "google/protobuf/arena.h"
#include "proto/wire.h"

namespace tt::client {

// Size of a part of a frame.
struct FrameSize {
  size_t bytes = 0;   // estimated encoded size
  size_t memory = 0;  // upper bound of the host memory that the engine computes for the parsed part

  FrameSize operator+(const FrameSize& other) const { return {bytes + other.bytes, memory + other.memory}; }
};

// Memory as the engine computes it, from the wire format (server/session/frame_size.h) or from its templates
// (server/rpc/template_table.h), whichever is more. tests/server/rpc/built_frames_test.cc compares them.
namespace frame_memory {
inline constexpr size_t kInstruction = 512;
inline constexpr size_t kArgument = 288;  // with the overhead of a list or a string
inline constexpr size_t kNumber = 40;     // per element of a list
inline constexpr size_t kCharacter = 2;
inline constexpr size_t kRead = 128;
inline constexpr size_t kSite = 320;
}  // namespace frame_memory

// Frames are reused: a cleared frame keeps its instructions' memory, so that calls of a warm session do not allocate.
// Not thread-safe; has one owner at a time.
class OutgoingFrame {
 public:
  OutgoingFrame() : frame_(google::protobuf::Arena::CreateMessage<v1::Frame>(&arena_)) {}
  OutgoingFrame(const OutgoingFrame&) = delete;
  OutgoingFrame& operator=(const OutgoingFrame&) = delete;

  v1::Frame& message() { return *frame_; }
  uint64_t sequence() const { return frame_->sequence(); }
  bool empty() const { return size_.bytes == 0; }
  int instructions() const { return frame_->instructions_size(); }
  int reads() const { return frame_->reads_size() + frame_->scalar_reads_size() / 2; }
  // Removes the reads with the requests [first, first + count).
  void drop_reads(uint64_t first, size_t count) {
    auto* reads = frame_->mutable_reads();
    const auto dropped = [&](const v1::Read& read) { return read.request() - first < count; };
    reads->erase(std::remove_if(reads->begin(), reads->end(), dropped), reads->end());
  }
  // Estimated encoded size in bytes.
  size_t bytes() const { return size_.bytes; }
  const FrameSize& size() const { return size_; }
  void count(const FrameSize& size) { size_ = size_ + size; }
  // Number of names that the frame's instructions assign to results.
  size_t names() const { return names_; }
  void count_names(size_t names) { names_ += names; }

  void clear() {
    size_ = {};
    names_ = 0;
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
  FrameSize size_;
  size_t names_ = 0;
};

}  // namespace tt::client
