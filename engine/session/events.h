// Events: a session's marks in the order of its work on devices, by the client's number.
//
// Used under the session's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "engine/device/stream.h"

namespace tt {

class Events {
 public:
  static constexpr size_t kMost = 1 << 16;

  // Moves a mark that is there. Throws Error (RuntimeError) where there are too many.
  void record(int64_t number, Stream& stream);
  // Waits for both. Throws Error (RuntimeError) on marks that were never set, or are of two devices.
  double elapsed_ms(int64_t number, int64_t later) const;
  bool passed(int64_t number) const;  // or never set
  void drop(int64_t number) { marks_.erase(number); }

 private:
  struct Mark {
    Device device;
    std::unique_ptr<Event> event;
  };
  const Mark& find(int64_t number) const;

  absl::flat_hash_map<int64_t, Mark> marks_;
};

}  // namespace tt
