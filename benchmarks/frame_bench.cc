// Measures the cost of a frame in the server, per instruction: parsing, decoding, lookup of names, and full execution.
//
//   ninja -C build frame_bench && build/bin/frame_bench
#include <benchmark/benchmark.h>

#include "engine/schema/op_ids.h"
#include "google/protobuf/arena.h"
#include "server/daemon/backends.h"
#include "server/session/decode.h"
#include "server/session/session.h"

namespace tt::server {
namespace {

constexpr int kInstructions = 256;

// Returns a frame with a chain of additions, each releasing the result before last, like the frames of a training loop.
v1::Frame chain(uint64_t sequence, uint64_t* last) {
  v1::Frame frame;
  frame.set_sequence(sequence);
  for (int i = 0; i < kInstructions; ++i) {
    v1::Instruction* add = frame.add_instructions();
    add->set_op(op_id::kAdd);
    add->add_args()->set_handle(*last);
    add->add_args()->set_handle(1);
    add->set_result(*last + 1);
    if (*last > 3) add->add_release(*last - 1);
    ++*last;
  }
  return frame;
}

v1::Frame start() {
  v1::Frame frame;
  frame.set_sequence(1);
  for (uint64_t name : {1, 2}) {
    v1::Instruction* ones = frame.add_instructions();
    ones->set_op(op_id::kOnes);
    ones->add_args()->mutable_integers()->mutable_values()->Resize(2, 8);
    ones->set_result(name);
  }
  return frame;
}

void count(benchmark::State& state) { state.SetItemsProcessed(state.iterations() * kInstructions); }

void BM_Parse(benchmark::State& state) {
  uint64_t last = 2;
  std::string bytes = chain(2, &last).SerializeAsString();
  google::protobuf::Arena arena;
  auto* frame = google::protobuf::Arena::CreateMessage<v1::Frame>(&arena);
  for (auto _ : state) benchmark::DoNotOptimize(frame->ParseFromString(bytes));
  count(state);
}
BENCHMARK(BM_Parse);

void BM_Decode(benchmark::State& state) {
  uint64_t last = 2;
  v1::Frame frame = chain(2, &last);
  Program program;
  for (auto _ : state) {
    decode(frame, Limits(), &program);
    benchmark::DoNotOptimize(program.instructions().data());
  }
  count(state);
}
BENCHMARK(BM_Decode);

void BM_Names(benchmark::State& state) {
  Tensor tensor = empty({8, 8}, DType::kFloat32, Device{});
  SlotTable slots;
  slots.put(1, {tensor, nullptr});
  slots.put(2, {tensor, nullptr});
  uint64_t last = 2;
  for (auto _ : state) {
    for (int i = 0; i < kInstructions; ++i, ++last) {
      if (last > 2) slots.release(last - 1);
      benchmark::DoNotOptimize(slots.find(last));
      benchmark::DoNotOptimize(slots.find(1));
      slots.put(last + 1, {tensor, nullptr});
    }
  }
  count(state);
}
BENCHMARK(BM_Names);

// Measures everything that a session does for 8x8 additions, except parsing.
void BM_Execute(benchmark::State& state) {
  Session session({});
  v1::Reply reply;
  session.execute(start(), &reply);
  uint64_t last = 2, sequence = 1;
  for (auto _ : state) {
    state.PauseTiming();
    v1::Frame frame = chain(++sequence, &last);
    state.ResumeTiming();
    reply.Clear();
    session.execute(frame, &reply);
    if (reply.has_fault()) return state.SkipWithError(reply.fault().message().c_str());
  }
  count(state);
}
BENCHMARK(BM_Execute);

}  // namespace
}  // namespace tt::server

int main(int argc, char** argv) {
  tt::server::register_backends(1, 0);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
