// DownloadStates: which bytes a session's downloads have sent, for clients that continue one that broke off.
//
// A download continues only where its tensor's bytes are still the same: the storage is the same one, nothing has been
// written to it, and the geometry is the same. The storage is kept meanwhile, so that no other one has its address: for
// as long as a tensor of the session has it, `keep_for` at most. Owned by a Session. Thread-safe; the session's mutex
// is held for whatever looks at a tensor.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>

#include "base/mutex.h"
#include "engine/program/executor.h"
#include "engine/tensor/tensor.h"
#include "server/transfer/transfer_monitor.h"

namespace tt::server {

class DownloadStates final : public Expiring, public std::enable_shared_from_this<DownloadStates> {
 public:
  DownloadStates(std::chrono::milliseconds keep_for, std::weak_ptr<TransferMonitor> monitor)
      : keep_for_(keep_for), monitor_(std::move(monitor)) {}

  // The number, never 0, that names the tensor's bytes as they are now. `stats` are the session's.
  uint64_t add(const Tensor& tensor, const ExecutorStats& stats);
  // Whether the tensor's bytes are those that add() named so, and are kept for longer.
  bool matches(uint64_t state, const Tensor& tensor, const ExecutorStats& stats);
  // Drops storages that nothing else holds. Free where nothing is kept.
  void sweep() {
    if (count_.load(std::memory_order_relaxed) != 0) sweep_all();
  }
  void drop_expired() override;
  void clear();

 private:
  static constexpr size_t kMost = 16;
  struct State {
    uint64_t number;
    Ref<Storage> storage;
    uint32_t version;
    TensorMeta meta;
    uint64_t instructions;
    uint64_t failed;
    std::chrono::steady_clock::time_point expires;
    bool is_of(const Tensor& tensor, const ExecutorStats& stats) const;
  };
  void sweep_all();
  uint64_t keep(State& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // for longer; gives its number

  const std::chrono::milliseconds keep_for_;
  const std::weak_ptr<TransferMonitor> monitor_;
  std::atomic<size_t> count_{0};
  Mutex mutex_;
  std::deque<State> states_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tt::server
