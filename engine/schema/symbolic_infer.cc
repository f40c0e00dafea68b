#include "engine/schema/symbolic_infer.h"

#include <stdexcept>

#include "engine/schema/custom_table.h"
#include "engine/schema/default_float.h"
#include "engine/schema/error.h"
#include "engine/symbolic/plain_call.h"

namespace tt {
namespace {

using symbolic::PlainArg;
using symbolic::PlainMeta;

PlainMeta plain(const TensorMeta& meta) {
  PlainMeta made{
      static_cast<uint8_t>(meta.dtype), meta.device.encode(), meta.requires_grad, meta.is_number, {}, {}, meta.offset};
  made.sizes.assign(meta.sizes.begin(), meta.sizes.end());
  made.strides.assign(meta.strides.begin(), meta.strides.end());
  return made;
}

PlainArg plain(const Arg& arg) {
  switch (arg.kind) {
    case Arg::Kind::kTensor: return plain(*arg.tensor);
    case Arg::Kind::kTensors: {
      std::vector<std::optional<PlainMeta>> list;
      for (const TensorMeta* t : arg.list()) list.push_back(t ? std::optional(plain(*t)) : std::nullopt);
      return list;
    }
    case Arg::Kind::kBool: return arg.to_bool();
    case Arg::Kind::kInt:
      if (arg.size != 0) return symbolic::Unsigned{static_cast<uint64_t>(arg.integer)};
      return arg.integer;
    case Arg::Kind::kFloat: return arg.real;
    case Arg::Kind::kComplex: return std::complex<double>(arg.real, arg.imaginary);
    case Arg::Kind::kInts: return std::vector<int64_t>(arg.ints().begin(), arg.ints().end());
    case Arg::Kind::kFloats: return std::vector<double>(arg.floats().begin(), arg.floats().end());
    case Arg::Kind::kString: return std::string(arg.string());
    case Arg::Kind::kNone:
    case Arg::Kind::kSlot:
    case Arg::Kind::kSlots: break;
  }
  return std::monostate();
}

TensorMeta meta_of(const PlainMeta& plain) {
  TensorMeta made;
  made.dtype = static_cast<DType>(plain.dtype);
  made.device = decode_device(plain.device);
  made.requires_grad = plain.requires_grad;
  made.is_number = plain.is_number;
  made.sizes.assign(plain.sizes.begin(), plain.sizes.end());
  made.strides.assign(plain.strides.begin(), plain.strides.end());
  made.offset = plain.offset;
  return made;
}

}  // namespace

void infer_symbolic(const Op& op, Args args, bool grad_enabled, Inference* out) {
  check(ErrorKind::kNotImplemented, !is_custom(op.id), "[", op.name, "] a custom operator has no symbolic rules");
  op.check_args(args);
  symbolic::PlainCall call{op.id,
                           op.is_pointwise,
                           op.is_view,
                           op.any_devices,
                           op.takes_float8,
                           op.differentiable,
                           grad_enabled,
                           static_cast<uint8_t>(default_float()),
                           {},
                           {}};
  for (const Param& param : op.params) call.params.push_back({static_cast<uint8_t>(param.type), param.differentiable});
  for (const Arg& arg : args) call.args.push_back(plain(arg));
  try {
    const symbolic::PlainInference inferred = symbolic::infer_symbolic(call);
    out->outputs.clear();
    for (const PlainMeta& output : inferred.outputs) out->outputs.push_back(meta_of(output));
    out->alias = inferred.alias;
    out->requires_grad = inferred.requires_grad;
    out->compute = static_cast<DType>(inferred.compute);
    out->backend = static_cast<DeviceType>(inferred.backend);
    out->device = decode_device(inferred.device);
  } catch (const symbolic::PlainError& plain) {
    Error error(static_cast<ErrorKind>(plain.kind()), plain.message());
    error.set_op(op.name);
    throw error;
  } catch (const std::overflow_error& error) {
    fail(ErrorKind::kRuntime, "[", op.name, "] ", error.what());
  }
}

Sizes symbolic_strides(SizesView sizes) {
  Sizes strides(sizes.size());
  int64_t step = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    strides[dim] = step;
    step = symbolic::multiply(step, symbolic::maximum(sizes[dim], 1));
  }
  return strides;
}

}  // namespace tt
