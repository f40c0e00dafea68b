#include "server/session/replies.h"

namespace tt::server {
namespace {

// Memory of an answer beyond its encoded bytes.
constexpr uint64_t kAnswerBytes = sizeof(v1::ReadResult) + sizeof(v1::TensorDescription) + 128;

}  // namespace

void Replies::keep(uint64_t sequence, const v1::Reply& reply, uint64_t most) {
  if (reply.reads_size() == 0) return;
  const uint64_t bytes = reply.ByteSizeLong() + sizeof(Kept) + static_cast<uint64_t>(reply.reads_size()) * kAnswerBytes;
  while (bytes_ + bytes > most && !kept_.empty()) drop_oldest();
  if (bytes > most) return;
  bytes_ += bytes;
  kept_.push_back({sequence, bytes, reply});
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
