// DownloadStates: identifies the bytes that a session's downloads have sent, so that clients can resume a failed one.
//
// A download resumes only if its tensor's bytes are unchanged: same storage, no writes, same geometry. The storage is
// kept, so that its address is not reused, as long as a tensor of the session uses it and at most for `keep_for`. Owned
// by a Session. Thread-safe; methods that take a tensor require the session's mutex.
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

class DownloadStates final : public Expirable, public std::enable_shared_from_this<DownloadStates> {
 public:
  // Numbers begin at random: a session may continue in another process (server/daemon/upgrade.h), where no number of
  // this one may match.
  DownloadStates(std::chrono::milliseconds keep_for, std::weak_ptr<TransferMonitor> monitor);

  // Returns the nonzero number that identifies the tensor's current bytes. `stats` are those of the session's executor.
  uint64_t add(const Tensor& tensor, const ExecutorStats& stats);
  // Whether the tensor's bytes are those that `state` identifies. If so, extends their expiry.
  bool matches(uint64_t state, const Tensor& tensor, const ExecutorStats& stats);
  // Drops storages that nothing else references. No cost if nothing is kept.
  void sweep() {
    if (count_.load(std::memory_order_relaxed) != 0) drop_unreferenced();
  }
  void drop_expired() override;
  void clear();
  // How often a storage is referred to.
  uint32_t references(const Storage& storage);

 private:
  static constexpr size_t kMaxStates = 16;
  struct State {
    uint64_t number;
    Ref<Storage> storage;
    uint32_t version;
    TensorMeta meta;
    uint64_t instructions;
    uint64_t failed;
    std::chrono::steady_clock::time_point expires;
    bool matches(const Tensor& tensor, const ExecutorStats& stats) const;
  };
  void drop_unreferenced();
  uint64_t keep(State& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // extends the expiry; returns the number

  const std::chrono::milliseconds keep_for_;
  const std::weak_ptr<TransferMonitor> monitor_;
  std::atomic<size_t> count_{0};
  Mutex mutex_;
  std::deque<State> states_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::server
