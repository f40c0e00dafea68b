// AsyncErrorTracker: errors that kernels detect on a device after the call has returned.
//
// A GPU kernel detects an index out of range long after the call has returned. The kernel records the error in the
// call's DeviceErrorCell and continues with a harmless value. Until the device has completed the call, its results and
// all values computed from them carry the call's ticket (engine/tensor/pending_errors.h). Retiring the ticket drops it,
// or replaces exactly those values by a Poison. One tracker per session, used under the session's lock.
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

// Stored in memory that both the device and the host can access. The first thread that detects an error sets `raised`
// and writes the cell.
struct DeviceErrorCell {
  uint32_t raised = 0;
  int32_t detail = 0;
  int64_t values[3] = {};
};

// Builds the user's error message from a cell: "index 7 is out of bounds for dimension 0 with size 5".
using ErrorFormatter = Error (*)(const DeviceErrorCell& cell);

// A call that may detect an error, and the function that formats the error.
struct PendingCheck {
  DeviceErrorCell* cell;
  ErrorFormatter format;
  std::string op;
  uint32_t site = 0;
};

// The checks of a captured graph (engine/session/graphs.h), and the storages that a checked call or a later call wrote.
struct CapturedChecks {
  Device device;
  // kMaxTickets cells in the device's staging memory; null if there are no checks.
  std::shared_ptr<DeviceErrorCell> cells;
  std::vector<PendingCheck> checks;
  std::vector<Ref<Storage>> dependents;
};

class AsyncErrorTracker {
 public:
  AsyncErrorTracker() = default;
  ~AsyncErrorTracker();
  AsyncErrorTracker(const AsyncErrorTracker&) = delete;
  AsyncErrorTracker& operator=(const AsyncErrorTracker&) = delete;

  // Returns a cleared cell for the current call, which runs in `stream`. Called by kernels. If kMaxTickets calls are
  // open, waits for the oldest one and throws its error if it has one.
  DeviceErrorCell* open(Stream& stream, ErrorFormatter format);
  // Call after a backend kernel has run or thrown. Marks its results and the tensors that it wrote as depending on its
  // arguments' tickets and on the cells that it opened.
  void attach(const Call& call);
  // Returns the first error among the tickets in `pending_errors`, or null. Requires that the device has completed
  // those calls.
  std::shared_ptr<const Poison> find_error(const PendingErrors& pending_errors) const;
  // Retires the calls that the device has completed, without waiting. Poisons the names in `slots` whose values came
  // from a failed call.
  void retire_completed(SlotTable& slots);
  // Call between two calls. If more than half of the tickets are open, waits for the older half and retires them, so
  // that the next call finds room.
  void make_room(SlotTable& slots);
  bool empty() const { return tickets_.empty() && !captured_; }

  // While a graph is captured, opened cells belong to the graph.
  void begin_capture(Device device);
  CapturedChecks end_capture();
  // Call after the graph was replayed in `stream`. If the graph is replayed again before an error is retired, both
  // replays report the error.
  void on_replay(const CapturedChecks& captured, Stream& stream);

 private:
  struct Ticket {
    absl::InlinedVector<PendingCheck, 1> checks;
    Device device;
    std::shared_ptr<Event> passed;              // null while the call runs
    std::shared_ptr<DeviceErrorCell> of_graph;  // the graph's cells; null if the cells are the tracker's
  };
  struct Cells {  // per device
    Device device;
    DeviceErrorCell* memory = nullptr;
    std::vector<DeviceErrorCell*> idle;
  };
  DeviceErrorCell* acquire_cell(Device device);
  DeviceErrorCell* open_captured(ErrorFormatter format);
  void attach_captured(const Call& call);
  void make_room_for_one(Stream& stream);
  void retire_oldest();
  bool is_shared(const DeviceErrorCell* cells) const;  // whether another ticket uses the same cells
  bool has_passed(const Ticket& ticket, std::shared_ptr<const Poison>* poison) const;  // sets *poison if it failed

  std::deque<Ticket> tickets_;
  uint64_t oldest_ = 0;  // ticket number of tickets_.front()
  size_t opened_ = 0;    // number of tickets that the current call opened
  std::vector<Cells> cells_;
  std::unique_ptr<CapturedChecks> captured_;  // non-null while a graph is captured
};

}  // namespace tt
