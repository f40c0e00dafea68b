#include "engine/session/graphs.h"

#include <algorithm>
#include <utility>

#include "engine/device/cancellation.h"
#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"

namespace tt {
Graphs::~Graphs() {
  if (capturing_) {
    try {
      end(graphs_.back().number);
    } catch (const Error&) {  // the error does not matter: the graph is discarded
    }
  }
  while (!graphs_.empty()) erase(graphs_.end() - 1);
}

Graphs::Iterator Graphs::find(int64_t number) {
  auto at = std::find_if(graphs_.begin(), graphs_.end(), [=](const Captured& g) { return g.number == number; });
  tt::check(ErrorKind::kValue, at != graphs_.end(), "unknown graph ", number);
  return at;
}

void Graphs::begin(int64_t number, Device device) {
  tt::check(!capturing_, "another graph is being captured");
  const bool exists =
      std::any_of(graphs_.begin(), graphs_.end(), [=](const Captured& g) { return g.number == number; });
  tt::check(ErrorKind::kValue, !exists, "graph ", number, " already exists");
  Context& context = Context::current();
  Stream& stream = context.stream(device);
  context.release_turn(device);
  Allocator& allocator = Devices::instance().allocator(device);
  // The state is allocated outside the graph's pool, because the graph's kernels may overwrite any memory of the pool.
  Tensor state = tt::empty({2}, DType::kInt64, device);
  const uint64_t pool = allocator.make_pool();
  allocator.begin_pool(pool, stream);
  graphs_.push_back({number, device, &stream, pool, nullptr, {}, std::move(state)});
  context.async_errors().begin_capture(device);
  try {
    stream.begin_capture();  // last, because all later work in the stream becomes part of the graph
  } catch (...) {
    abandon();
    throw;
  }
  capturing_ = true;
  context.autocast.clear();
  context.autocast.is_capturing = true;
}

int64_t Graphs::end(int64_t number) {
  tt::check(capturing_ && graphs_.back().number == number, "graph ", number, " is not being captured");
  capturing_ = false;
  Context::current().autocast.is_capturing = false;
  Captured& captured = graphs_.back();
  Devices::instance().allocator(captured.device).end_pool(captured.pool, *captured.stream);
  captured.checks = Context::current().async_errors().end_capture();
  std::string why = captured.refusal;
  try {
    captured.graph = captured.stream->end_capture();
  } catch (const Error& error) {
    if (why.empty()) why = error.message();
  }
  if (why.empty()) return captured.calls;
  erase(graphs_.end() - 1);
  fail(ErrorKind::kRuntime, "the graph was not captured: ", why);
}

void Graphs::abandon() {
  Context::current().async_errors().end_capture();
  const Captured& begun = graphs_.back();
  Devices::instance().allocator(begun.device).end_pool(begun.pool, *begun.stream);
  erase(graphs_.end() - 1);
}

void Graphs::replay(int64_t number) {
  tt::check(!capturing_, "a graph is being captured");
  Captured& captured = *find(number);
  if (captured.drawn > 0) advance_generator(captured);
  captured.graph->replay();
  Context::current().async_errors().on_replay(captured.checks, *captured.stream);
}

PhiloxState Graphs::draw(uint64_t count) {
  Captured& captured = graphs_.back();
  const uint64_t offset = captured.drawn;
  captured.drawn += count;
  return {0, offset, captured.state.data_as<const uint64_t>()};
}

// Advances the session's generator and writes the replay's seed and offset to the device. Copies through pinned memory
// in stream order, because an earlier replay may still be running.
void Graphs::advance_generator(const Captured& captured) {
  constexpr size_t kBytes = 2 * sizeof(uint64_t);
  Generator& generator = Context::current().generator;
  Allocator& staging = Devices::instance().backend(captured.device).staging();
  auto* numbers = static_cast<uint64_t*>(staging.allocate(kBytes));
  numbers[0] = generator.seed;
  numbers[1] = generator.advance(captured.drawn);
  captured.stream->copy(captured.state.data(), numbers, kBytes);
  staging.record_stream(numbers, *captured.stream);
  staging.deallocate(numbers, kBytes);
}

void Graphs::drop(int64_t number) {
  tt::check(!capturing_ || graphs_.back().number != number, "graph ", number, " is being captured");
  erase(find(number));
}

void Graphs::erase(Iterator at) {
  Allocator& allocator = Devices::instance().allocator(at->device);
  const uint64_t pool = at->pool;
  try {
    if (at->graph) at->stream->synchronize();
  } catch (const Error&) {  // a lost device is idle
  }
  graphs_.erase(at);  // before the pool is released, because the graph uses memory of the pool
  allocator.release_pool(pool);
}

void Graphs::refuse(std::string why) {
  if (graphs_.back().refusal.empty()) graphs_.back().refusal = why;
  fail(ErrorKind::kRuntime, why);
}

void Graphs::check(const Call& call) {
  const Device device = graphs_.back().device;
  const auto name = message_part(call.op->name);
  if (call.inferred.backend == DeviceType::kMeta || call.op->id == op_id::kGraphEnd) return;
  if (cancel_requested()) refuse("a captured call was cancelled");
  ++graphs_.back().calls;
  if (call.op->id == op_id::kRandperm) refuse("[randperm] draws on the host and cannot be captured");
  if (call.op->is_dynamic) refuse(absl::StrCat("[", name, "] has a result whose size depends on data"));
  const bool here = call.inferred.device == device && call.inferred.backend == device.type;
  const bool nowhere = call.op->num_outputs == 0;
  if (!here && !nowhere) refuse(absl::StrCat("[", name, "] must run on ", to_string(device), " only"));
}

void register_graph_operators(Dispatcher& dispatcher) {
  // The named device selects the backend.
  for (Key key : {Key::kCPU, Key::kCUDA}) {
    dispatcher.set(op_id::kGraphBegin, key, [](Call& call) {
      Context::current().graphs().begin(call.args[0].integer, decode_device(call.args[1].integer));
    });
    dispatcher.set(op_id::kGraphEnd, key, [](Call& call) {
      const int64_t calls = Context::current().graphs().end(call.args[0].integer);
      allocate_outputs(call);
      call.outputs[0].data_as<int64_t>()[0] = calls;
    });
    dispatcher.set(op_id::kGraphReplay, key,
                   [](Call& call) { Context::current().graphs().replay(call.args[0].integer); });
    dispatcher.set(op_id::kReplayCounts, key, [](Call& call) {
      const ReplayCounts counts = Context::current().stream(decode_device(call.args[0].integer)).replays();
      const Tensor here = empty({4}, DType::kInt64, Device{});
      int64_t i = 0;
      for (uint64_t count : {counts.graphs, counts.replays, counts.launches, counts.changed}) {
        here.data_as<int64_t>()[i++] = static_cast<int64_t>(count);
      }
      call.outputs = {ops::to_device(here, decode_device(call.args[0].integer))};  // copied: the device may be a GPU
    });
    dispatcher.set(op_id::kGraphDrop, key, [](Call& call) { Context::current().graphs().drop(call.args[0].integer); });
  }
}

}  // namespace tt
