// Op: one operator's schema, as generated from engine/ops/*.yaml.
//
// The table is constant; thread-safe. Ids only grow and are never reused, so a newer client can detect which operators
// its engine lacks.
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
  int8_t list_size;       // for int[2]: a single int is repeated to this length; 0: any length
  bool optional_entries;  // Tensor?[]
  bool differentiable;    // a gradient is declared for the parameter
  bool written;           // "Tensor(w)": the operator writes it in place (fused optimizer steps)
  bool accepts_number;    // a number may be passed: "Operand", and every tensor of a body
  bool variadic;          // "int[*]": in Python takes all remaining positional arguments
  Arg default_value;

  // Whether a call's argument has the right kind.
  bool accepts(const Arg& arg) const;
  // Like accepts(), for an argument in a Program, which has slots instead of tensors.
  bool accepts_in_program(const Arg& arg) const;
};

// The output of infer().
struct Inference {
  absl::InlinedVector<TensorMeta, 1> outputs;
  // Views only: whether the outputs alias the first tensor argument (reshape may have to copy).
  bool alias = false;
  // Pointwise only: the dtype in which the body is evaluated.
  DType compute = DType::kFloat32;

  // The remaining members are set by infer() itself, in the same way for every operator.
  Device device;  // device of the results
  DeviceType backend =
      DeviceType::kCPU;  // computes the results; meta takes precedence over plug-ins, those over cuda, cuda over cpu
  bool requires_grad = false;  // grad mode is on and a differentiable argument requires grad
};

// The treatment of an `out=` tensor whose dtype differs from the result's.
enum class OutRule : uint8_t {
  kCast,   // the result is cast to the out tensor's dtype if possible
  kExact,  // an error
  kTyped,  // an error, but the argument `dtype` defaults to out's dtype
};

// What an operator does besides its results and writes.
enum class SessionUse : uint8_t {
  kNone,
  kGenerator,  // changes or returns the session's random numbers: a Program of a session may contain it, a model not
  kState,      // changes or uses other state of the session, or what is outside of it: no Program may contain it
};

// One formula of a gradient. Each mask has one bit per parameter or per result. The node of a call saves the tensors
// among `args` and `results` until backward if one of `params` needs a gradient.
struct SavedPart {
  uint32_t params;   // parameters whose gradients the formula computes
  uint32_t args;     // tensor arguments whose values it reads
  uint32_t results;  // results whose values it reads
};

struct Op {
  using Infer = void (*)(Args args, Inference* out);
  static constexpr int8_t kNever = -1, kAlways = -2;

  uint16_t id;
  std::string_view name;  // "add"; one name from the declaration to Python
  absl::Span<const Param> params;
  int8_t num_outputs;  // -1: a list whose length infer() determines
  bool is_pointwise;
  bool is_view;
  bool is_dynamic;  // output shapes depend on data: infer() computes dtypes, sizes are unknown
  bool is_random;
  bool differentiable;  // some parameter is differentiable
  bool is_composite;    // computed with other operators, whose gradients are its gradient
  bool any_devices;     // its tensors may be on several devices, because it only passes them on
  bool takes_float8;    // accepts 8-bit floating types, which most operators reject
  // Whether a call outside of programs waits for its status (`waits` in the declarations): kNever, kAlways, or the
  // index of a string argument, if that is not empty.
  int8_t waits = kNever;
  SessionUse session;
  absl::Span<const SavedPart> saved;  // the values that its gradient formulas read; empty for composites
  OutRule out;                        // the dtype rule for callers that pass `out=`
  Infer infer;

  // Throws Error (TypeError) if an argument has the wrong kind or is missing. `args` must have as many entries as
  // params. Every call from the wire is checked here.
  void check_args(Args args) const;
  // Whether a call with these arguments waits for its status.
  bool waits_for_status(Args args) const {
    return waits != kNever && (waits == kAlways || !args[static_cast<size_t>(waits)].string().empty());
  }
};

// Null if there is no such operator. O(1).
const Op* find_op(uint16_t id);
// Takes O(log n); for set-up, not for every call.
const Op* find_op(std::string_view name);
absl::Span<const Op* const> all_ops();
// A digest of all ids and signatures; equal digests imply equal schemas.
uint64_t schema_digest();

// infer() rejects more dimensions, so kernels may use arrays of this length.
inline constexpr int kMaxDims = 64;

// Computes sizes, strides, dtypes, device and requires_grad of the results. Throws Error, prefixed with the operator's
// name, on incompatible arguments. `grad_enabled` is the caller's grad mode. Requires that check_args has passed.
void infer(const Op& op, Args args, bool grad_enabled, Inference* out);
// Checks that a result may be written to an existing tensor (in-place and out= forms): equal sizes, a castable dtype,
// the same device, not a leaf that requires grad, no memory that overlaps itself. `result` is computed by infer().
void check_out_variant(const Op& op, const TensorMeta& result, const TensorMeta& target, bool target_is_leaf,
                       bool grad_enabled);
// Additional checks for `out=`, according to the operator's OutRule.
void check_out(const Op& op, const TensorMeta& result, const TensorMeta& target);

}  // namespace tt
