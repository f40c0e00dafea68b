// Replies: what a session has answered and the client may not have got.
//
// A link that breaks between an execution and its reply makes the client send the frame again; the operations are not
// repeated, and neither can the reads be, since names may have been dropped since. So answers are kept until the
// client says that it has them, within a budget. One per session, used under its lock.
#pragma once

#include <cstdint>
#include <deque>

#include "proto/wire.h"

namespace tt::server {

class Replies {
 public:
  // `reply` answered frame `sequence`. Only replies that answer a read take room. Those that are kept never take more
  // than `most` bytes: the oldest make way, and at last the new one.
  void keep(uint64_t sequence, const v1::Reply& reply, uint64_t most);
  // The client has every reply up to `sequence`.
  void forget(uint64_t sequence);
  // Null where it answered nothing, or is gone.
  const v1::Reply* find(uint64_t sequence) const;
  void clear();
  uint64_t bytes() const { return bytes_; }

 private:
  struct Kept {
    uint64_t sequence;
    uint64_t bytes;
    v1::Reply reply;
  };
  void drop_oldest();

  uint64_t bytes_ = 0;
  std::deque<Kept> kept_;  // sequences go up
};

}  // namespace tt::server
