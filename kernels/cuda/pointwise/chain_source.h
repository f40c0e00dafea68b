// ChainPlan: the source and the launch parameters of the kernel for a chain of pointwise steps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "engine/dispatch/chain.h"

namespace tt::cuda {

// Source of an operator's bodies for floating-point types and for integers: the name and the text of a function
// template. Empty if the operator has no such body.
struct ChainBody {
  uint16_t op;
  std::string_view float_name, float_text;
  std::string_view int_name, int_text;
};

// Generated. chain_bodies() returns the bodies of all operators that have one, except integer bodies that check for
// zero divisors. chain_functions() returns the source of the functions that the bodies call.
absl::Span<const ChainBody> chain_bodies();
std::string_view chain_functions();

inline constexpr int kChainDims = 8;      // maximum number of dimensions, after merging
inline constexpr int kChainNumbers = 24;  // maximum number of scalar arguments of all steps

// The kernel's parameters. Must have the same layout as `Parameters` in the kernel's source.
template <typename T>
struct ChainParameters {
  int64_t numel = 0;
  void* out = nullptr;
  const void* in[kShortChain.inputs] = {};
  T number[kChainNumbers] = {};
  int32_t dims = 0;
  int32_t sizes[kChainDims] = {};
  int64_t strides[kShortChain.inputs][kChainDims] = {};
};

// Must not outlive the steps and the output.
class ChainPlan {
 public:
  ChainPlan(absl::Span<const ChainStep> steps, const Tensor& out);

  // Whether a kernel can be generated for the chain.
  bool possible() const { return possible_; }
  // Chains with equal keys use the same kernel.
  const std::string& key() const { return key_; }
  std::string source() const;
  DType compute() const { return compute_; }
  // T: the C++ type of compute(). Numbers of another type are wrapped or rounded to T.
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
  std::string load_kinds_;  // per input: 'p' laid out like the output, 'o' one element, 's' strided
  absl::InlinedVector<Arg, 8> numbers_;
  std::vector<Step> steps_;
  std::vector<int32_t> sizes_;
  std::vector<std::vector<int64_t>> strides_;  // per input
  std::string key_;
};

}  // namespace tt::cuda
