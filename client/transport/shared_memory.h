// SharedMemory: the client's side of the memory that an engine of the same host shares with it.
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
  std::unique_lock<Mutex> claim_upload() { return claim(upload_); }
  std::unique_lock<Mutex> claim_download() { return claim(download_); }

  // What the claimed lane carries is given up before a byte was moved: the lane is unusable afterwards, since the
  // engine may have begun to fill it.
  void give_up_upload() { upload_.broken = true; }
  void give_up_download() { download_.broken = true; }
  bool has_broken_lane() const { return upload_.broken || download_.broken; }
  // Both lanes, so that no transfer is under way; empty locks where there is one.
  std::pair<std::unique_lock<Mutex>, std::unique_lock<Mutex>> claim_all();

  // Move all of a transfer, a large one by several threads (TELETENSOR_TRANSFER_THREADS), which have ended on return;
  // the caller has claimed the lane. `go_on` is asked while there is something to wait for, by one of them at a time;
  // `stop` every few milliseconds, by the calling thread. CANCELLED where one of them said so, DATA_LOSS where the
  // engine's counters lie; the lane is unusable afterwards.
  absl::Status write(absl::Span<const char> bytes, absl::FunctionRef<bool()> go_on, absl::FunctionRef<bool()> stop);
  absl::Status read(absl::Span<char> into, absl::FunctionRef<bool()> go_on, absl::FunctionRef<bool()> stop);

 private:
  struct Guarded {
    shared_ring::End end ABSL_GUARDED_BY(mutex);
    Mutex mutex{};
    std::atomic<bool> broken = false;  // set under the mutex
  };
  explicit SharedMemory(std::unique_ptr<shared_ring::Segment> segment);

  static std::unique_lock<Mutex> claim(Guarded& lane) {
    std::unique_lock lock(lane.mutex, std::try_to_lock);
    return lock && lane.broken ? std::unique_lock<Mutex>() : std::move(lock);
  }
  // Requires that the caller has claimed the lane.
  template <typename Copy>
  absl::Status move(Guarded& lane, size_t bytes, Copy copy, absl::FunctionRef<bool()> go_on,
                    absl::FunctionRef<bool()> stop);

  std::unique_ptr<shared_ring::Segment> segment_;
  Guarded upload_;
  Guarded download_;
};

}  // namespace tt::client
