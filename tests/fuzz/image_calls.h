// ImageCalls: calls of image operators, reductions, views and in-place writes that bytes describe, none of which fails.
//
// The first byte says how many calls follow at most, and whether some write in place: an in-place write prevents much
// of the work of the passes. Each three others are a call: its operator, and which earlier values it reads. A value is
// a float32 tensor of the images' size, and may be a view of others, or is a reduction with dimensions of size 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/server/frames.h"

namespace tt::fuzz {

// The Program's names of the images, the weights, the statistics and the input that may change, and of its first
// result.
inline constexpr uint64_t kImages = 1, kWeights = 2, kChannels = 3, kChanged = 4, kFirst = 5;

// A value and the oldest one whose memory it may share.
struct Value {
  uint64_t name, root;
};

// Runs of a Program, of which the last ones use the plans that the fourth made.
inline constexpr int kRuns = 6;

// Calls that the input chooses. write() writes them twice, with different names: as a Program and as single calls.
class ImageCalls {
 public:
  // `size`: at least 1.
  ImageCalls(const uint8_t* data, size_t size)
      : data_(data + 1),
        size_(std::min<size_t>(size - 1, 3 * (data[0] / 2 % kMaxCalls + 1))),
        writes_(data[0] % 2 == 0) {}

  template <typename NameOf>
  std::vector<uint64_t> write(v1::Frame* frame, NameOf name_of) const {
    std::vector<Value> values = {{kImages, kImages}, {kChanged, kChanged}}, whole = values;  // whole: of images' size
    uint64_t next = kFirst;
    for (size_t at = 0; at + 2 < size_; at += 3) {
      const Value a = whole[data_[at + 1] % whole.size()], b = values[data_[at + 2] % values.size()];
      const auto make = [&](const char* op, bool is_view = false) {
        server::testing::Instruction call(frame, op);
        call.handle(name_of(a.name)).result(name_of(next));
        values.push_back({next, is_view ? a.root : next});
        whole.push_back(values.back());
        ++next;
        return call;
      };
      const auto reduce = [&](const char* op, const std::vector<int64_t>& dims) {
        server::testing::Instruction call(frame, op);
        call.handle(name_of(a.name)).integers(dims).boolean(true).result(name_of(next));
        values.push_back({next, next});
        ++next;
        return call;
      };
      const auto change = [&](const char* op) {
        server::testing::Instruction call(frame, op);
        call.handle(name_of(a.name)).into(name_of(a.name));
        return call;
      };
      const bool may_change =
          writes_ && a.root != kImages;  // a Program must not write to the inputs that it only reads
      switch (data_[at] % 28) {
        case 0:
        case 1:
          make("conv2d").handle(name_of(kWeights)).none().integers({1, 1}).integers({1, 1}).integers({1, 1}).integer(1);
          break;
        case 2: {
          server::testing::Instruction norm = make("batch_norm");
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
        case 18: reduce("sum", {data_[at + 2] % 4}); break;
        case 19: reduce("amax", {data_[at + 2] % 4}); break;
        case 20: reduce("mean", {2, 3}); break;
        case 21: reduce("sum", {0, 1, 2, 3}); break;
        case 22: make("softmax").integer(data_[at + 2] % 4); break;
        case 23: make("exp"); break;
        case 24: make("sub").handle(name_of(b.name)); break;
        case 25: make("maximum").handle(name_of(b.name)); break;
        case 26: make("div").handle(name_of(b.name)); break;
        case 27: make("tanh"); break;
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
  const bool writes_;
};

inline std::vector<float> numbers(size_t count, float scale) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(scale * static_cast<float>(static_cast<int>(i * 37 % 23) - 9));
  return values;
}

inline bool same_bits(const v1::ReadResult& a, const v1::ReadResult& b) {
  const std::vector<float> x = server::testing::floats_of(a.data()), y = server::testing::floats_of(b.data());
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](float p, float q) {
           return std::isnan(p) ? std::isnan(q) : p == q && std::signbit(p) == std::signbit(q);
         });
}

}  // namespace tt::fuzz
