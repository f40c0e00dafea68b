// Fuzz target: repeated frames of image operators, views and in-place writes keep their bits when windows of them are
// replaced.
//
// The calls are those of passes_fuzz, on images of 2 x 2 x 32 x 32. The first byte says which results are dropped
// inside a frame. The same calls with other names arrive seven times, and the compiler is done before each.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/session/window_compiler.h"
#include "server/session/session.h"
#include "tests/fuzz/image_calls.h"
#include "tests/fuzz/require.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

using tt::fuzz::ImageCalls;
using tt::fuzz::kChanged;
using tt::fuzz::kFirst;
using tt::server::testing::literal;
using tt::server::testing::read;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tt::server::testing::start_engine();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kEdge = 32;
  constexpr size_t kElements = 2 * 2 * kEdge * kEdge;
  constexpr int kFrames = 7;
  if (size < 2) return -1;
  const uint8_t dropped = data[0];
  const ImageCalls calls(data + 1, size - 1);
  const uint64_t before = tt::server::testing::engine_bytes();
  {
    const auto compiler = std::make_shared<tt::WindowCompiler>();
    tt::server::Session session(tt::server::Session::Options{});
    session.compile_windows(compiler);
    tt::v1::Frame inputs;
    literal(&inputs, tt::fuzz::kImages, {2, 2, kEdge, kEdge}, tt::fuzz::numbers(kElements, 0.5f));
    literal(&inputs, tt::fuzz::kWeights, {2, 2, 3, 3}, tt::fuzz::numbers(36, 0.0625f));
    literal(&inputs, tt::fuzz::kChannels, {2}, {0.75f, 1.25f});
    inputs.set_sequence(1);
    tt::v1::Reply none, first;
    session.execute(inputs, &none);
    for (int k = 0; k < kFrames; ++k) {
      const uint64_t base = 1000 * (static_cast<uint64_t>(k) + 1);
      tt::v1::Frame frame;
      literal(&frame, base + kChanged, {2, 2, kEdge, kEdge}, tt::fuzz::numbers(kElements, 0.25f));
      const std::vector<uint64_t> outputs =
          calls.write(&frame, [=](uint64_t name) { return name < kChanged ? name : base + name; });
      uint64_t last = base + kChanged;
      for (auto& instruction : *frame.mutable_instructions()) {
        instruction.set_no_grad(true);
        if (instruction.into_size() == 0) last = std::max<uint64_t>(last, instruction.result());
      }
      for (uint64_t name : outputs) read(&frame, name - base, name);
      read(&frame, kChanged, base + kChanged);
      for (uint64_t name = base + kFirst; name <= last; ++name) {
        if ((dropped >> (name % 8) & 1) != 0) frame.add_release(name);
      }
      frame.set_sequence(static_cast<uint64_t>(k) + 2);
      tt::v1::Reply reply;
      session.execute(frame, &reply);
      compiler->wait();
      tt::fuzz::require(!reply.has_fault(), "the frame is valid");
      for (int i = 0; i < reply.reads_size(); ++i) {
        tt::fuzz::require(!reply.reads(i).has_error(), "no call fails");
        tt::fuzz::require(k == 0 || tt::fuzz::same_bits(reply.reads(i), first.reads(i)),
                          "replaced calls have the bits of single calls");
      }
      if (k == 0) first = reply;
    }
    session.close();
  }
  tt::fuzz::require(tt::server::testing::engine_bytes() == before, "a closed session holds no memory");
  return 0;
}
