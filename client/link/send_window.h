// SendWindow: the frames of a Link, from their first instruction until they are acknowledged; also numbers new handles.
//
// Every frame is within the engine's limits, whatever is appended: begin_frame_for(), release() and append_releases()
// start a new frame when the current one has no room.
//
// One frame is under construction. seal() assigns the next sequence number to it; begin_send() returns the oldest
// sealed frame that was not sent on this stream. A sent frame is kept until it is acknowledged, because rewind() marks
// all unacknowledged frames as unsent when a stream breaks. Cleared frames are reused.
//
// Owned by a Link and guarded by its mutex. At most one thread sends at a time; between begin_send() and end_send() it
// reads the frame without holding the mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/link/in_flight_limit.h"
#include "client/link/outgoing_frame.h"
#include "proto/wire.h"

namespace tt::client {

class SendWindow {
 public:
  static constexpr int kMaxInstructions = 1024;         // per frame; few enough to stay in the cache
  static constexpr size_t kMaxBytes = size_t{4} << 20;  // per frame, unless the engine's limit is lower
  static constexpr size_t kMaxNames = size_t{1} << 18;  // names of results, per frame
  static constexpr int kMaxReads = 4096;                // per frame; half of the engine's limit
  // Per frame. With kMaxReleases more releases at the end, the total is at most frame_limits::kMemory.
  static constexpr size_t kMaxMemory = size_t{7} << 19;
  static constexpr size_t kMaxReleases = 8192;  // per instruction, and at the end of a frame
  // Bytes of the engine's limit that a single instruction leaves free: for releases and short instructions before it.
  static constexpr size_t kReservedBytes = size_t{256} << 10;
  // Unacknowledged bytes from which on only InFlightLimit::kBase frames may be in flight.
  static constexpr size_t kMaxInFlightBytes = size_t{16} << 20;

  SendWindow();

  // Applies the engine's limits. Call before anything is appended.
  void set_limits(const v1::Limits& limits);

  // ---- The frame under construction

  OutgoingFrame& building() { return *building_; }
  const OutgoingFrame& building() const { return *building_; }
  // Whether the frame has no room for a part of this size. An empty frame is never full.
  bool is_full(const FrameSize& part) const {
    return !building_->empty() &&
           (building_->instructions() >= kMaxInstructions || building_->bytes() + part.bytes > max_bytes_ ||
            building_->size().memory + part.memory > kMaxMemory || building_->names() >= kMaxNames ||
            building_->reads() >= kMaxReads);
  }
  // Starts a new frame if the current one has no room for the part.
  void begin_frame_for(const FrameSize& part) {
    if (is_full(part)) seal();
  }
  // Maximum encoded size of one instruction; a larger one must not be appended.
  size_t max_instruction_bytes() const { return max_instruction_bytes_; }
  // Adds a cleared instruction, which carries the handles released before it.
  v1::Instruction* add_instruction();
  // Returns the first of `count` new handles.
  uint64_t name(size_t count) {
    building_->count_names(count);
    return std::exchange(next_handle_, next_handle_ + count);
  }
  // Number of handles that were named and not released.
  uint64_t live_handles() const { return next_handle_ - 1 - released_; }
  // Releases a handle with the next instruction, or with the current frame if it is sent before. Ends the frame when
  // kMaxReleases handles wait, so that a list of any length is divided among frames.
  void release(uint64_t handle) {
    releases_.push_back(handle);
    ++released_;
    if (releases_.size() >= kMaxReleases) [[unlikely]]
      seal();
  }
  bool has_releases() const { return !releases_.empty(); }
  // Moves the queued releases into the frame, so that it is sent even without an instruction.
  void append_releases();
  // Discards the queued releases after the link has ended.
  void drop_releases() { releases_.clear(); }
  // Sets the W3C trace context of the instructions that are appended from now on; "": none. Ends the frame, because a
  // frame has one context.
  void set_trace_context(std::string traceparent);
  // Ends the frame: assigns the next sequence number and the remaining releases to it, and starts a new frame.
  void seal();

  // ---- Sending

  // Sets the number of unacknowledged frames (InFlightLimit), which a flush may exceed.
  void set_max_unacknowledged(uint64_t frames) { max_unacknowledged_ = frames; }
  // Whether begin_send() is allowed now: there is an unsent frame, and the window or a flush permits sending it.
  bool may_send() const;
  // Whether the next frame can wait for more instructions: the engine has work, no flush needs the frame, and it is
  // less than half full. Such a frame should be sent kMinSpacing after the last one.
  bool may_delay() const {
    return sent_ == sealed_ && sent_ - acknowledged_ >= InFlightLimit::kBase && sent_ >= flush_through_ &&
           building_->instructions() < kMaxInstructions / 2 && building_->bytes() < max_bytes_ / 2;
  }
  bool sent_recently(InFlightLimit::Clock::time_point now) const {
    return now < last_sent_ + InFlightLimit::kMinSpacing;
  }
  bool has_unsent() const { return sent_ < sealed_ || !building_->empty(); }
  // Returns the next frame to send, at the time `now`. Seals the frame under construction if all sealed frames were
  // sent. Requires has_unsent().
  OutgoingFrame& begin_send(InFlightLimit::Clock::time_point now);
  // Call when the write of begin_send()'s frame has returned. `went_out` is false if no byte was written.
  void end_send(bool went_out);
  // Permits everything issued so far to be sent regardless of the window. Returns the sequence of the last frame issued
  // so far.
  uint64_t flush();
  // Permits the frames up to `sequence` to be sent regardless of the window.
  void flush_through(uint64_t sequence) { flush_through_ = std::max(flush_through_, sequence); }
  // Returns the sequence of the last frame that is not empty, whether sealed or under construction.
  uint64_t last_issued() const { return sealed_ + (building_->empty() ? 0 : 1); }

  // ---- Acknowledgement

  // Records that the engine has executed all frames up to `executed`. Ignores sequences that were never sent.
  void acknowledge(uint64_t executed);
  // Removes and returns an acknowledged frame, which the caller clears without the mutex and passes to recycle(). Null
  // if there is none.
  std::unique_ptr<OutgoingFrame> take_acknowledged();
  void recycle(std::unique_ptr<OutgoingFrame> cleared);
  // Marks unacknowledged frames as unsent after the stream broke.
  void rewind();

  // ---- Frames that an engine has executed, and repeats if it ends and continues from an image on its disk

  // From now on acknowledged frames are kept until persisted(); at most about kMaxKeptBytes of them, the latest.
  void keep_acknowledged(bool keep) { keeps_ = keep; }
  bool keeps_acknowledged() const { return keeps_; }
  // The engine's image contains the effects of all frames up to `sequence`.
  void persisted(uint64_t sequence) { persisted_ = std::max(persisted_, sequence); }
  uint64_t persisted() const { return persisted_; }
  // Whether all frames after `executed` are here.
  bool has_frames_after(uint64_t executed) const {
    return executed <= acknowledged_ && (executed == sealed_ || (!in_flight_.empty() && in_flight_.front()->sequence() <= executed + 1));
  }
  // Marks the frames after `executed` as unsent and unacknowledged. Requires has_frames_after().
  void rewind_to(uint64_t executed);
  // Calls visit(frame) for the frames after `executed` that were acknowledged.
  void visit_acknowledged(uint64_t executed, absl::FunctionRef<void(const v1::Frame&)> visit) const;
  static constexpr size_t kMaxKeptBytes = size_t{256} << 20;

  uint64_t unsent() const { return sealed_ - sent_; }      // the number of frames that were ended and not sent
  uint64_t sealed() const { return sealed_; }              // the last sequence assigned
  uint64_t sent() const { return sent_; }                  // the last sequence written to this stream
  uint64_t acknowledged() const { return acknowledged_; }  // the last sequence that a reply has confirmed
  bool all_acknowledged() const { return acknowledged_ == sealed_; }

 private:
  // Assigns the next sequence number to the frame, and starts a new frame.
  void end_frame();
  FrameSize size_of_releases() const {
    return {releases_.size() * sizeof(uint64_t), releases_.size() * frame_memory::kNumber};
  }
  // Adds the size of the queued releases to the frame, and clears the queue.
  void count_releases();
  OutgoingFrame& frame_at(uint64_t sequence) { return *in_flight_[sequence - in_flight_.front()->sequence()]; }

  size_t max_bytes_ = kMaxBytes;
  size_t max_instruction_bytes_ = kMaxBytes - kReservedBytes;
  uint64_t max_unacknowledged_ = InFlightLimit::kBase;
  uint64_t max_in_flight_ = 0;  // the engine's limit of frames in flight; 0: none
  std::unique_ptr<OutgoingFrame> building_;
  std::deque<std::unique_ptr<OutgoingFrame>> in_flight_;  // ascending sequences, up to sealed_
  std::vector<std::unique_ptr<OutgoingFrame>> spare_;
  std::vector<uint64_t> releases_;
  std::string trace_context_;  // of the frame under construction
  uint64_t next_handle_ = 1;
  uint64_t released_ = 0;
  uint64_t sealed_ = 0;
  uint64_t sent_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t flush_through_ = 0;
  size_t unacknowledged_bytes_ = 0;  // size of the frames (acknowledged_, sent_]
  InFlightLimit::Clock::time_point last_sent_;
  bool keeps_ = false;
  uint64_t persisted_ = 0;
  size_t kept_bytes_ = 0;  // memory of the frames in in_flight_ up to acknowledged_
  uint64_t sending_ = 0;  // sequence of the frame between begin_send() and end_send(), or 0
};

}  // namespace tt::client
