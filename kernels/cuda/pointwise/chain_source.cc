#include "kernels/cuda/pointwise/chain_source.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "engine/schema/op_ids.h"
#include "kernels/common/iteration/dims.h"
#include "kernels/cuda/pointwise/pointwise.h"

namespace tt::cuda {

namespace {

absl::string_view view(std::string_view text) { return {text.data(), text.size()}; }

const ChainBody* body_of(uint16_t op) {
  static const std::vector<const ChainBody*> bodies = [] {
    std::vector<const ChainBody*> by_id(op_id::kMax + 1);
    for (const ChainBody& body : chain_bodies()) by_id[body.op] = &body;
    return by_id;
  }();
  return bodies[op];
}

// Returns the name of a dtype's element type in the source (kChainElements below).
std::string_view element(DType dtype) {
  switch (dtype) {
    case DType::kBool: return "Truth";
    case DType::kUInt8: return "uint8_t";
    case DType::kInt8: return "int8_t";
    case DType::kInt16: return "int16_t";
    case DType::kInt32: return "int32_t";
    case DType::kInt64: return "int64_t";
    case DType::kFloat16: return "Half";
    case DType::kBFloat16: return "BFloat16";
    case DType::kFloat32: return "float";
    default: return "double";
  }
}

// `Parameters` has the layout of ChainParameters<T>. A thread computes four adjacent elements, then four elements at
// the grid's stride, and so on. Loops are unrolled to keep the four elements in registers. The prelude of Compiler
// defines Half, BFloat16, TT_KERNEL and TT_DEVICE.
constexpr std::string_view kChainElements = R"(
struct Truth { uint8_t byte; TT_DEVICE operator bool() const { return byte != 0; } };
struct Parameters {
  int64_t numel;
  void* out;
  const void* in[8];
  T number[24];
  int32_t dims;
  int32_t sizes[8];
  int64_t strides[8][8];
};
template <typename S> struct alignas(4 * sizeof(S) < 16 ? 4 * sizeof(S) : 16) Four { S at[4]; };
TT_DEVICE T as_T(float v) { return static_cast<T>(v); }
TT_DEVICE T as_T(double v) { return static_cast<T>(v); }
TT_DEVICE T as_T(int64_t v) { return static_cast<T>(v); }
TT_DEVICE T as_T(int32_t v) { return static_cast<T>(v); }
TT_DEVICE T as_T(Truth v) { return static_cast<T>(v.byte != 0 ? 1 : 0); }
TT_DEVICE T as_T(Half v) { return static_cast<T>(widen(v)); }
TT_DEVICE T as_T(BFloat16 v) { return static_cast<T>(widen(v)); }
template <typename S> TT_DEVICE void load_plain(const void* from, int64_t at, int count, T (&to)[4]) {
  const S* elements = static_cast<const S*>(from) + at;
  if (count == 4) {
    const Four<S> four = *reinterpret_cast<const Four<S>*>(elements);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = as_T(four.at[i]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < count) to[i] = as_T(elements[i]);
    }
  }
}
template <typename S> TT_DEVICE void load_one(const void* from, int64_t, int, T (&to)[4]) {
  const T value = as_T(*static_cast<const S*>(from));
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = value;
}
template <typename S> TT_DEVICE void load_strided(const Parameters& p, int input, int64_t at, int count, T (&to)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int64_t left = i < count ? at + i : at, offset = 0;
    for (int d = p.dims - 1; d > 0; --d) {
      const int64_t outer = p.numel <= 0x7fffffff ? static_cast<uint32_t>(left) / static_cast<uint32_t>(p.sizes[d])
                                                  : left / p.sizes[d];
      offset += (left - outer * p.sizes[d]) * p.strides[input][d];
      left = outer;
    }
    to[i] = as_T(static_cast<const S*>(p.in[input])[offset + left * p.strides[input][0]]);
  }
}
TT_DEVICE void store(void* out, int64_t at, int count, const T (&from)[4], T) {
  T* to = static_cast<T*>(out) + at;
  if (count == 4) {
    Four<T> four;
#pragma unroll
    for (int i = 0; i < 4; ++i) four.at[i] = from[i];
    *reinterpret_cast<Four<T>*>(to) = four;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < count) to[i] = from[i];
    }
  }
}
TT_DEVICE void store(void* out, int64_t at, int count, const T (&from)[4], Truth) {
  uint8_t* to = static_cast<uint8_t*>(out) + at;
  if (count == 4) {
    Four<uint8_t> four;
#pragma unroll
    for (int i = 0; i < 4; ++i) four.at[i] = from[i] != 0;
    *reinterpret_cast<Four<uint8_t>*>(to) = four;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < count) to[i] = from[i] != 0;
    }
  }
}
)";

// $0: loads, $1: the results of the steps, $2: the last result, $3: the output's element type.
constexpr std::string_view kChainKernel = R"(
TT_KERNEL(fused) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x * 4;
  for (int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 4; at < p.numel; at += step) {
    const int count = p.numel - at < 4 ? static_cast<int>(p.numel - at) : 4;
    T result[4] = {};
$0#pragma unroll
    for (int i = 0; i < 4; ++i) {
$1      result[i] = $2;
    }
    store(p.out, at, count, result, $3());
  }
}
)";

}  // namespace

ChainPlan::ChainPlan(absl::Span<const ChainStep> steps, const Tensor& out) : out_(out), compute_(steps[0].compute) {
  const bool is_supported = compute_ == DType::kFloat32 || compute_ == DType::kFloat64 || compute_ == DType::kInt32 ||
                            compute_ == DType::kInt64;
  possible_ = is_supported && out.is_contiguous() && (out.dtype() == compute_ || out.dtype() == DType::kBool) &&
              reinterpret_cast<uintptr_t>(out.data()) % 16 == 0;
  for (const ChainStep& step : steps) {
    if (possible_) add(step);
  }
  if (!possible_) return;
  merge_dims();
  if (sizes_.size() > kChainDims || numbers_.size() > kChainNumbers) possible_ = false;
  absl::StrAppend(&key_, ">", view(element(out.dtype())), ":", view(type()));
}

std::string_view ChainPlan::type() const { return element(compute_); }

void ChainPlan::add(const ChainStep& step) {
  const uint16_t simpler = power_of(step);
  const ChainBody* body = body_of(simpler ? simpler : step.op->id);
  if (!body || (is_float() ? body->float_name : body->int_name).empty()) {
    possible_ = false;
    return;
  }
  std::string arguments;
  for (size_t i = 0; i < (simpler ? 1 : step.args.size()); ++i) {
    const Param& param = step.op->params[i];
    const Arg& arg = step.args[i];
    if (i > 0) absl::StrAppend(&arguments, ", ");
    if (param.type == ParamType::kTensor) {
      absl::StrAppend(&arguments, operand(arg));
      continue;
    }
    const std::string value = arg.is_none() ? "T(0)" : number(arg);
    absl::StrAppend(&arguments, value, param.type == ParamType::kBool ? " != T(0)" : "");
    if (param.optional) absl::StrAppend(&arguments, arg.is_none() ? ", false" : ", true");
  }
  absl::StrAppend(&key_, body->op, "(", arguments, ")");
  steps_.push_back({body, std::move(arguments)});
}

std::string ChainPlan::operand(const Arg& arg) {
  if (arg.kind == Arg::Kind::kSlot) return absl::StrCat("r", arg.slot);
  if (arg.is_number()) return number(arg);
  const Tensor t = Tensor::from(arg.tensor);
  if (t.device() != out_.device() || inputs_.size() == kShortChain.inputs || t.dtype() >= DType::kComplex64) {
    possible_ = false;
    return "";
  }
  inputs_.push_back(t);
  return absl::StrCat("x", inputs_.size() - 1, "[i]");
}

std::string ChainPlan::number(const Arg& arg) {
  numbers_.push_back(arg);
  return absl::StrCat("p.number[", numbers_.size() - 1, "]");
}

void ChainPlan::merge_dims() {
  const Sizes plain = contiguous_strides(out_.sizes());
  std::array<Sizes, kShortChain.inputs> own;
  std::array<SizesView, kShortChain.inputs> views;
  for (size_t k = 0; k < kShortChain.inputs; ++k) {
    own[k] = k < inputs_.size() ? broadcast_strides(inputs_[k].sizes(), inputs_[k].strides(), out_.sizes()) : plain;
    views[k] = own[k];
  }
  const auto dims = merged_dims<kShortChain.inputs>(out_.sizes(), views);
  strides_.resize(inputs_.size());
  for (const auto& dim : dims) {
    possible_ = possible_ && dim.size <= std::numeric_limits<int32_t>::max();
    sizes_.push_back(static_cast<int32_t>(dim.size));
    for (size_t k = 0; k < inputs_.size(); ++k) strides_[k].push_back(dim.strides[k]);
  }
  for (size_t k = 0; k < inputs_.size(); ++k) {
    bool one = true, as_output = reinterpret_cast<uintptr_t>(inputs_[k].data()) % 16 == 0;
    int64_t next = 1;
    for (size_t d = sizes_.size(); d-- > 0; next *= sizes_[d]) {
      one = one && strides_[k][d] == 0;
      as_output = as_output && strides_[k][d] == next;
    }
    load_kinds_.push_back(as_output ? 'p' : one ? 'o' : 's');
    absl::StrAppend(&key_, " ", load_kinds_.substr(k), view(element(inputs_[k].dtype())));
  }
}

std::string ChainPlan::load(size_t input) const {
  const absl::string_view dtype = view(element(inputs_[input].dtype()));
  if (load_kinds_[input] == 's') {
    return absl::Substitute("    T x$0[4] = {};\n    load_strided<$1>(p, $0, at, count, x$0);\n", input, dtype);
  }
  return absl::Substitute("    T x$0[4] = {};\n    load_$2<$1>(p.in[$0], at, count, x$0);\n", input, dtype,
                          load_kinds_[input] == 'p' ? "plain" : "one");
}

std::string ChainPlan::source() const {
  std::string text = absl::StrCat(view(chain_functions()), "namespace tt::math {\n");
  for (size_t i = 0; i < steps_.size(); ++i) {
    bool seen = false;
    for (size_t j = 0; j < i; ++j) seen = seen || steps_[j].body == steps_[i].body;
    if (!seen) absl::StrAppend(&text, view(is_float() ? steps_[i].body->float_text : steps_[i].body->int_text));
  }
  absl::StrAppend(&text, "}\nusing namespace tt::math;\nusing T = ", view(type()), ";\n", view(kChainElements));
  std::string loads, results;
  for (size_t k = 0; k < inputs_.size(); ++k) absl::StrAppend(&loads, load(k));
  for (size_t i = 0; i < steps_.size(); ++i) {
    const absl::string_view name = view(is_float() ? steps_[i].body->float_name : steps_[i].body->int_name);
    absl::StrAppend(&results, "      const T r", i, " = number<T>(", name, "<T>(", steps_[i].arguments, "));\n");
  }
  absl::StrAppend(&text, absl::Substitute(view(kChainKernel), loads, results, absl::StrCat("r", steps_.size() - 1),
                                          out_.dtype() == DType::kBool ? "Truth" : "T"));
  return text;
}

void ChainPlan::fill(int64_t* numel, void** out, const void** in, int32_t* dims, int32_t* sizes,
                     int64_t (*strides)[kChainDims]) const {
  *numel = out_.numel();
  *out = out_.data();
  *dims = static_cast<int32_t>(sizes_.size());
  std::copy(sizes_.begin(), sizes_.end(), sizes);
  for (size_t k = 0; k < inputs_.size(); ++k) {
    in[k] = inputs_[k].data();
    std::copy(strides_[k].begin(), strides_[k].end(), strides[k]);
  }
}

}  // namespace tt::cuda
