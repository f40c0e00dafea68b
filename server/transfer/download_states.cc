#include "server/transfer/download_states.h"

#include <algorithm>
#include <random>
#include <vector>

namespace tt::server {

bool DownloadStates::State::matches(const Tensor& tensor, const ExecutorStats& stats) const {
  const TensorMeta& now = tensor.meta();
  const bool same = storage == tensor->storage && version == tensor.version() && meta.dtype == now.dtype &&
                    meta.sizes == now.sizes && meta.strides == now.strides && meta.offset == now.offset &&
                    failed == stats.failed;  // a failed instruction may have written to the tensor
  // A replayed graph writes to a device's storages without incrementing versions.
  return same && (tensor.device().type == DeviceType::kCPU || instructions == stats.instructions);
}

DownloadStates::DownloadStates(std::chrono::milliseconds keep_for, std::weak_ptr<TransferMonitor> monitor)
    : keep_for_(keep_for), monitor_(std::move(monitor)), last_number_(uint64_t{std::random_device()()} << 31) {}

uint64_t DownloadStates::add(const Tensor& tensor, const ExecutorStats& stats) {
  MutexLock lock(mutex_);
  for (State& state : states_) {
    if (state.matches(tensor, stats)) return keep(state);
  }
  if (states_.size() >= kMaxStates) states_.pop_front();
  states_.push_back(
      {++last_number_, tensor->storage, tensor.version(), tensor.meta(), stats.instructions, stats.failed, {}});
  count_.store(states_.size(), std::memory_order_relaxed);
  return keep(states_.back());
}

bool DownloadStates::matches(uint64_t number, const Tensor& tensor, const ExecutorStats& stats) {
  MutexLock lock(mutex_);
  for (State& state : states_) {
    if (state.number == number && state.matches(tensor, stats)) return keep(state) != 0;
  }
  return false;
}

uint64_t DownloadStates::keep(State& state) {
  state.expires = std::chrono::steady_clock::now() + keep_for_;
  if (auto monitor = monitor_.lock()) monitor->expire_at(state.expires, weak_from_this());
  return state.number;
}

void DownloadStates::drop_unreferenced() {
  MutexLock lock(mutex_);
  std::vector<const Storage*> unused;
  for (const State& state : states_) {
    const auto ours = std::count_if(states_.begin(), states_.end(),
                                    [&](const State& other) { return other.storage == state.storage; });
    if (state.storage->ref_count() == static_cast<uint32_t>(ours)) unused.push_back(state.storage.get());
  }
  std::erase_if(states_, [&](const State& state) {
    return std::find(unused.begin(), unused.end(), state.storage.get()) != unused.end();
  });
  count_.store(states_.size(), std::memory_order_relaxed);
}

void DownloadStates::drop_expired() {
  const auto now = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  std::erase_if(states_, [&](const State& state) { return now >= state.expires; });
  count_.store(states_.size(), std::memory_order_relaxed);
}

uint32_t DownloadStates::references(const Storage& storage) {
  MutexLock lock(mutex_);
  const auto count = std::count_if(states_.begin(), states_.end(),
                                   [&](const State& state) { return state.storage.get() == &storage; });
  return static_cast<uint32_t>(count);
}

void DownloadStates::clear() {
  MutexLock lock(mutex_);
  states_.clear();
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace tt::server
