// SiteTable: assigns numbers to the user's source lines and accumulates the waiting time per line.
//
// Thread-safe. Its lock may be acquired while other locks are held. No lock is acquired while it is held.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "client/link/counters.h"
#include "proto/wire.h"

namespace tt::client {

class SiteTable {
 public:
  // Returns the line's number, starting at 1. Sets `*is_new` if the line is new.
  uint32_t number(std::string_view file, uint32_t line, std::string_view function, bool* is_new);
  // Returns for example "train.py:12 in step"; "" for 0 and for unknown numbers.
  std::string name(uint32_t site) const;
  // Sets file, line and function; clears them for 0 and for unknown numbers.
  void describe(uint32_t site, v1::Site* description) const;
  void count_wait(uint32_t site, WaitKind kind, double seconds);
  // Sets the totals over all lines.
  void total(Counters* counters) const;
  // Returns the waits of each line and kind, sorted by waiting time, the longest first.
  std::vector<WaitCount> waits() const;

 private:
  struct Site {
    std::string file, function;
    uint32_t line = 0;
    struct Total {
      uint64_t count = 0;
      double seconds = 0;
    };
    std::array<Total, kWaitKinds> waits{};  // by kind
  };
  using Key = std::tuple<std::string, uint32_t, std::string>;

  std::string name_of(uint32_t site) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  absl::flat_hash_map<Key, uint32_t> numbers_ ABSL_GUARDED_BY(mutex_);
  // Indexed by number; entry 0 is for calls without a line.
  std::vector<Site> sites_ ABSL_GUARDED_BY(mutex_) = std::vector<Site>(1);
};

}  // namespace tt::client
