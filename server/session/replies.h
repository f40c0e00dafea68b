// Replies: a session's replies that the client may not have received.
//
// If a link breaks between an execution and its reply, the client resends the frame. The operations must not be
// repeated, and the reads cannot be repeated if their names have been released. Therefore replies are kept, within a
// budget, until the client acknowledges them. One per session, used under its lock.
#pragma once

#include <cstdint>
#include <deque>

#include "proto/wire.h"

namespace tt::server {

class Replies {
 public:
  // Keeps `reply`, the reply to frame `sequence`, if it has reads. Kept replies use at most `max_bytes` bytes: the
  // oldest replies are dropped to make room, and `reply` is not kept if it alone is larger.
  void keep(uint64_t sequence, const v1::Reply& reply, uint64_t max_bytes);
  // Drops replies up to `sequence`, which the client has received.
  void forget(uint64_t sequence);
  // Returns null if the frame had no reads or its reply was dropped.
  const v1::Reply* find(uint64_t sequence) const;
  void clear();
  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    uint64_t sequence;
    uint64_t bytes;
    v1::Reply reply;
  };
  void drop_oldest();

  uint64_t bytes_ = 0;
  std::deque<Entry> entries_;  // ordered by sequence number
};

}  // namespace tt::server
