// Sessions that allocate as much host memory as possible: the engine's memory stays near their limit, and is freed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <thread>

#include "tests/server/daemon.h"
#include "tests/server/frames.h"
#include "tests/server/raw_stream.h"

namespace tt::server {
namespace {

using testing::add;
using testing::Daemon;
using ::testing::HasSubstr;
using testing::Instruction;
using testing::literal;
using testing::RawStream;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLimit = 1 * kMiB;
constexpr uint64_t kBeyond = 16 * kMiB;
// Memory of the daemon for serving the first client: threads, gRPC's buffers.
constexpr uint64_t kServing = 8 * kMiB;
// A sanitizer's memory counts as the engine's: with a sanitizer the attacks run, but memory is not measured.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMeasured = false;
#else
constexpr bool kMeasured = true;
#endif

uint64_t memory(const Daemon& daemon, const char* name) {
  std::ifstream status("/proc/" + std::to_string(daemon.pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name, 0) == 0) return std::stoull(line.substr(line.find(':') + 1)) << 10;
  }
  return 0;
}
// Resets the peak resident memory of the process.
void forget_peak(const Daemon& daemon) {
  std::ofstream("/proc/" + std::to_string(daemon.pid()) + "/clear_refs") << "5";
}

struct Attack {
  const char* name;
  std::function<void(RawStream&)> run;
};
void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }

// Sends `instructions` instructions of the kind in each of `frames` frames; stops if the engine ends the session.
void bomb(RawStream& stream, int frames, int instructions, const std::function<void(v1::Frame*, uint64_t)>& make) {
  uint64_t name = 1000;
  for (int i = 0; i < frames; ++i) {
    v1::Frame frame;
    for (int j = 0; j < instructions; ++j) make(&frame, ++name);
    const std::optional<v1::Reply> reply = stream.send(frame);
    if (!reply || reply->has_fault()) return;
  }
}

void begin(RawStream& stream) {
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  literal(&frame, 2, {3}, {1, 2, 3});
  Instruction(&frame, "requires_grad").handle(1).boolean(true);
  Instruction(&frame, "empty").integers({0}).integer(static_cast<int64_t>(DType::kFloat32)).integer(0).result(3);
  ASSERT_TRUE(stream.send(frame).has_value());
}

std::string repeated(const std::string& field, size_t bytes) {
  std::string all;
  all.reserve(bytes);
  while (all.size() + field.size() <= bytes) all += field;
  return all;
}

const std::string kEmptyInstruction("\x12\x00", 2);
const std::string kEmptyRead("\x22\x00", 2);
const std::string kEmptySite("\x2a\x00", 2);
const std::string kUnknownNumber("\xa0\x06\x01", 3);
const std::string kUnknownGroup("\xa3\x06\xa4\x06", 4);

std::string in_instruction(const std::string& body) {
  v1::Frame frame;
  frame.add_instructions()->set_op(1);
  std::string head("\x12", 1);
  for (size_t rest = body.size();; rest >>= 7) {
    head += static_cast<char>((rest & 127) | (rest > 127 ? 128 : 0));
    if (rest <= 127) break;
  }
  return head + body;
}

const Attack kAttacks[] = {
    {"EmptyInstructions", [](auto& s) { s.send(repeated(kEmptyInstruction, 4 << 20)); }},
    {"MoreThanAFrame", [](auto& s) { s.send(repeated(kEmptyInstruction, 8 << 20)); }},
    {"EmptyArguments", [](auto& s) { s.send(in_instruction(repeated(kEmptyInstruction, 4000 << 10))); }},
    {"Reads", [](auto& s) { s.send(repeated(kEmptyRead, 4 << 20)); }},
    {"Sites", [](auto& s) { s.send(repeated(kEmptySite, 4 << 20)); }},
    {"UnknownFields", [](auto& s) { s.send(repeated(kUnknownNumber, 4 << 20)); }},
    {"UnknownGroups", [](auto& s) { s.send(repeated(kUnknownGroup, 4 << 20)); }},
    {"ListOfNumbers",
     [](auto& s) {
       v1::Frame frame;
       Instruction(&frame, "literal").integers(std::vector<int64_t>(4000 << 10, 1)).result(1);
       s.send(frame);
     }},
    {"SmallFramesOfEmptyInstructions",
     [](auto& s) {
       for (int i = 0; i < 50; ++i) {
         if (!s.send(repeated(kEmptyInstruction, 60 << 10))) return;
       }
     }},
    {"EmptyTensors",
     [](auto& s) {
       begin(s);
       bomb(s, 40, 16000, [](v1::Frame* f, uint64_t name) { Instruction(f, "empty_like").handle(3).result(name); });
     }},
    {"Numbers",
     [](auto& s) {
       begin(s);
       bomb(s, 40, 16000,
            [](v1::Frame* f, uint64_t name) { Instruction(f, "full").integers({}).integer(1).result(name); });
     }},
    {"Views",
     [](auto& s) {
       begin(s);
       std::vector<int64_t> sizes(64, 1);
       bomb(s, 40, 8000, [&](v1::Frame* f, uint64_t name) {
         Instruction(f, "expand").handle(3).integers({64, 0}).result(name);
       });
     }},
    {"GradientGraphs",  // one handle with an unbounded history
     [](auto& s) {
       begin(s);
       uint64_t last = 1, before = 0;
       bomb(s, 60, 16000, [&](v1::Frame* f, uint64_t name) {
         Instruction step = add(f, name, last, 1);
         if (before > 1) step.release(before);
         before = std::exchange(last, name);
       });
     }},
    {"HighRanksInGradientGraphs",
     [](auto& s) {
       begin(s);
       v1::Frame frame;
       Instruction(&frame, "reshape")
           .handle(1)
           .integers([] {
             std::vector<int64_t> v(60, 1);
             v[0] = 2;
             return v;
           }())
           .result(4);
       if (!s.send(frame)) return;
       uint64_t last = 4, before = 0;
       bomb(s, 60, 8000, [&](v1::Frame* f, uint64_t name) {
         Instruction step = Instruction(f, "mul").handle(last).handle(4).result(name);
         if (before > 4) step.release(before);
         before = std::exchange(last, name);
       });
     }},
    {"Errors",
     [](auto& s) {
       begin(s);
       bomb(s, 60, 16000, [](v1::Frame* f, uint64_t name) { add(f, name, 1, 2); });
     }},
    {"LongErrors",
     [](auto& s) {
       begin(s);
       const std::string text(60000, 'x');
       bomb(s, 200, 60,
            [&](v1::Frame* f, uint64_t name) { Instruction(f, "gelu").handle(1).bytes(text).result(name); });
     }},
    {"Hooks",
     [](auto& s) {
       begin(s);
       bomb(s, 20, 16000,
            [](v1::Frame* f, uint64_t name) { Instruction(f, "hook").integer(static_cast<int64_t>(name)).handle(1); });
     }},
    {"RepliesThatAreNotAcknowledged",
     [](auto& s) {
       v1::Frame frame;
       Instruction(&frame, "full")
           .integers({16384})
           .real(1)
           .integer(static_cast<int64_t>(DType::kFloat32))
           .integer(0)
           .result(1);
       if (!s.send(frame)) return;
       v1::Frame reads;
       for (uint64_t i = 0; i < 8000; ++i) testing::read(&reads, i, 1);
       for (int i = 0; i < 20; ++i) {
         if (!s.send(reads)) return;
       }
     }},
    {"RepliesOfErrors",
     [](auto& s) {
       begin(s);
       v1::Frame frame;
       Instruction(&frame, "gelu").handle(1).bytes(std::string(60000, 'x')).result(9);
       if (!s.send(frame)) return;
       v1::Frame reads;
       for (uint64_t i = 0; i < 8000; ++i) testing::read(&reads, i, 9);
       for (int i = 0; i < 20; ++i) {
         if (!s.send(reads)) return;
       }
     }},
    {"SourceLines",
     [](auto& s) {
       uint32_t id = 0;
       for (int i = 0; i < 20; ++i) {
         v1::Frame frame;
         for (int j = 0; j < 4000; ++j) {
           v1::Site* site = frame.add_sites();
           site->set_id(++id);
           site->set_file(std::string(400, 'f'));
           site->set_function(std::string(400, 'g'));
         }
         if (!s.send(frame)) return;
       }
     }},
    {"Splits",
     [](auto& s) {
       begin(s);
       v1::Frame frame;
       Instruction(&frame, "empty")
           .integers({0, 60000})
           .integer(static_cast<int64_t>(DType::kFloat32))
           .integer(0)
           .result(4);
       if (!s.send(frame)) return;
       bomb(s, 20, 1, [](v1::Frame* f, uint64_t name) {
         Instruction(f, "split").handle(4).integer(1).integer(1).result(name * 100000, 60000);
       });
     }},
};

class ExhaustionTest : public ::testing::TestWithParam<Attack> {};

TEST_P(ExhaustionTest, StaysNearLimitAndRecovers) {
  Daemon daemon({"--session-memory-limit", "1MB"});
  {
    RawStream first(daemon), second(daemon);
    begin(first);
    begin(second);
  }
  const uint64_t before = memory(daemon, "VmRSS");
  ASSERT_GT(before, 0u);
  forget_peak(daemon);
  {
    RawStream stream(daemon);
    GetParam().run(stream);
    const uint64_t peak = memory(daemon, "VmHWM");
    if (kMeasured) EXPECT_LT(peak, before + kLimit + kBeyond + kServing) << (peak - before) / kMiB << " MiB";
    RecordProperty("peak_mib", static_cast<int>((peak - before) / kMiB));
    std::cout << "peak " << (peak - before) / kMiB << " MiB\n";
  }
  // The engine stays usable, and its memory is freed.
  RawStream other(daemon);
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  testing::read(&frame, 1, 1);
  const std::optional<v1::Reply> reply = other.send(frame);
  ASSERT_TRUE(reply && !reply->has_fault());
  EXPECT_EQ(testing::floats_of(reply->reads(0).data()), (std::vector<float>{1, 2}));
}

INSTANTIATE_TEST_SUITE_P(All, ExhaustionTest, ::testing::ValuesIn(kAttacks),
                         [](const auto& test) { return std::string(test.param.name); });

// Makes 320,000 small tensors, named from 1001, and one of 200 MiB.
void make_tensors(RawStream& stream) {
  begin(stream);
  bomb(stream, 20, 16000, [](v1::Frame* f, uint64_t name) {
    Instruction(f, "full")
        .integers({40})
        .integer(1)
        .integer(static_cast<int64_t>(DType::kFloat32))
        .integer(0)
        .result(name);
  });
  v1::Frame large;
  Instruction(&large, "full")
      .integers({50 << 20})
      .real(1)
      .integer(static_cast<int64_t>(DType::kFloat32))
      .integer(0)
      .result(5);
  stream.send(large);
}

void expect_return_to(uint64_t before, const Daemon& daemon) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (memory(daemon, "VmRSS") > before + 64 * kMiB && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LT(memory(daemon, "VmRSS"), before + 64 * kMiB);
}

// What a session has dropped returns to the system while the session goes on.
TEST(ExhaustionReturnTest, IdleSessionReturnsWhatItDropped) {
  if (!kMeasured) GTEST_SKIP() << "a sanitizer's memory counts as the engine's";
  Daemon daemon;
  RawStream stream(daemon);
  ASSERT_TRUE(stream.send(v1::Frame()).has_value());
  const uint64_t before = memory(daemon, "VmRSS");
  make_tensors(stream);
  ASSERT_GT(memory(daemon, "VmRSS"), before + 256 * kMiB);
  v1::Frame drop;
  drop.add_release(5);
  for (uint64_t name = 1001; name <= 321'000; ++name) {
    if (name % 1000 != 0) drop.add_release(name);  // those that remain are in all segments
  }
  const std::optional<v1::Reply> reply = stream.send(drop);
  ASSERT_TRUE(reply && !reply->has_fault());
  expect_return_to(before, daemon);
}

// Without a limit a session may use all memory of the machine; it is returned to the system when the session ends.
TEST(ExhaustionReturnTest, EndedSessionFreesItsMemory) {
  if (!kMeasured) GTEST_SKIP() << "a sanitizer's memory counts as the engine's";
  Daemon daemon({"--lease", "0.1"});
  {
    RawStream first(daemon), second(daemon);
    begin(first);
    begin(second);
  }
  const uint64_t before = memory(daemon, "VmRSS");
  {
    RawStream stream(daemon);
    make_tensors(stream);
    ASSERT_GT(memory(daemon, "VmRSS"), before + 256 * kMiB);
  }
  expect_return_to(before, daemon);
}

}  // namespace
}  // namespace tt::server
