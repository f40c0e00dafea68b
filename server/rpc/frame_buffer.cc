#include "server/rpc/frame_buffer.h"

#include <algorithm>

#include "engine/memory/bytes.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/frame_limits.h"
#include "server/session/frame_size.h"

namespace tt::server {
namespace {

using google::protobuf::Arena;

constexpr uint64_t kMaxKept = 2 << 20;
// Frames of up to this size are parsed without measuring them first, because they need at most a few MiB of memory
// whatever they contain. Most frames are smaller.
constexpr uint64_t kUnmeasuredBytes = 64 << 10;
// Memory that a frame may use even if the account has no room. Without it, a session at its limit could not release
// anything.
constexpr uint64_t kMinBudget = frame_limits::kMemory;
static_assert(Limits().max_results == frame_limits::kResults);

}  // namespace

FrameBuffer::FrameBuffer(const Limits& limits, std::shared_ptr<Account> account)
    : limits_(limits),
      account_(std::move(account)),
      frame_(Arena::CreateMessage<v1::Frame>(&arena_)),
      scratch_(Arena::CreateMessage<v1::Frame>(&arena_)),
      templates_(limits_, account_),
      charge_(account_, 0) {}

uint64_t FrameBuffer::max_decoded_bytes() const {
  return std::min(limits_.max_decoded_bytes, std::max(account_->host_room(), kMinBudget));
}

void FrameBuffer::parse(uint64_t bytes, Source source) {
  clear();
  refusal_.reset();
  bytes_ = bytes;
  if (bytes > limits_.max_frame_bytes) {
    refusal_.emplace(ErrorKind::kValue,
                     absl::StrCat("a frame must have at most ", limits_.max_frame_bytes, " bytes, got ", bytes));
    return;
  }
  parse_message(bytes, source);
  if (!refusal_ && frame_->has_compression()) decompress();
  if (refusal_) return;
  if (frame_->layout_size() != 0 || frame_->copies_size() != 0) {
    if (std::optional<Error> error = templates_.expand(frame_, scratch_, max_decoded_bytes())) {
      return refuse(*std::move(error));
    }
  }
  inline_bytes_ += count_inline_bytes();
  charge_.set(arena_.SpaceAllocated() + inline_bytes_ + decompressed_.capacity());
}

void FrameBuffer::decompress() {
  const uint64_t bytes = frame_->compression().bytes();
  if (bytes > limits_.max_frame_bytes) {
    return refuse(Error(ErrorKind::kValue, absl::StrCat("a frame must have at most ", limits_.max_frame_bytes,
                                                        " bytes, got ", bytes, " when decompressed")));
  }
  if (decompressed_.size() < bytes) decompressed_.resize(bytes);
  const absl::Span<char> into(decompressed_.data(), bytes);
  const absl::Status status = decompressor_.decompress(frame_->compressed(), frame_->compression(), into);
  if (!status.ok()) return refuse(Error(ErrorKind::kValue, absl::StrCat("malformed frame: ", status.message())));
  frame_->Clear();
  parse_message(bytes, [&](auto read) {
    google::protobuf::io::ArrayInputStream stream(into.data(), static_cast<int>(bytes));
    return read(&stream);
  });
  if (!refusal_ && frame_->has_compression()) {
    refuse(Error(ErrorKind::kValue, "malformed frame: it is compressed twice"));
  }
}

// Measures and parses a frame. Sets refusal_ if the frame is malformed or exceeds a limit.
void FrameBuffer::parse_message(uint64_t bytes, Source source) {
  if (bytes > kUnmeasuredBytes) {
    const uint64_t max_bytes = max_decoded_bytes();
    FrameSize size;
    const bool is_frame = source([&](Stream* stream) { return measure_frame(stream, max_bytes, &size); });
    if (size.instructions > limits_.max_instructions) {
      refusal_.emplace(ErrorKind::kValue,
                       absl::StrCat("a frame must have at most ", limits_.max_instructions, " instructions, got more"));
    } else if (size.reads > limits_.max_reads) {
      refusal_.emplace(ErrorKind::kValue,
                       absl::StrCat("a frame must have at most ", limits_.max_reads, " reads, got more"));
    } else if (size.bytes > max_bytes) {
      refusal_.emplace(ErrorKind::kOutOfMemory,
                       absl::StrCat("a frame of ", bytes_text(bytes), " needs more than the ", bytes_text(max_bytes),
                                    " of host memory that the session has left"));
    } else if (!is_frame) {
      refusal_.emplace(ErrorKind::kValue, "malformed frame");
    }
    if (refusal_) return;
  }
  if (!source([&](Stream* stream) { return frame_->ParseFromZeroCopyStream(stream); })) {
    refuse(Error(ErrorKind::kValue, "malformed frame"));
  }
}

void FrameBuffer::refuse(Error reason) {
  templates_.forget();
  inline_bytes_ = kMaxKept;  // so that the arena is reset
  clear();
  refusal_ = std::move(reason);
}

void FrameBuffer::clear() {
  if (inline_bytes_ < kMaxKept && arena_.SpaceUsed() < kMaxKept) {
    frame_->Clear();
    scratch_->Clear();
    return;
  }
  // Clear() does not reuse the memory of inline bytes and lists, so the arena is reset before that memory accumulates.
  inline_bytes_ = 0;
  decompressed_ = {};
  arena_.Reset();
  frame_ = Arena::CreateMessage<v1::Frame>(&arena_);
  scratch_ = Arena::CreateMessage<v1::Frame>(&arena_);
  charge_.set(arena_.SpaceAllocated());
}

uint64_t FrameBuffer::count_inline_bytes() const {
  uint64_t bytes = frame_->traceparent().size();
  for (const v1::Instruction& instruction : frame_->instructions()) {
    for (const v1::Argument& arg : instruction.args()) bytes += arg.has_characters() ? arg.characters().size() : 0;
  }
  for (const v1::Site& site : frame_->sites()) bytes += site.file().size() + site.function().size();
  return bytes;
}

}  // namespace tt::server
