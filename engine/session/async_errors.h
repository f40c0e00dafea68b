// AsyncErrorTracker: calls that a device has still to do, and that may find what they were given to be wrong.
//
// An index that is out of range on a GPU is found by the kernel, long after the call has returned. The kernel writes
// what it met into its call's cell and goes on with something harmless. Until the device has passed the call, what it
// computed, and all that was computed from it, carries the call's ticket (engine/tensor/pending_errors.h); then the
// ticket is settled: dropped, or turned into the Poison of exactly those values. One per session, used under its lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/device/stream.h"
#include "engine/schema/device.h"
#include "engine/schema/error.h"
#include "engine/schema/ref.h"
#include "engine/tensor/pending_errors.h"
#include "engine/tensor/storage.h"

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

// A call that may find a fault, and how to tell of it.
struct PendingCheck {
  FaultCell* cell;
  FaultText text;
  std::string op;
  uint32_t site = 0;
};

// The suspects of a graph (engine/graph.h), and the storages that one of them, or a call after the first, wrote.
struct CapturedChecks {
  Device device;
  std::shared_ptr<FaultCell> cells;  // kMost, of the device's staging memory; null where there are no suspects
  std::vector<PendingCheck> suspects;
  std::vector<Ref<Storage>> doubtful;
};

class AsyncErrorTracker {
 public:
  AsyncErrorTracker() = default;
  ~AsyncErrorTracker();
  AsyncErrorTracker(const AsyncErrorTracker&) = delete;
  AsyncErrorTracker& operator=(const AsyncErrorTracker&) = delete;

  // For kernels: a cleared cell for the call under way, which works in `stream`. Where kMost calls are open it waits
  // for the oldest, and throws what that one found, if it found something.
  FaultCell* open(Stream& stream, FaultText text);
  // After a backend kernel has run: its results, and what it wrote, came from its arguments and from the cells that it
  // opened.
  void attach(const Call& call);
  // Requires that the device has passed all that `taint` speaks of. Null: nothing was wrong.
  std::shared_ptr<const Poison> verdict(const PendingErrors& taint) const;
  // Settles what the device has passed, without waiting; poisons the names in `slots` whose values came from a failed
  // call.
  void settle(SlotTable& slots);
  // Between two calls: settles the older ones, waiting for them, where so many are open that the next might find no
  // room.
  void make_room(SlotTable& slots);
  bool empty() const { return tickets_.empty() && !captured_; }

  // While a graph is captured: what is opened is the graph's.
  void begin_capture(Device device);
  CapturedChecks end_capture();
  // The graph was replayed in `stream`. A fault of one replay that was not settled before the next is blamed on both.
  void replayed(const CapturedChecks& faults, Stream& stream);

 private:
  struct Ticket {
    absl::InlinedVector<PendingCheck, 1> suspects;
    Device device;
    std::shared_ptr<Event> passed;        // null while the call is under way
    std::shared_ptr<FaultCell> of_graph;  // the cells are a graph's; null where they are the log's
  };
  struct Cells {  // of a device
    Device device;
    FaultCell* memory = nullptr;
    std::vector<FaultCell*> idle;
  };
  FaultCell* take_cell(Device device);
  FaultCell* open_captured(FaultText text);
  void attach_captured(const Call& call);
  void make_room_for_one(Stream& stream);
  void retire_oldest();
  bool is_shared(const FaultCell* cells) const;  // whether another ticket's suspects have them too
  bool has_passed(const Ticket& ticket, std::shared_ptr<const Poison>* poison) const;  // and what it found, if anything

  std::deque<Ticket> tickets_;
  uint64_t oldest_ = 0;  // the number of tickets_.front()
  size_t opened_ = 0;    // by the call under way
  std::vector<Cells> cells_;
  std::unique_ptr<CapturedChecks> captured_;  // while a graph is captured
};

}  // namespace tt
