#include "server/session/replies.h"

namespace tt::server {
namespace {

// Memory of a ReadResult in addition to its encoded bytes.
constexpr uint64_t kAnswerBytes = sizeof(v1::ReadResult) + sizeof(v1::TensorDescription) + 128;

}  // namespace

void Replies::keep(uint64_t sequence, const v1::Reply& reply, uint64_t max_bytes) {
  if (reply.reads_size() == 0) return;
  const uint64_t bytes =
      reply.ByteSizeLong() + sizeof(Entry) + static_cast<uint64_t>(reply.reads_size()) * kAnswerBytes;
  while (bytes_ + bytes > max_bytes && !entries_.empty()) drop_oldest();
  if (bytes > max_bytes) return;
  bytes_ += bytes;
  entries_.push_back({sequence, bytes, reply});
}

void Replies::forget(uint64_t sequence) {
  while (!entries_.empty() && entries_.front().sequence <= sequence) drop_oldest();
}

const v1::Reply* Replies::find(uint64_t sequence) const {
  for (const Entry& entry : entries_) {
    if (entry.sequence == sequence) return &entry.reply;
  }
  return nullptr;
}

void Replies::clear() {
  entries_.clear();
  bytes_ = 0;
}

void Replies::drop_oldest() {
  bytes_ -= entries_.front().bytes;
  entries_.pop_front();
}

}  // namespace tt::server
