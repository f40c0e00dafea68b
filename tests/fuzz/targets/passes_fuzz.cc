// Fuzz target: a Program of image operators, reductions, views and in-place writes gives the bits of the same calls one
// by one.
//
// The first byte of the input chooses images of 2 x 2 x 4 x 4 or 2 x 2 x 33 x 33, and each three others are a call: its
// operator, and which earlier values it reads. The Program is exact, may change its last input, and runs six times, so
// that planned loops are run, too. Afterwards the outputs, of which some may share memory, and that input are compared.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/session/session.h"
#include "tests/fuzz/image_calls.h"
#include "tests/fuzz/require.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

using tt::fuzz::ImageCalls;
using tt::fuzz::kChanged;
using tt::fuzz::kChannels;
using tt::fuzz::kFirst;
using tt::fuzz::kImages;
using tt::fuzz::kWeights;
using tt::fuzz::numbers;
using tt::fuzz::same_bits;
using tt::server::testing::Instruction;
using tt::server::testing::literal;
using tt::server::testing::read;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tt::server::testing::start_engine();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kDefinition = 400, kRun = 1000, kOutputs = 300, kOther = 500;
  if (size < 2) return -1;
  const int64_t edge = data[0] % 4 == 0 ? 33 : 4;
  const auto elements = static_cast<size_t>(2 * 2 * edge * edge);
  const ImageCalls calls(data + 1, size - 1);
  tt::v1::Frame definition;
  const std::vector<uint64_t> outputs = calls.write(&definition, [](uint64_t name) { return name; });
  for (uint64_t name : outputs) read(&definition, name, name);
  const std::string bytes = definition.SerializeAsString();

  tt::server::Session session(tt::server::Session::Options{});
  tt::v1::Frame frame;
  Instruction(&frame, "literal")
      .bytes(bytes)
      .integers({static_cast<int64_t>(bytes.size())})
      .integer(static_cast<int64_t>(tt::DType::kUInt8))
      .integer(0)
      .result(kDefinition);
  literal(&frame, kImages, {2, 2, edge, edge}, numbers(elements, 0.5f));
  literal(&frame, kWeights, {2, 2, 3, 3}, numbers(36, 0.0625f));
  literal(&frame, kChannels, {2}, {0.75f, 1.25f});
  Instruction(&frame, "define_program").handle(kDefinition).integer(1).integer(3).integer(1).boolean(true);
  std::vector<std::pair<uint64_t, uint64_t>> compared;
  for (uint64_t k = 1; k <= tt::fuzz::kRuns; ++k) {
    const uint64_t base = kRun * k;  // of the names of this run: the Program's, and from kOther those of single calls
    const auto single_name = [=](uint64_t name) { return name < kChanged ? name : base + kOther + name; };
    literal(&frame, base + kChanged, {2, 2, edge, edge}, numbers(elements, 0.25f / static_cast<float>(k)));
    literal(&frame, base + kOther + kChanged, {2, 2, edge, edge}, numbers(elements, 0.25f / static_cast<float>(k)));
    Instruction run(&frame, "run_program");
    run.handles({kImages, kWeights, kChannels}).handles({base + kChanged}).integer(1);
    if (!outputs.empty()) run.result(base + kOutputs, static_cast<uint32_t>(outputs.size()));
    const std::vector<uint64_t> single = calls.write(&frame, single_name);
    compared.emplace_back(base + kChanged, base + kOther + kChanged);
    for (size_t i = 0; i < outputs.size(); ++i) compared.emplace_back(base + kOutputs + i, single[i]);
  }
  for (const auto& [a, b] : compared) {
    read(&frame, a, a);
    read(&frame, b, b);
  }
  frame.set_sequence(1);
  tt::v1::Reply reply;
  session.execute(frame, &reply);
  tt::fuzz::require(!reply.has_fault(), "the Program has as many outputs as it names");
  for (size_t i = 0; i < compared.size(); ++i) {
    const tt::v1::ReadResult &a = reply.reads(static_cast<int>(2 * i)), &b = reply.reads(static_cast<int>(2 * i + 1));
    tt::fuzz::require(!a.has_error() && !b.has_error(), "no call fails");
    tt::fuzz::require(same_bits(a, b), "the Program has the bits of single calls");
  }
  session.close();
  return 0;
}
