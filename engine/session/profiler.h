// Profiler: records when a session's instructions, kernels and nodes of the tape ran.
//
// Owned by the session's Context while a profile is recorded; without one, nothing is called. Used by the thread on
// which the Context is current. Times are nanoseconds of the engine's monotonic clock (CLOCK_MONOTONIC on Linux). On a
// GPU, a kernel's time is that of its launch; what the GPU executed is recorded separately, if requested and possible
// (device/device_tracer.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/device/device_tracer.h"
#include "engine/dispatch/dispatcher.h"

namespace tt {

class Profiler {
 public:
  struct Options {
    bool shapes = false;  // records the sizes of tensor arguments and results; else only the numbers of dimensions
    uint64_t max_events = 0;
    bool devices = false;  // records what devices execute
  };

  // One event, as bytes() contains it (little endian).
  struct Event {
    enum Kind : uint16_t {
      kInstruction = 0,  // from its start to the start of the next instruction, or to the end of its part of the frame
      kKernel = 1,
      kNode = 2,         // a node of a backward pass computed gradients
      kEvaluation = 3,   // same, and delivered them to the nodes of the arguments
      kInPlace = 0x100,  // a flag of kernels: it wrote to its first argument
    };
    uint64_t start = 0;
    uint64_t duration = 0;
    int64_t allocated = 0;     // bytes of the session's tensors after the event; 0 without an account
    uint64_t instruction = 0;  // position among the session's instructions since the profile's start
    uint32_t site = 0;         // the client's number for the source line
    uint32_t shapes = 0;       // of a kernel: position in the table of shapes (0: none), or kRanks and more
    uint16_t op = 0;           // of a node: its position in "nodes"
    uint16_t kind = 0;
    uint16_t depth = 0;   // number of kernels and nodes that contain this one
    uint16_t merged = 0;  // number of further instructions or kernels that ran in the same loop
  };

  // A frame that the session executed while the profile was recorded. Times are those of now().
  struct Frame {
    uint64_t sequence = 0;
    uint64_t awaited = 0;   // when the engine began to wait for it, after the session's last reply; 0: not known
    uint64_t received = 0;  // when it had been read; a frame that arrived before `awaited` waited until then
    uint64_t started = 0;   // when its first instruction began
    uint64_t ended = 0;     // when its reply was complete
    uint64_t first_instruction = 0;  // position among the session's instructions, as Event::instruction
  };

  explicit Profiler(Options options);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // `frame` has the members up to `received`.
  void begin_frame(Frame frame);
  void end_frame();
  void begin_instruction(const Op& op, uint32_t count, uint32_t site);
  // A suspended instruction is recorded as another event at the same position when it continues.
  void end_instruction(bool suspended = false);
  void begin_kernel(const Call& call);
  void end_kernel(const Call& call);
  // A node begins, which may contain kernels and nodes. Returns a number for end_node().
  size_t begin_node();
  // The node ends, and with it kernels in it that failed. `form`: see bytes(). `site` is that of the node's operator.
  void end_node(size_t begun, Event::Kind kind, const std::string& form, uint32_t site);
  uint64_t host_bytes() const;

  bool records_devices() const { return trace_ != 0; }
  // Ends the recording of devices. Requires that the session's work on devices is done.
  void stop_devices();
  // Header (magic, size of an event, numbers of events, of events that exceeded max_events, of entries in the table of
  // shapes, of bytes of text, of frames, of device activities, of device activities that were lost; nine uint64),
  // events, frames, device activities (`launch` is the position of the event that launched it, or kNoEvent), the table
  // of int64 (per entry: number of tensor arguments, and per tensor its number of dimensions and its sizes; then the
  // same of the results), and a JSON object: "operators" (names by number), "nodes" (forms by position; see
  // Node::form()), "activities" (names by position), "notice".
  std::string bytes() const;

  static constexpr uint32_t kNoEvent = UINT32_MAX;
  // Without Options::shapes, Event::shapes has this bit, the number of tensor arguments (4 bits from bit 8), and the
  // numbers of dimensions of the first (4 bits from bit 4) and the second one (4 bits). Larger numbers become 15.
  static constexpr uint32_t kRanks = uint32_t{1} << 31;
  static uint64_t now();

 private:
  uint32_t add(Event event);  // returns its position, or kNoEvent
  void begin_launches();
  void end_launches(uint32_t event);
  uint32_t add_shapes(const Call& call);

  const Options options_;
  std::vector<Event> events_;
  std::vector<Frame> frames_;  // at most max_events
  Frame frame_;                // the running frame
  bool in_frame_ = false;
  std::vector<int64_t> shapes_ = {0};
  std::vector<uint64_t> open_;  // start of each kernel and node that runs
  std::vector<std::string> node_forms_;
  absl::flat_hash_map<std::string, uint16_t> node_form_positions_;
  uint64_t chain_start_ = 0;  // of the kernel that runs several operators; 0: none
  uint32_t chain_position_ = 0;
  Event instruction_;
  bool in_instruction_ = false;
  uint64_t next_instruction_ = 0;
  uint64_t dropped_ = 0;
  uint32_t trace_ = 0;                   // of the device tracer; 0: none
  const void* owner_ = nullptr;          // the account whose copies are part of the trace
  std::vector<uint32_t> launches_;       // the event of each launch number
  std::vector<uint32_t> open_launches_;  // numbers of the launches that this thread is in
  DeviceTrace devices_;                  // filled by stop_devices()
};

// Registers profiler_start, profiler_stop and profiler_clock.
void register_profiler_operators(Dispatcher& dispatcher);

}  // namespace tt
