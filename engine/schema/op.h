// Op: one operator's schema, as generated from engine/ops/*.yaml.
//
// The table is constant data; safe from any thread. Ids only grow and are never reused, so a
// client that is newer than its engine can tell which operators the engine lacks.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/schema/arg.h"
#include "engine/schema/meta.h"

namespace tt {

enum class ParamType : uint8_t {
  kTensor,
  kTensors,  // Tensor[]; with optional entries: Tensor?[]
  kScalar,
  kInt,
  kFloat,
  kBool,
  kInts,
  kFloats,
  kString,
  kDType,
  kDevice,
};

struct Param {
  std::string_view name;
  ParamType type;
  bool optional;  // "?": None is allowed
  bool has_default;
  bool keyword_only;      // after "*" in the signature
  int8_t list_size;       // int[2]: one int stands for so many; 0 where any length goes
  bool optional_entries;  // Tensor?[]
  bool differentiable;    // a gradient is declared for it
  bool written;           // "Tensor(w)": the operator changes it in place (fused optimizer steps)
  bool accepts_number;    // "Operand", and every tensor of a body: a number of the user's may stand here
  bool variadic;          // "int[*]": in Python takes all remaining positional arguments
  Arg default_value;
};

// What infer() finds out.
struct Inference {
  absl::InlinedVector<TensorMeta, 1> outputs;
  // Views only: whether output i aliases the first tensor argument (reshape may have to copy).
  bool alias = false;
  // Pointwise only: the type that the body is evaluated in.
  DType compute = DType::kFloat32;

  // The rest is filled in by infer() itself, the same way for every operator.
  Device device;                          // of the results
  DeviceType backend = DeviceType::kCPU;  // what computes them; meta beats cuda beats cpu
  bool requires_grad = false;             // grad mode is on and a differentiable argument requires grad
};

// What an `out=` of another dtype than the result's comes to.
enum class OutRule : uint8_t {
  kCast,   // the result is cast to it, where it can be
  kExact,  // refused
  kTyped,  // refused, but a `dtype` that is not given is that of out
};

struct Op {
  using Infer = void (*)(Args args, Inference* out);

  uint16_t id;
  std::string_view name;  // "add"; one name from the declaration to Python
  absl::Span<const Param> params;
  int8_t num_outputs;  // -1: a list, as many as infer() says
  bool is_pointwise;
  bool is_view;
  bool is_dynamic;  // output shapes depend on data: infer gives dtypes, sizes are unknown
  bool is_random;
  bool differentiable;  // some parameter is
  bool saves;           // a gradient's formula reads values of arguments or results: kept until backward
  bool any_devices;     // its tensors may be on several: it passes them on and computes nothing with them
  bool takes_float8;    // of 8-bit floating numbers too, which most operators refuse
  OutRule out;          // for callers with an `out=`, which know it from the operator in place
  Infer infer;

  // Throws Error (TypeError) where an argument has the wrong kind or is missing. `args` are as
  // many as params; what comes over the wire passes through here.
  void check_args(Args args) const;
};

// Null where there is no such operator. O(1).
const Op* find_op(uint16_t id);
// O(log n), for set-up, not for calls.
const Op* find_op(std::string_view name);
absl::Span<const Op* const> all_ops();
// A digest of all ids and signatures; equal digests need no comparison.
uint64_t schema_digest();

// infer() refuses more dimensions, so kernels may keep counters in arrays of this length.
inline constexpr int kMaxDims = 64;

// Sizes, strides, dtypes, device and requires_grad of the results. Throws Error, with the
// operator's name in front, on arguments that do not go together. `grad_enabled` is the caller's
// grad mode. Requires check_args to have passed.
void infer(const Op& op, Args args, bool grad_enabled, Inference* out);
// What landing a result in an existing tensor requires (in-place and out= forms): equal sizes,
// a castable dtype, the same device, no write into a leaf that requires grad or into memory
// that overlaps itself. `result` is what infer() said.
void check_out_variant(const Op& op, const TensorMeta& result, const TensorMeta& target, bool target_is_leaf,
                       bool grad_enabled);
// What an `out=` requires beside that, by the operator's rule.
void check_out(const Op& op, const TensorMeta& result, const TensorMeta& target);

}  // namespace tt
