// FrameBuffer: the frame that a stream is parsed into, again and again.
//
// Cleared messages keep their memory, so a warm session's frames are parsed without allocating. Bytes that may take
// much more memory as messages than they do on the wire (an empty instruction is 2 bytes there, and more than 100 here)
// are counted before they are parsed, and refused where the limits or the account have no room for them. What the frame
// takes is charged to the account. One per stream, used by its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "engine/memory/account.h"
#include "engine/schema/error.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "proto/wire.h"
#include "server/limits.h"

namespace tt::server {

class FrameBuffer {
 public:
  using Stream = google::protobuf::io::ZeroCopyInputStream;
  // Calls its argument with the frame's bytes, from the first. Returns what that returned.
  using Source = absl::FunctionRef<bool(absl::FunctionRef<bool(Stream*)>)>;

  FrameBuffer(const Limits& limits, std::shared_ptr<Account> account);

  // Replaces the frame by what `source` has, which are `bytes`. Where they are no frame, or too much, the frame is
  // empty and refusal() says why.
  void parse(uint64_t bytes, Source source);
  const v1::Frame& frame() const { return *frame_; }
  const std::optional<Error>& refusal() const { return refusal_; }

 private:
  void clear();
  uint64_t count_inline_bytes() const;

  const Limits limits_;
  const std::shared_ptr<Account> account_;
  google::protobuf::Arena arena_;
  v1::Frame* frame_;
  uint64_t inline_bytes_ = 0;  // of strings, which are outside of the arena
  std::optional<Error> refusal_;
  HostCharge charge_;
};

}  // namespace tt::server
