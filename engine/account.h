// Account: one tenant's bytes on all devices, and its name.
//
// Owned by the session (shared by its storages, which may outlive it in another session's hands); thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace tt {

class Account {
 public:
  // What names a line of the tenant's program by its number; called by any thread.
  using DescribeSite = std::function<std::string(uint32_t site)>;

  explicit Account(std::string owner, uint64_t limit = 0, DescribeSite describe_site = {})
      : owner_(std::move(owner)), limit_(limit), describe_site_(std::move(describe_site)) {}
  // False, and nothing charged, where it would go over the limit (0: none).
  bool charge(uint64_t bytes);
  void refund(uint64_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  uint64_t limit() const { return limit_; }
  const std::string& owner() const { return owner_; }
  // "train.py:12 in step"; empty where it is not known.
  std::string describe(uint32_t site) const { return describe_site_ && site ? describe_site_(site) : std::string(); }

 private:
  const std::string owner_;
  const uint64_t limit_;
  const DescribeSite describe_site_;
  std::atomic<uint64_t> held_{0};
  std::atomic<uint64_t> peak_{0};
};

}  // namespace tt
