// Graphs: a session's captured graphs, by the client's number.
//
// While one is captured, the session's calls on that device are planned but not done: results have sizes and memory,
// and values after the first replay. Memory comes from a pool of the graph's own, so that a replay finds it as it was;
// what the graph read stays where it is, so a caller feeds a graph by writing into the tensors that it read. A graph
// cannot hold copies from and to the host, whatever waits for the device (item(), sizes that depend on data), and
// tensors of other devices: such a call fails, and then the capture. Random numbers are new ones at each replay, from
// where the session's generator is then. Used under the session's lock; ends before its context's streams.
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

// Where a draw begins in the sequence of random numbers (generator.h).
struct DrawPlace {
  uint64_t seed, offset;
  // Null, or two numbers on the draw's device: the seed, and what is added to the offset. A graph's, that a replay
  // sets.
  const uint64_t* state = nullptr;
};

class Graphs {
 public:
  Graphs() = default;
  ~Graphs();
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  // All throw Error: RuntimeError where a capture is under way or none is, ValueError on a number that is in use or is
  // not, NotImplementedError on a device that has no graphs.
  void begin(int64_t number, Device device);
  // How many calls it is. Throws the first reason why they cannot be replayed; the number is free again then.
  int64_t end(int64_t number);
  void replay(int64_t number);
  void drop(int64_t number);

  bool capturing() const { return capturing_; }
  // For the dispatcher, before a call runs: throws where a graph cannot hold it.
  void check(const Call& call);
  // Of a draw of `count` blocks under capture.
  DrawPlace draw(uint64_t count);

 private:
  struct Captured {
    int64_t number;
    Device device;
    Stream* stream;  // the context's
    uint64_t pool;
    std::unique_ptr<Graph> graph;
    CapturedChecks faults;
    Tensor state;        // DrawPlace's
    uint64_t drawn = 0;  // blocks of random numbers that a replay takes
    int64_t calls = 0;
    std::string refusal = {};  // the first reason why it cannot be replayed; empty: none
  };
  using Place = std::vector<Captured>::iterator;
  Place find(int64_t number);
  [[noreturn]] void refuse(std::string why);
  void erase(Place at);
  static void take_numbers(const Captured& captured);
  void abandon();  // what was begun but for the stream

  std::vector<Captured> graphs_;  // the last one is under capture where capturing_
  bool capturing_ = false;
};

class Dispatcher;

// The operators by which a client captures and replays (ops/graphs.yaml).
void register_graph_operators(Dispatcher& dispatcher);

}  // namespace tt
