#include "server/replies.h"

namespace tt::server {

void Replies::keep(uint64_t sequence, const v1::Reply& reply) {
  if (reply.reads_size() == 0) return;
  uint64_t bytes = reply.ByteSizeLong() + sizeof(Kept);
  bytes_ += bytes;
  kept_.push_back({sequence, bytes, reply});
  while (bytes_ > max_bytes_ && kept_.size() > 1) drop_oldest();
}

void Replies::forget(uint64_t sequence) {
  while (!kept_.empty() && kept_.front().sequence <= sequence) drop_oldest();
}

const v1::Reply* Replies::find(uint64_t sequence) const {
  for (const Kept& kept : kept_) {
    if (kept.sequence == sequence) return &kept.reply;
  }
  return nullptr;
}

void Replies::clear() {
  kept_.clear();
  bytes_ = 0;
}

void Replies::drop_oldest() {
  bytes_ -= kept_.front().bytes;
  kept_.pop_front();
}

}  // namespace tt::server
