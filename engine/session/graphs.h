// Graphs: a session's captured graphs, by the client's number.
//
// During a capture, the session's calls on that device are recorded but not executed: results have sizes and memory,
// but no values until the first replay. Memory comes from a private pool of the graph, so its addresses stay valid. A
// replay reads its inputs at the captured addresses: to pass new inputs, write into the captured tensors.
//
// A graph cannot contain copies from or to the host, calls that wait for the device (item(), sizes that depend on
// data), or tensors of other devices: such a call fails, and so does the capture. Each replay draws new random numbers
// from the session's generator. Used under the session's lock. Must be destroyed before its context's streams.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/stream.h"
#include "engine/session/async_errors.h"
#include "engine/tensor/tensor.h"

namespace tt {

struct Call;

// The position of a draw in the sequence of random numbers (generator.h).
struct PhiloxState {
  uint64_t seed, offset;
  // Null outside graphs. In a graph: the address of two numbers on the draw's device, which each replay sets. They are
  // the seed and an increment for the offset.
  const uint64_t* state = nullptr;
};

class Graphs {
 public:
  Graphs() = default;
  ~Graphs();
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  // All throw Error: RuntimeError if a capture is in progress (or, for end(), is not), ValueError if the number is in
  // use (begin) or unknown, NotImplementedError if the device does not support graphs.
  void begin(int64_t number, Device device);
  // Returns the number of calls captured. If a call could not be captured, throws the first reason and frees the
  // number.
  int64_t end(int64_t number);
  void replay(int64_t number);
  void drop(int64_t number);

  bool capturing() const { return capturing_; }
  bool empty() const { return graphs_.empty(); }
  // Called by the dispatcher before a call runs: throws if a graph cannot contain the call.
  void check(const Call& call);
  // The position of a draw of `count` blocks during a capture.
  PhiloxState draw(uint64_t count);

 private:
  struct Captured {
    int64_t number;
    Device device;
    Stream* stream;  // owned by the context
    uint64_t pool;
    std::unique_ptr<Graph> graph;
    CapturedChecks checks;
    Tensor state;        // PhiloxState::state
    uint64_t drawn = 0;  // blocks of random numbers that each replay draws
    int64_t calls = 0;
    std::string refusal = {};  // why the graph cannot be replayed (the first reason); empty if it can
  };
  using Iterator = std::vector<Captured>::iterator;
  Iterator find(int64_t number);
  [[noreturn]] void refuse(std::string why);
  void erase(Iterator at);
  static void advance_generator(const Captured& captured);
  void abandon();  // undoes begin() after the stream failed to start the capture

  std::vector<Captured> graphs_;  // the last one is being captured if capturing_
  bool capturing_ = false;
};

class Dispatcher;

// The operators that capture and replay graphs for a client (ops/graphs.yaml).
void register_graph_operators(Dispatcher& dispatcher);

}  // namespace tt
