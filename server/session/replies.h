// Replies: a session's replies that the client may not have received.
//
// If a link breaks between an execution and its reply, the client resends the frame. The operations must not be
// repeated, and the reads cannot be repeated if their names have been released. Therefore replies are kept, within a
// budget, until the client acknowledges them. One per session, used under its lock.
#pragma once

#include <cstdint>
#include <deque>

#include "proto/wire.h"

namespace tt {
class ImageInput;
class ImageOutput;
}  // namespace tt

namespace tt::server {

class Replies {
 public:
  // A kept reply.
  struct Kept {
    const v1::Reply* reply = nullptr;  // null if the frame had no reads or its reply was dropped
    bool has_reads = true;             // false if the answers to v1::Frame::reads were dropped
  };

  // Keeps `reply`, the reply to frame `sequence`, if it has answers. Kept replies use at most `max_bytes` bytes. To
  // make room, the oldest answers to v1::Frame::reads are dropped first, because the client may still have the handles,
  // and then the oldest replies. `reply` is not kept if it alone is larger.
  void keep(uint64_t sequence, const v1::Reply& reply, uint64_t max_bytes);
  // Drops replies up to `sequence`, which the client has received.
  void forget(uint64_t sequence);
  Kept find(uint64_t sequence) const;
  void clear();
  uint64_t bytes() const { return bytes_; }

  // For images of the session. Requires read_image()'s object to be empty.
  void write_image(ImageOutput* out) const;
  void read_image(ImageInput* in);

 private:
  struct Entry {
    uint64_t sequence;
    uint64_t bytes;
    v1::Reply reply;
  };
  void drop_oldest_reads();
  void drop_oldest();

  uint64_t bytes_ = 0;
  std::deque<Entry> entries_;  // ordered by sequence number
  size_t without_reads_ = 0;   // the first entries, whose answers to reads were dropped
};

}  // namespace tt::server
