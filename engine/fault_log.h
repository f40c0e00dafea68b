// FaultLog: calls that a device has still to do, and that may find what they were given to be wrong.
//
// An index that is out of range on a GPU is found by the kernel, long after the call has returned. The kernel writes
// what it met into its call's cell and goes on with something harmless. Until the device has passed the call, what it
// computed, and all that was computed from it, carries the call's ticket (engine/taint.h); then the ticket is settled:
// dropped, or turned into the Poison of exactly those values. One a session, used under its lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/rules/device.h"
#include "engine/rules/error.h"
#include "engine/stream.h"
#include "engine/taint.h"

namespace tt {

struct Call;
struct Poison;
class SlotTable;

// Lies where the device and the host both reach it. The first thread that finds a fault takes it, by setting `raised`.
struct FaultCell {
  uint32_t raised = 0;
  int32_t detail = 0;
  int64_t values[3] = {};
};

// What was wrong, as the user is told: "index 7 is out of bounds for dimension 0 with size 5".
using FaultText = Error (*)(const FaultCell& cell);

class FaultLog {
 public:
  FaultLog() = default;
  ~FaultLog();
  FaultLog(const FaultLog&) = delete;
  FaultLog& operator=(const FaultLog&) = delete;

  // For kernels: a cleared cell for the call under way, which works in `stream`. Where kMost calls are open it waits for
  // the oldest, and throws what that one found, if it found something.
  FaultCell* open(Stream& stream, FaultText text);
  // After a backend kernel has run: its results, and what it wrote, came from its arguments and from the cells that it
  // opened.
  void attach(const Call& call);
  // Requires that the device has passed all that `taint` speaks of. Null: nothing was wrong.
  std::shared_ptr<const Poison> verdict(const Taint& taint) const;
  // Settles what the device has passed, without waiting; poisons the names in `slots` whose values came from a failed
  // call.
  void settle(SlotTable& slots);
  // Between two calls: settles the older ones, waiting for them, where so many are open that the next might find no room.
  void make_room(SlotTable& slots);
  bool empty() const { return tickets_.empty(); }

 private:
  struct Ticket {
    FaultCell* cell;
    FaultText text;
    Device device;
    std::shared_ptr<Event> passed;  // null while the call is under way
    std::string op;
    uint32_t site = 0;
  };
  struct Cells {  // of a device
    Device device;
    FaultCell* memory = nullptr;
    std::vector<FaultCell*> idle;
  };
  FaultCell* take_cell(Device device);
  void retire_oldest();
  std::shared_ptr<const Poison> poison_of(const Ticket& ticket) const;

  std::deque<Ticket> tickets_;
  uint64_t oldest_ = 0;  // the number of tickets_.front()
  size_t opened_ = 0;    // by the call under way
  std::vector<Cells> cells_;
};

}  // namespace tt
