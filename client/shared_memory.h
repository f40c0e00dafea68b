// SharedMemory: the client's side of the memory that an engine of the same host shares with it.
//
// Thread-safe; each lane serves one transfer at a time.
#pragma once

#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/shared_ring.h"
#include "proto/wire.h"

namespace tt::client {

class SharedMemory {
 public:
  // Null where the engine offers none, or it cannot be reached from here.
  static std::shared_ptr<SharedMemory> open(const v1::SharedMemory& offer);

  // How many threads may copy one transfer. Throws Error (ValueError) where TELETENSOR_TRANSFER_THREADS is no number
  // from 1 to shared_ring::kChunks.
  static unsigned allowed_threads();

  // A lane, held for one transfer; empty where it is in use or broken: bytes then go through gRPC.
  std::unique_lock<std::mutex> claim_upload() { return claim(upload_); }
  std::unique_lock<std::mutex> claim_download() { return claim(download_); }

  // Move all of a transfer, a large one by several threads (TELETENSOR_TRANSFER_THREADS), which have ended on return;
  // the caller has claimed the lane. `go_on` is asked by one of them at a time. CANCELLED where it said so, DATA_LOSS
  // where the engine's counters lie; the lane is unusable afterwards.
  absl::Status write(absl::Span<const char> bytes, absl::FunctionRef<bool()> go_on);
  absl::Status read(absl::Span<char> into, absl::FunctionRef<bool()> go_on);

 private:
  struct Guarded {
    shared_ring::End end;
    std::mutex mutex{};
    bool broken = false;  // under the mutex
  };
  explicit SharedMemory(std::unique_ptr<shared_ring::Segment> segment);

  static std::unique_lock<std::mutex> claim(Guarded& lane) {
    std::unique_lock lock(lane.mutex, std::try_to_lock);
    return lock && lane.broken ? std::unique_lock<std::mutex>() : std::move(lock);
  }
  template <typename Copy>
  absl::Status move(Guarded& lane, size_t bytes, Copy copy, absl::FunctionRef<bool()> go_on);

  std::unique_ptr<shared_ring::Segment> segment_;
  Guarded upload_;
  Guarded download_;
};

}  // namespace tt::client
