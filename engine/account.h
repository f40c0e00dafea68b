// Account: one tenant's bytes on all devices, and its name.
//
// Owned by the session (shared by its storages, which may outlive it in another session's hands); thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "engine/rules/device.h"

namespace tt {

class Account {
 public:
  // What names a line of the tenant's program by its number; called by any thread.
  using DescribeSite = std::function<std::string(uint32_t site)>;

  explicit Account(std::string owner, uint64_t limit = 0, DescribeSite describe_site = {})
      : owner_(std::move(owner)), limit_(limit), describe_site_(std::move(describe_site)) {}
  // False, and nothing charged, where it would go over the limit (0: none).
  bool charge(uint64_t bytes, Device device = {});
  void refund(uint64_t bytes, Device device = {});
  uint64_t held() const { return all_.held.load(std::memory_order_relaxed); }
  uint64_t peak() const { return all_.peak.load(std::memory_order_relaxed); }
  // Of a GPU alone.
  uint64_t held(Device gpu) const { return of(gpu).held.load(std::memory_order_relaxed); }
  uint64_t peak(Device gpu) const { return of(gpu).peak.load(std::memory_order_relaxed); }
  void reset_peak(Device gpu) { of(gpu).peak.store(held(gpu), std::memory_order_relaxed); }
  uint64_t limit() const { return limit_; }
  const std::string& owner() const { return owner_; }
  // "train.py:12 in step"; empty where it is not known.
  std::string describe(uint32_t site) const { return describe_site_ && site ? describe_site_(site) : std::string(); }

 private:
  const std::string owner_;
  const uint64_t limit_;
  const DescribeSite describe_site_;
  struct Meter {
    std::atomic<uint64_t> held{0};
    std::atomic<uint64_t> peak{0};
    uint64_t add(uint64_t bytes);  // gives what is held then
    void raise_peak(uint64_t now);
  };
  static constexpr size_t kGpus = 128;  // as many as a Device can name
  Meter& of(Device gpu) { return gpus_[static_cast<size_t>(gpu.index) % kGpus]; }
  const Meter& of(Device gpu) const { return gpus_[static_cast<size_t>(gpu.index) % kGpus]; }

  Meter all_;
  std::array<Meter, kGpus> gpus_;
};

}  // namespace tt
