// ChainPlan: a chain of pointwise steps as one kernel: what its source says, and what it is launched with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "engine/dispatch/chain.h"

namespace tt::cuda {

// An operator's body as source: the name of a function template, and its text. Empty where it has none of the kind.
struct ChainBody {
  uint16_t op;
  std::string_view float_name, float_text;
  std::string_view int_name, int_text;
};

// Generated: of every operator with a body, but not in integers where zero divisors are looked for; and the functions
// that bodies call.
absl::Span<const ChainBody> chain_bodies();
std::string_view chain_functions();

inline constexpr int kChainDims = 8;      // of the space, once neighbours are merged
inline constexpr int kChainNumbers = 24;  // of all steps together

// What the kernel takes, as its source lays it out.
template <typename T>
struct ChainParameters {
  int64_t numel = 0;
  void* out = nullptr;
  const void* in[kMaxChainInputs] = {};
  T number[kChainNumbers] = {};
  int32_t dims = 0;
  int32_t sizes[kChainDims] = {};
  int64_t strides[kMaxChainInputs][kChainDims] = {};
};

// Lives no longer than the steps and the output that it is made of.
class ChainPlan {
 public:
  ChainPlan(absl::Span<const ChainStep> steps, const Tensor& out);

  // Whether there can be a kernel for such a chain.
  bool possible() const { return possible_; }
  // Chains with equal keys are computed by the same kernel.
  const std::string& key() const { return key_; }
  std::string source() const;
  DType compute() const { return compute_; }
  // T: what `compute` is in C++. Numbers of a kind of their own wrap or round to it.
  template <typename T>
  ChainParameters<T> parameters() const {
    ChainParameters<T> all;
    fill(&all.numel, &all.out, all.in, &all.dims, all.sizes, all.strides);
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const Arg& from = numbers_[i];
      all.number[i] = from.kind == Arg::Kind::kFloat ? static_cast<T>(from.real) : static_cast<T>(from.integer);
    }
    return all;
  }

 private:
  struct Step {
    const ChainBody* body;
    std::string arguments;
  };

  void add(const ChainStep& step);
  std::string operand(const Arg& arg);
  std::string number(const Arg& arg);
  void merge_dims();
  std::string load(size_t input) const;
  bool is_float() const { return is_floating(compute_); }
  std::string_view type() const;
  void fill(int64_t* numel, void** out, const void** in, int32_t* dims, int32_t* sizes,
            int64_t (*strides)[kChainDims]) const;

  const Tensor& out_;
  DType compute_;
  bool possible_ = true;
  Tensors inputs_;
  std::string walks_;  // of each input: 'p' as the output, 'o' one element, 's' by strides
  absl::InlinedVector<Arg, 8> numbers_;
  std::vector<Step> steps_;
  std::vector<int32_t> sizes_;
  std::vector<std::vector<int64_t>> strides_;  // of each input
  std::string key_;
};

}  // namespace tt::cuda
