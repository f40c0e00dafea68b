// Events: a session's recorded stream events, by the client's number.
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
  static constexpr size_t kMaxEvents = 1 << 16;

  // Records or re-records an event. Throws Error (RuntimeError) if there are kMaxEvents events already.
  void record(int64_t number, Stream& stream);
  // Waits for both events. Throws Error (RuntimeError) if an event was not recorded or their devices differ.
  double elapsed_ms(int64_t number, int64_t later) const;
  bool passed(int64_t number) const;  // true also for an event that was never recorded
  void drop(int64_t number) { marks_.erase(number); }
  bool empty() const { return marks_.empty(); }

 private:
  struct Mark {
    Device device;
    std::unique_ptr<Event> event;
  };
  const Mark& find(int64_t number) const;

  absl::flat_hash_map<int64_t, Mark> marks_;
};

}  // namespace tt
