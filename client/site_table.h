// SiteTable: numbers for the user's source lines, and what was waited for at each.
//
// Thread-safe; its lock is taken under others and takes none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "client/link/counters.h"

namespace tt::client {

class SiteTable {
 public:
  // The line's number, from 1; `*is_new` where it was given just now.
  uint32_t number(std::string_view file, uint32_t line, std::string_view function, bool* is_new);
  // "train.py:12 in step"; "" for 0 and what is no number.
  std::string name(uint32_t site) const;
  void count_wait(uint32_t site, double seconds);
  // Of all lines together.
  void total(uint64_t* waits, double* seconds) const;
  // The longest first.
  std::vector<WaitCount> waits() const;

 private:
  struct Site {
    std::string file, function;
    uint32_t line = 0;
    uint64_t waits = 0;
    double seconds = 0;
  };
  using Key = std::tuple<std::string, uint32_t, std::string>;

  std::string name_of(uint32_t site) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  absl::flat_hash_map<Key, uint32_t> numbers_ ABSL_GUARDED_BY(mutex_);
  // By number; 0 is for what named no line.
  std::vector<Site> sites_ ABSL_GUARDED_BY(mutex_) = std::vector<Site>(1);
};

}  // namespace tt::client
