// SharedMemory: client side of the memory that an engine on the same host shares with the client.
//
// Thread-safe; each lane serves one transfer at a time.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "proto/message_pipe.h"
#include "proto/wire.h"

namespace tt::client {

class SharedMemory {
 public:
  // Returns null if the memory cannot be mapped by this process.
  static std::shared_ptr<SharedMemory> open(const v1::SharedMemory& offer);

  // Identifies the memory in the calls that use it.
  uint64_t nonce() const { return segment_->header().nonce; }

  // The ends of a stream's pipes.
  struct Pipes {
    std::shared_ptr<SharedMemory> memory;
    shared_ring::PipeWriter frames;
    shared_ring::PipeReader replies;
  };
  // Returns null if a stream has used them.
  static std::unique_ptr<Pipes> claim_pipes(const std::shared_ptr<SharedMemory>& memory);

  // Number of threads that may copy one transfer. Throws Error (ValueError) if TELETENSOR_TRANSFER_THREADS is not a
  // number from 1 to shared_ring::kChunks.
  static unsigned allowed_threads();

  // Claims a lane for one transfer. Empty if the lane is in use or broken; bytes then go through gRPC.
  std::unique_lock<Mutex> claim_upload() { return claim(upload_); }
  std::unique_lock<Mutex> claim_download() { return claim(download_); }

  // Abandons the claimed lane's transfer before any byte was moved. The lane is unusable afterwards, because the engine
  // may have begun to fill it.
  void abandon_upload() { upload_.broken = true; }
  void abandon_download() { download_.broken = true; }
  bool has_broken_lane() const { return upload_.broken || download_.broken; }
  // Claims both lanes, so that no transfer is in progress; returns empty locks if a transfer is in progress.
  std::pair<std::unique_lock<Mutex>, std::unique_lock<Mutex>> claim_all();

  // Copies all bytes of a transfer. Large transfers use several threads (TELETENSOR_TRANSFER_THREADS), which have ended
  // on return. The caller must have claimed the lane. During a wait one thread at a time calls `should_continue`; the
  // calling thread calls `stop` every few milliseconds. Returns CANCELLED if `should_continue` returned false or `stop`
  // returned true, DATA_LOSS if the engine's counters are invalid. The lane is unusable after either error.
  absl::Status write(absl::Span<const char> bytes, absl::FunctionRef<bool()> should_continue,
                     absl::FunctionRef<bool()> stop);
  absl::Status read(absl::Span<char> into, absl::FunctionRef<bool()> should_continue, absl::FunctionRef<bool()> stop);

 private:
  struct Lane {
    shared_ring::LaneEnd end ABSL_GUARDED_BY(mutex);
    Mutex mutex{};
    std::atomic<bool> broken = false;  // set under the mutex
  };
  explicit SharedMemory(std::unique_ptr<shared_ring::Segment> segment);

  static std::unique_lock<Mutex> claim(Lane& lane) {
    std::unique_lock lock(lane.mutex, std::try_to_lock);
    return lock && lane.broken ? std::unique_lock<Mutex>() : std::move(lock);
  }
  // Requires that the caller has claimed the lane.
  template <typename Copy>
  absl::Status move(Lane& lane, size_t bytes, Copy copy, absl::FunctionRef<bool()> should_continue,
                    absl::FunctionRef<bool()> stop);

  std::unique_ptr<shared_ring::Segment> segment_;
  Lane upload_;
  Lane download_;
  std::atomic<bool> has_stream_{false};
};

}  // namespace tt::client
