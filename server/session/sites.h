// Sites: source lines of the user's program, for error messages. One per session. Shared with the session's account,
// which may outlive the session; a memory snapshot reads source lines from another thread. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "proto/wire.h"

namespace tt {
class ImageInput;
class ImageOutput;
}  // namespace tt

namespace tt::server {

class Sites {
 public:
  // Stores the sites that a frame defines, up to kMaxSites and kMaxBytes; file and function names are truncated to
  // kMaxText.
  void add(const v1::Frame& frame);
  // Returns for example "train.py:12 in step"; empty if `id` was never defined.
  std::string describe(uint32_t id) const;
  void clear();
  // Returns the approximate host memory in bytes.
  uint64_t bytes() const;

  // For images of the session.
  void write_image(ImageOutput* out) const;
  void read_image(ImageInput* in);

 private:
  static constexpr size_t kMaxSites = 1 << 16;
  static constexpr uint64_t kMaxBytes = 4 << 20;
  static constexpr size_t kMaxText = 256;
  mutable Mutex mutex_;
  absl::flat_hash_map<uint32_t, std::string> sites_ ABSL_GUARDED_BY(mutex_);
  uint64_t text_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tt::server
