// PipeStream: the frames and replies of a session's stream, through the memory that the engine shares with the client.
//
// The gRPC stream stays open beside it and shows when the client is gone: its thread calls stop(), another thread the
// other functions. The client is not trusted: bytes are copied before they are parsed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proto/wire.h"
#include "server/rpc/frame_buffer.h"
#include "server/transfer/shared_segment.h"

namespace tt::server {

class PipeStream {
 public:
  PipeStream(std::shared_ptr<SharedSegment> segment, std::unique_ptr<SharedSegment::Pipes> pipes,
             uint64_t max_frame_bytes, std::shared_ptr<Account> account)
      : segment_(std::move(segment)),
        pipes_(std::move(pipes)),
        max_frame_bytes_(max_frame_bytes),
        charge_(std::move(account), 0) {}

  // Waits for the next frame. Returns false after stop(), or if the client has broken the pipe.
  bool Read(FrameBuffer* buffer);
  bool Write(const v1::Reply& reply);
  // Ends waits. Any thread.
  void stop() {
    stopped_.store(true, std::memory_order_release);
    pipes_->frames.wake();
    pipes_->replies.wake();
  }

 private:
  std::optional<std::chrono::nanoseconds> next_sleep() const;
  void resize(size_t bytes);

  const std::shared_ptr<SharedSegment> segment_;
  const std::unique_ptr<SharedSegment::Pipes> pipes_;
  const uint64_t max_frame_bytes_;
  std::atomic<bool> stopped_{false};
  bool has_answered_ = false;  // the last frame had reads, so the client's next one may follow at once
  std::string bytes_;  // of the frame or reply in progress
  HostCharge charge_;  // for bytes_
};

}  // namespace tt::server
