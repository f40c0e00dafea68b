// Fuzz target: a new session defines a Program, runs it until its loops are planned, explains it, and is closed.
//
// The input is a serialized v1::Frame, which is defined once without inputs and once with three. Whatever its contents,
// the session continues, and afterwards the engine holds as much memory as before. Seeds are those of the frame fuzzer.
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/session/session.h"
#include "tests/fuzz/frame_mutator.h"
#include "tests/fuzz/require.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace {

using tt::server::testing::Instruction;

constexpr uint64_t kRuns = 6;  // plans are made in the fourth run

tt::server::Session::Options small_session() {
  tt::server::Session::Options options;
  options.memory_limit = 4 << 20;
  options.frame_time_limit = std::chrono::milliseconds(2000);
  options.transfer_timeouts = {std::chrono::milliseconds(0), std::chrono::milliseconds(0)};
  return options;
}

// `inputs`: names of tensors; the last one may be changed.
void define_and_run(tt::v1::Frame* frame, int64_t number, const std::vector<uint64_t>& inputs, uint32_t results) {
  const std::vector<uint64_t> read(inputs.begin(), inputs.empty() ? inputs.end() : inputs.end() - 1);
  const std::vector<uint64_t> written(inputs.begin() + static_cast<int64_t>(read.size()), inputs.end());
  Instruction(frame, "define_program")
      .handle(1)
      .integer(number)
      .integer(static_cast<int64_t>(read.size()))
      .integer(static_cast<int64_t>(written.size()))
      .boolean(number == 1);
  const uint64_t first = 1000 * static_cast<uint64_t>(number);
  Instruction(frame, "explain_program").handles(read).handles(written).integer(number).result(first);
  for (uint64_t i = 1; i <= kRuns; ++i) {
    Instruction run(frame, "run_program");
    run.handles(read).handles(written).integer(number);
    if (results != 0) run.result(first + 100 * i, results);
  }
  Instruction(frame, "drop_program").integer(number);
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tt::server::testing::start_engine();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return tt::fuzz::mutate_serialized(data, size, max_size, seed, &LLVMFuzzerMutate);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxInline = 64 << 10;
  if (size > kMaxInline) return 0;
  const uint64_t before = tt::server::testing::engine_bytes();
  {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    tt::v1::Frame definition;
    const int outputs = definition.ParseFromString(bytes) ? definition.reads_size() : 0;
    const auto results = static_cast<uint32_t>(std::min(outputs, 50));
    tt::server::Session session(small_session());
    tt::v1::Frame frame;
    Instruction(&frame, "literal")
        .bytes(bytes)
        .integers({static_cast<int64_t>(size)})
        .integer(static_cast<int64_t>(tt::DType::kUInt8))
        .integer(0)
        .result(1);
    tt::server::testing::literal(&frame, 2, {2, 3}, {1, 2, 3, 4, 5, 6});
    tt::server::testing::literal(&frame, 3, {3}, {-1, 0, 1});
    tt::server::testing::literal(&frame, 4, {2, 3}, {0, 0, 0, 0, 0, 0});
    define_and_run(&frame, 1, {}, results);
    define_and_run(&frame, 2, {2, 3, 4}, results);
    frame.set_sequence(1);
    tt::v1::Reply reply;
    session.execute(frame, &reply);
    // A run of a Program with the wrong number of results is a fault, which ends the session; nothing else does.
    tt::fuzz::require(session.over() == reply.has_fault(), "only a fault ends a session");
    session.close();
  }
  tt::fuzz::require(tt::server::testing::engine_bytes() == before, "the session's memory was released");
  return 0;
}
