// FrameBuffer: the message that a stream's frames are parsed into, reused for each frame.
//
// Cleared messages keep their memory, so frames of a warm session are parsed without allocating. A parsed frame may
// need much more memory than its bytes on the wire (an empty instruction: 2 bytes on the wire, over 100 in memory), so
// a frame is measured before it is parsed, and refused if the limits or the account have no room. The frame's memory is
// charged to the account. Repeated instructions are restored from the stream's templates (TemplateTable), so that a
// frame has all of its instructions. One per stream, used by its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "engine/memory/account.h"
#include "engine/schema/error.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "proto/chunk_codec.h"
#include "proto/wire.h"
#include "server/limits.h"
#include "server/rpc/template_table.h"

namespace tt::server {

class FrameBuffer {
 public:
  using Stream = google::protobuf::io::ZeroCopyInputStream;
  // Calls its argument with a stream at the start of the frame's bytes, and returns the argument's result.
  using Source = absl::FunctionRef<bool(absl::FunctionRef<bool(Stream*)>)>;

  FrameBuffer(const Limits& limits, std::shared_ptr<Account> account);

  // Replaces the frame by one parsed from the `bytes` bytes of `source`. If the bytes are malformed or too many, the
  // frame is empty and refusal() returns the reason. The stream must end then.
  void parse(uint64_t bytes, Source source);
  const v1::Frame& frame() const { return *frame_; }
  const std::optional<Error>& refusal() const { return refusal_; }
  // Size of the frame on the wire.
  uint64_t bytes() const { return bytes_; }

 private:
  void clear();
  void refuse(Error reason);
  void parse_message(uint64_t bytes, Source source);
  // Replaces the compressed frame by its contents.
  void decompress();
  uint64_t max_decoded_bytes() const;
  uint64_t count_inline_bytes() const;

  const Limits limits_;
  const std::shared_ptr<Account> account_;
  google::protobuf::Arena arena_;
  v1::Frame* frame_;
  v1::Frame* scratch_;  // empty except in TemplateTable
  TemplateTable templates_;
  ChunkDecompressor decompressor_;
  std::string decompressed_;
  uint64_t bytes_ = 0;
  uint64_t inline_bytes_ = 0;  // bytes of strings, which are stored outside the arena
  std::optional<Error> refusal_;
  HostCharge charge_;
};

}  // namespace tt::server
