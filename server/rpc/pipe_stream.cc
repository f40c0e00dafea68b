#include "server/rpc/pipe_stream.h"

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace tt::server {
namespace {

using shared_ring::Outcome;

// How often a waiting thread checks whether the stream has ended. stop() wakes it, unless it is about to sleep.
constexpr std::chrono::milliseconds kCheck{250};
constexpr size_t kMaxKept = 256 << 10;

}  // namespace

std::optional<std::chrono::nanoseconds> PipeStream::next_sleep() const {
  if (stopped_.load(std::memory_order_acquire)) return std::nullopt;
  return kCheck;
}

void PipeStream::resize(size_t bytes) {
  if (bytes_.capacity() > kMaxKept && bytes <= kMaxKept) std::string().swap(bytes_);
  bytes_.resize(bytes);
  charge_.set(bytes_.capacity());
}

bool PipeStream::Read(FrameBuffer* buffer) {
  auto sleep = [this] { return next_sleep(); };
  uint32_t size = 0;
  if (pipes_->frames.await(&size, has_answered_, sleep) != Outcome::kReady) return false;
  if (size <= max_frame_bytes_) {
    resize(size);
    if (pipes_->frames.read(bytes_.data(), size, sleep) != Outcome::kReady) return false;
  }  // otherwise the buffer refuses the frame by its size
  buffer->parse(size, [&](auto read) {
    google::protobuf::io::ArrayInputStream stream(bytes_.data(), static_cast<int>(bytes_.size()));
    return read(&stream);
  });
  has_answered_ = buffer->frame().reads_size() > 0;
  return true;
}

bool PipeStream::Write(const v1::Reply& reply) {
  resize(reply.ByteSizeLong());
  reply.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(bytes_.data()));
  return pipes_->replies.write(bytes_, [this] { return next_sleep(); }) == Outcome::kReady;
}

}  // namespace tt::server
