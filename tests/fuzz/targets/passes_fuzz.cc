// Fuzz target: a Program of image operators, views and in-place writes gives the bits of the same calls one by one.
//
// Each three bytes of the input are a call: its operator, and which earlier values it reads. Every value is a float32
// tensor of 2 x 2 x 4 x 4, so that calls do not fail, and may be a view of others. The Program is exact and may change
// its last input. Afterwards the outputs, of which some may share memory, and that input are compared.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/session/session.h"
#include "tests/fuzz/require.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace {

using tt::server::testing::Instruction;
using tt::server::testing::literal;
using tt::server::testing::read;

// The Program's names of the images, the weights, the statistics and the input that may change, and of its first
// result.
constexpr uint64_t kImages = 1, kWeights = 2, kChannels = 3, kChanged = 4, kFirst = 5;

// A value and the oldest one whose memory it may share.
struct Value {
  uint64_t name, root;
};

// Calls of which the names are given by a function, once for the Program and once for single calls.
class Calls {
 public:
  Calls(const uint8_t* data, size_t size) : data_(data), size_(std::min<size_t>(size, 3 * kMaxCalls)) {}

  template <typename NameOf>
  std::vector<uint64_t> write(tt::v1::Frame* frame, NameOf name_of) const {
    std::vector<Value> values = {{kImages, kImages}, {kChanged, kChanged}};
    uint64_t next = kFirst;
    for (size_t at = 0; at + 2 < size_; at += 3) {
      const Value a = values[data_[at + 1] % values.size()], b = values[data_[at + 2] % values.size()];
      const auto make = [&](const char* op, bool is_view = false) {
        Instruction call(frame, op);
        call.handle(name_of(a.name)).result(name_of(next));
        values.push_back({next, is_view ? a.root : next});
        ++next;
        return call;
      };
      const auto change = [&](const char* op) {
        Instruction call(frame, op);
        call.handle(name_of(a.name)).into(name_of(a.name));
        return call;
      };
      const bool may_change = a.root != kImages;  // a Program must not write to the inputs that it only reads
      switch (data_[at] % 18) {
        case 0:
        case 1:
          make("conv2d").handle(name_of(kWeights)).none().integers({1, 1}).integers({1, 1}).integers({1, 1}).integer(1);
          break;
        case 2: {
          Instruction norm = make("batch_norm");
          for (int i = 0; i < 4; ++i) norm.handle(name_of(kChannels));
          break;
        }
        case 3: make("add").handle(name_of(b.name)); break;
        case 4: make("relu"); break;
        case 5: make("hardtanh").real(0).real(6); break;
        case 6: make("hardswish"); break;
        case 7: make("max_pool2d").integers({3, 3}).integers({1, 1}).integers({1, 1}); break;
        case 8: make("mul").real(1); break;
        case 9: make("sigmoid"); break;
        case 10: make("transpose", /*is_view=*/true).integer(2).integer(3); break;
        case 11: make("detach", /*is_view=*/true); break;
        case 12: make("contiguous", /*is_view=*/true); break;
        case 13: make("avg_pool2d").integers({3, 3}).integers({1, 1}).integers({1, 1}); break;
        case 14: make("mul").handle(name_of(b.name)); break;
        case 15:
          if (may_change) change("relu");
          break;
        case 16:
          if (may_change) change("add").handle(name_of(b.name));
          break;
        case 17:
          if (may_change) change("mul").real(0.5);
          break;
      }
    }
    std::vector<uint64_t> outputs;
    for (size_t i = values.size(); i-- > 2 && outputs.size() < kMaxOutputs;) outputs.push_back(name_of(values[i].name));
    return outputs;
  }

 private:
  static constexpr size_t kMaxCalls = 40, kMaxOutputs = 4;
  const uint8_t* const data_;
  const size_t size_;
};

std::vector<float> numbers(size_t count, float scale) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(scale * static_cast<float>(static_cast<int>(i * 37 % 23) - 9));
  return values;
}

bool same_bits(const tt::v1::ReadResult& a, const tt::v1::ReadResult& b) {
  const std::vector<float> x = tt::server::testing::floats_of(a.data()), y = tt::server::testing::floats_of(b.data());
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](float p, float q) {
           return std::isnan(p) ? std::isnan(q) : p == q && std::signbit(p) == std::signbit(q);
         });
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tt::server::testing::start_engine();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kSingle = 1000, kOutputs = 500, kDefinition = 400, kOther = 300;
  const Calls calls(data, size);
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
  literal(&frame, kImages, {2, 2, 4, 4}, numbers(64, 0.5f));
  literal(&frame, kWeights, {2, 2, 3, 3}, numbers(36, 0.0625f));
  literal(&frame, kChannels, {2}, {0.75f, 1.25f});
  literal(&frame, kChanged, {2, 2, 4, 4}, numbers(64, 0.25f));
  literal(&frame, kOther, {2, 2, 4, 4}, numbers(64, 0.25f));
  Instruction(&frame, "define_program").handle(kDefinition).integer(1).integer(3).integer(1).boolean(true);
  Instruction run(&frame, "run_program");
  run.handles({kImages, kWeights, kChannels}).handles({kChanged}).integer(1);
  if (!outputs.empty()) run.result(kOutputs, static_cast<uint32_t>(outputs.size()));
  const std::vector<uint64_t> single = calls.write(&frame, [](uint64_t name) {
    return name == kChanged ? kOther : name < kFirst ? name : name + kSingle;
  });
  std::vector<std::pair<uint64_t, uint64_t>> compared = {{kChanged, kOther}};
  for (size_t i = 0; i < outputs.size(); ++i) compared.emplace_back(kOutputs + i, single[i]);
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
