// Sites: the lines of a user's program that a session's instructions come from, for messages. One per session, kept
// by its account too, which outlives it: a memory snapshot names lines from another thread. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "proto/wire.h"

namespace tt::server {

class Sites {
 public:
  // Remembers what a frame names for the first time; no more than a program can have, and no more of each than a
  // message can use.
  void add(const v1::Frame& frame);
  // "train.py:12 in step"; empty where the number was never named.
  std::string describe(uint32_t id) const;
  void clear();
  // Of host memory, about.
  uint64_t bytes() const;

 private:
  static constexpr size_t kMaxSites = 1 << 16;
  static constexpr uint64_t kMaxBytes = 4 << 20;
  static constexpr size_t kMaxText = 256;
  mutable Mutex mutex_;
  absl::flat_hash_map<uint32_t, std::string> sites_ ABSL_GUARDED_BY(mutex_);
  uint64_t text_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tt::server
