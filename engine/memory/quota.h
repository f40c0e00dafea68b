// Quota: what the accounts of one principal hold together, and what they may hold.
//
// An account (account.h) charges its quota for what it charges itself. Its bookkeeping and handles are reported in
// steps, so that instructions of different sessions do not write to one counter. The first kHostAllowance bytes of
// bookkeeping are free, once for all accounts of the quota; tensors cannot take their place. Limits may be changed at
// any time: what is held stays, and requests fail until enough has been freed. Shared by the principal's sessions and
// by what outlives them. A quota may have parents, which are charged, too: a published model counts both for its
// principal and for all models. Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/schema/device.h"

namespace tt {

// 0: no limit.
struct QuotaLimits {
  uint64_t memory = 0;       // tensors on all devices, and bookkeeping above the quota's allowance
  uint64_t host_memory = 0;  // tensors on the CPU, and that bookkeeping
  uint64_t gpu_memory = 0;   // tensors on each GPU or other accelerator
  uint64_t handles = 0;
  uint64_t transfers = 0;         // uploads and downloads at a time
  uint64_t checkpoint_bytes = 0;  // files in the principal's folder
};

class Quota {
 public:
  // Bookkeeping that is not charged against the limits.
  static constexpr uint64_t kHostAllowance = uint64_t{6} << 20;
  // Bytes by which the bookkeeping of all accounts together may exceed the limit (Account::is_overdrawn).
  static constexpr uint64_t kHostOverdraft = uint64_t{2} << 20;
  static constexpr uint64_t kMinOverdraft = uint64_t{64} << 10;  // of each account

  // `counts_tensors`: whether tensors are charged; otherwise only bookkeeping and handles are, and limits of memory are
  // for bookkeeping.
  explicit Quota(std::string principal, const QuotaLimits& limits = {},
                 std::vector<std::shared_ptr<Quota>> parents = {}, bool counts_tensors = true)
      : principal_(std::move(principal)), parents_(std::move(parents)), counts_tensors_(counts_tensors) {
    set_limits(limits);
  }
  const std::string& principal() const { return principal_; }
  bool counts_tensors() const { return counts_tensors_; }
  // Limits the bookkeeping of all quotas of the process together, including their allowances; one of them may have
  // half. 0: no limit.
  static void limit_bookkeeping_of_all(uint64_t bytes);
  QuotaLimits limits() const;
  void set_limits(const QuotaLimits& limits);

  // Charges bytes of a tensor. Returns false and charges nothing if a limit would be exceeded.
  bool charge(uint64_t bytes, Device device);
  void refund(uint64_t bytes, Device device);
  // Charges bytes that are charged on `from` on `to` instead. If `is_limited`, returns false and changes nothing if the
  // limit of `to` would be exceeded.
  bool move(uint64_t bytes, Device from, Device to, bool is_limited);
  // Adds to the bookkeeping and to the number of handles; both may be negative. Never fails: see host_room().
  void add_bookkeeping(int64_t bytes, int64_t handles);
  // The number of bytes by which bookkeeping may still grow.
  uint64_t host_room() const;
  // Counts the accounts whose bookkeeping has reached the limit, among which the overdraft is divided.
  void add_overdrawn(int64_t accounts) {
    overdrawn_.fetch_add(static_cast<uint64_t>(accounts), std::memory_order_relaxed);
  }
  uint64_t overdraft() const {
    return std::max(kHostOverdraft / std::max<uint64_t>(overdrawn_.load(std::memory_order_relaxed), 1), kMinOverdraft);
  }
  // Whether there may be more handles.
  bool has_handles() const {
    const uint64_t limit = max_handles_.load(std::memory_order_relaxed);
    return limit == 0 || handles() < limit;
  }
  // Returns false if there are too many transfers. Otherwise call end_transfer() once.
  bool begin_transfer();
  void end_transfer() { transfers_.fetch_sub(1, std::memory_order_relaxed); }
  // Bytes of checkpoints that are being written. Returns the bytes that all writers have reserved, with these.
  uint64_t reserve_checkpoint(uint64_t bytes) { return writing_.fetch_add(bytes, std::memory_order_relaxed) + bytes; }
  void release_checkpoint(uint64_t bytes) { writing_.fetch_sub(bytes, std::memory_order_relaxed); }

  // Bytes of tensors on all devices; on the CPU or on one GPU.
  uint64_t held() const { return all_.load(std::memory_order_relaxed); }
  uint64_t held(Device device) const { return meter(device).load(std::memory_order_relaxed); }
  // Above the allowance.
  uint64_t bookkeeping() const {
    const uint64_t bytes = bookkeeping_.load(std::memory_order_relaxed);
    return bytes > kHostAllowance ? bytes - kHostAllowance : 0;
  }
  uint64_t handles() const { return handles_.load(std::memory_order_relaxed); }
  uint64_t transfers() const { return transfers_.load(std::memory_order_relaxed); }

  // Which limit refuses the request, and what is held: "the sessions of alice hold 1.5 GiB of their limit of 2.0 GiB on
  // each GPU". Empty if none does.
  std::string refusal(uint64_t bytes, Device device) const;
  // The same for bookkeeping and handles.
  std::string bookkeeping_refusal(uint64_t bytes) const;

 private:
  using Counter = std::atomic<uint64_t>;
  const Counter& meter(Device device) const {
    return is_accelerator(device.type) ? gpus_[accelerator_number(device)] : cpu_;
  }
  Counter& meter(Device device) { return const_cast<Counter&>(std::as_const(*this).meter(device)); }

  bool charge_here(uint64_t bytes, Device device);
  void refund_here(uint64_t bytes, Device device);
  bool move_here(uint64_t bytes, Device from, Device to, bool is_limited);

  const std::string principal_;
  const std::vector<std::shared_ptr<Quota>> parents_;
  const bool counts_tensors_;
  Counter max_memory_{0}, max_host_memory_{0}, max_gpu_memory_{0}, max_handles_{0}, max_transfers_{0},
      max_checkpoint_bytes_{0};
  Counter all_{0}, cpu_{0}, bookkeeping_{0}, handles_{0}, transfers_{0}, writing_{0}, overdrawn_{0};
  std::array<Counter, kNumAccelerators> gpus_{};
};

}  // namespace tt
