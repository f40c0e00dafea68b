// Account: one tenant's name, its bytes on all devices, and its host memory for bookkeeping.
//
// An account may belong to a quota (quota.h), which is charged, too, and whose limits hold for all its accounts
// together.
//
// Bookkeeping is host memory in addition to the tensors' bytes: handles, the tape, errors, frames, replies. Its byte
// counts are estimates. The first kHostAllowance bytes are free; the rest counts against the account's limit as tensors
// do. A quota counts the bookkeeping of all its accounts and has one such allowance.
//
// Owned by the session (shared with its storages, which may outlive it if another session holds them). Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/memory/history.h"
#include "engine/memory/quota.h"
#include "engine/schema/device.h"

namespace tt {

class Account {
 public:
  // Describes a line of the tenant's program, given its number. Any thread may call it.
  using DescribeSite = std::function<std::string(uint32_t site)>;

  // Bookkeeping that is not charged against the limit.
  static constexpr uint64_t kHostAllowance = Quota::kHostAllowance;
  // Bytes by which bookkeeping may exceed the limit, so that the errors of rejected instructions can be stored.
  static constexpr uint64_t kHostOverdraft = Quota::kHostOverdraft;
  // The limit for bookkeeping if the account has no limit.
  static constexpr uint64_t kMaxHost = uint64_t{4} << 30;

  explicit Account(std::string owner, uint64_t limit = 0, DescribeSite describe_site = {},
                   uint64_t tenant = new_tenant(), std::shared_ptr<Quota> quota = nullptr)
      : owner_(std::move(owner)),
        limit_(limit),
        describe_site_(std::move(describe_site)),
        tenant_(tenant),
        quota_(std::move(quota)) {}
  ~Account();
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;
  // The recorded allocations of the account's tensors; null if they were never recorded, so that a test of one pointer
  // suffices.
  MemoryHistory* history() const { return history_.load(std::memory_order_acquire); }
  // Returns the history, which is created at the first call. Requires the session's lock.
  MemoryHistory& make_history();

  // Identifies the owner of a memory block's contents: a block is zeroed before another tenant gets it.
  // Never 0. Accounts of one principal may share a tenant.
  uint64_t tenant() const { return tenant_; }
  // Returns a new number at each call.
  static uint64_t new_tenant();

  // Whether the quota is charged as well: not for bytes that another account of the same quota pays for already.
  enum class QuotaPart : uint8_t { kCharged, kPaid };
  // Charges `bytes`. Returns false and charges nothing if the limit (0 if unlimited), or one of the quota's, would be
  // exceeded.
  bool charge(uint64_t bytes, Device device = {}, QuotaPart part = QuotaPart::kCharged);
  void refund(uint64_t bytes, Device device = {}, QuotaPart part = QuotaPart::kCharged);
  // Charges bytes that are charged on `from`, with the quota, on `to` instead. If `is_limited`, returns false and
  // changes nothing if a limit of the quota for `to` would be exceeded. The account's own limit is for all devices
  // together.
  bool move(uint64_t bytes, Device from, Device to, bool is_limited = true);
  uint64_t held() const { return all_.held.load(std::memory_order_relaxed); }
  uint64_t peak() const { return all_.peak.load(std::memory_order_relaxed); }
  // The bytes held on one GPU or other accelerator, and their peak.
  uint64_t held(Device gpu) const { return gpu_meter(gpu).held.load(std::memory_order_relaxed); }
  uint64_t peak(Device gpu) const { return gpu_meter(gpu).peak.load(std::memory_order_relaxed); }
  void reset_peak(Device gpu) { gpu_meter(gpu).peak.store(held(gpu), std::memory_order_relaxed); }
  uint64_t limit() const { return limit_; }
  const std::shared_ptr<Quota>& quota() const { return quota_; }
  // Why charge() refuses: "session 3 holds 1.0 GiB and 8.0 MiB of bookkeeping of its 1.5 GiB limit", or the quota's
  // reason.
  std::string refusal(uint64_t bytes, Device device = {}) const;
  // Why there is no room for this much more bookkeeping.
  std::string bookkeeping_refusal(uint64_t bytes) const;

  // Sets the bookkeeping bytes and the number of handles that the session's thread counted. Requires the session's
  // lock, so plain stores suffice.
  void set_bookkeeping(uint64_t bytes, uint64_t handles) {
    bookkeeping_.store(bytes, std::memory_order_relaxed);
    handles_.store(handles, std::memory_order_relaxed);
    if (quota_) report_steps();
  }
  // Reports bookkeeping and handles to the quota, and reads its room. Any thread. Requires a quota.
  void report();
  // Sets the number of handles. Requires the session's lock.
  void set_handles(uint64_t handles) { handles_.store(handles, std::memory_order_relaxed); }
  // Sets the bytes of the running frame's program, which the frame's size limits. Requires the session's lock.
  void set_program(uint64_t bytes) {
    program_.store(bytes, std::memory_order_relaxed);
    if (quota_) report();
  }
  // Charges bookkeeping that the session's thread does not count. Any thread. Never fails: call has_host_room() before,
  // or is_overdrawn() after.
  void charge_host(uint64_t bytes) {
    host_.fetch_add(bytes, std::memory_order_relaxed);
    if (quota_) report_steps();
  }
  void refund_host(uint64_t bytes) {
    host_.fetch_sub(bytes, std::memory_order_relaxed);
    if (quota_) report_steps();
  }
  uint64_t host_bytes() const {
    return bookkeeping_.load(std::memory_order_relaxed) + host_.load(std::memory_order_relaxed) + program();
  }
  // The number of bytes by which bookkeeping may still grow; of the quota's room, what the last report() found.
  uint64_t host_room() const {
    const uint64_t max = max_host_bytes(), now = host_bytes();
    return std::min(now < max ? max - now : 0, quota_room_.load(std::memory_order_relaxed));
  }
  bool has_host_room(uint64_t bytes) const { return bytes <= (quota_ ? room_now() : host_room()); }
  // Whether bookkeeping exceeds the limit plus the overdraft. The running frame's program does not count, because its
  // bytes are freed with the frame: its instructions fail one by one instead.
  bool is_overdrawn() const {
    const uint64_t bytes = host_bytes() - program();
    if (bytes > max_host_bytes() + kHostOverdraft) return true;
    const uint64_t from = overdraft_from_.load(std::memory_order_relaxed);
    return from != 0 && bytes > from + quota_->overdraft();
  }
  const std::string& owner() const { return owner_; }
  // "train.py:12 in step"; empty if unknown.
  std::string describe(uint32_t site) const { return describe_site_ && site ? describe_site_(site) : std::string(); }

 private:
  // Steps in which bookkeeping and handles are reported to the quota.
  static constexpr uint64_t kReportBytes = uint64_t{64} << 10;
  static constexpr uint64_t kReportHandles = 256;

  uint64_t program() const { return program_.load(std::memory_order_relaxed); }
  // The bookkeeping that counts against the account's own limit.
  uint64_t counted_host_bytes() const {
    const uint64_t bytes = host_bytes();
    return bytes > kHostAllowance ? bytes - kHostAllowance : 0;
  }
  // The number of bytes by which bookkeeping may still grow, with the quota's room of this moment.
  uint64_t room_now() const;
  // Reports bookkeeping and handles to the quota if they have changed by a step. Any thread.
  void report_steps() {
    const auto differ = [](uint64_t now, const std::atomic<uint64_t>& reported, uint64_t step) {
      return now - reported.load(std::memory_order_relaxed) + step > 2 * step;
    };
    if (differ(host_bytes(), reported_host_, kReportBytes) ||
        differ(handles_.load(std::memory_order_relaxed), reported_handles_, kReportHandles)) {
      report();
    }
  }
  // The limit for bookkeeping, given the bytes of the tensors that the account holds.
  uint64_t max_host_bytes() const {
    if (limit_ == 0) return kMaxHost;
    const uint64_t tensors = held();
    return kHostAllowance + (tensors < limit_ ? limit_ - tensors : 0);
  }

  const std::string owner_;
  const uint64_t limit_;
  const DescribeSite describe_site_;
  const uint64_t tenant_;
  const std::shared_ptr<Quota> quota_;  // null: none
  std::atomic<uint64_t> bookkeeping_{0};
  std::atomic<uint64_t> handles_{0};
  std::atomic<uint64_t> reported_host_{0}, reported_handles_{0};  // to the quota
  std::atomic<uint64_t> quota_room_{UINT64_MAX};                  // for bookkeeping
  std::atomic<uint64_t> overdraft_from_{0};  // bookkeeping when the quota's room ended; 0: there is room
  std::atomic<uint64_t> host_{0};
  std::atomic<uint64_t> program_{0};
  struct Meter {
    std::atomic<uint64_t> held{0};
    std::atomic<uint64_t> peak{0};
    uint64_t add(uint64_t bytes);  // returns the new total
    void raise_peak(uint64_t now);
  };
  Meter& gpu_meter(Device gpu) { return gpus_[accelerator_number(gpu)]; }
  const Meter& gpu_meter(Device gpu) const { return gpus_[accelerator_number(gpu)]; }

  Meter all_;
  std::array<Meter, kNumAccelerators> gpus_;
  std::unique_ptr<MemoryHistory> owned_history_;
  std::atomic<MemoryHistory*> history_{nullptr};
};

// Charges an account for bookkeeping during the lifetime of an object.
class HostCharge {
 public:
  HostCharge() = default;
  // If `account` is null, nothing is charged.
  HostCharge(std::shared_ptr<Account> account, uint64_t bytes) : account_(std::move(account)) { set(bytes); }
  HostCharge(HostCharge&& other) noexcept
      : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}
  HostCharge& operator=(HostCharge&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HostCharge() { set(0); }

  uint64_t bytes() const { return bytes_; }
  void set(uint64_t bytes) {
    if (!account_ || bytes == bytes_) return;
    bytes > bytes_ ? account_->charge_host(bytes - bytes_) : account_->refund_host(bytes_ - bytes);
    bytes_ = bytes;
  }

 private:
  std::shared_ptr<Account> account_;
  uint64_t bytes_ = 0;
};

}  // namespace tt
