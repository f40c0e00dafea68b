#include "client/session/operand.h"

#include <cstring>

#include "client/session/autocast.h"
#include "client/session/call_mode.h"
#include "engine/schema/float8.h"

namespace tt::client {
namespace {

template <typename T>
double as_double(const std::string& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(value);
  else
    return static_cast<double>(static_cast<float>(value));
}

}  // namespace

NoGrad::NoGrad() : before_(std::exchange(call_mode.grad, false)) {}
NoGrad::~NoGrad() { call_mode.grad = before_; }

Session& session_of(std::string_view op, Args args) {
  for (const Arg& arg : args) {
    absl::Span<const TensorMeta* const> list(&arg.tensor, arg.kind == Arg::Kind::kTensor ? 1 : 0);
    if (arg.kind == Arg::Kind::kTensors) list = arg.list();
    for (const TensorMeta* tensor : list) {
      if (tensor) return *static_cast<const Handle*>(tensor)->session;
    }
  }
  fail(ErrorKind::kType, "[", op, "] expected at least one tensor argument, got numbers only");
}

Tensors call_op(Session& session, uint16_t op, Args args, absl::Span<const Tensor> into) {
  return session.call(*find_op(op), args,
                      {.grad = call_mode.grad, .into = into, .autocast = autocast_settings().state()});
}

double item(const Tensor& tensor) {
  check(tensor->numel() == 1, "a Tensor with ", tensor->numel(), " elements cannot be converted to Scalar");
  std::string bytes = tensor->session->read(tensor).bytes;
  switch (tensor->dtype) {
    case DType::kBool:
    case DType::kUInt8: return as_double<uint8_t>(bytes);
    case DType::kInt8: return as_double<int8_t>(bytes);
    case DType::kInt16: return as_double<int16_t>(bytes);
    case DType::kInt32: return as_double<int32_t>(bytes);
    case DType::kInt64: return as_double<int64_t>(bytes);
    case DType::kFloat16: return as_double<Half>(bytes);
    case DType::kBFloat16: return as_double<BFloat16>(bytes);
    case DType::kFloat32: return as_double<float>(bytes);
    case DType::kFloat64: return as_double<double>(bytes);
    case DType::kUInt16: return as_double<uint16_t>(bytes);
    case DType::kUInt32: return as_double<uint32_t>(bytes);
    case DType::kUInt64: return as_double<uint64_t>(bytes);
    case DType::kFloat8E4m3fn: return as_double<Float8E4m3fn>(bytes);
    case DType::kFloat8E5m2: return as_double<Float8E5m2>(bytes);
    case DType::kComplex64:
    case DType::kComplex128: break;
  }
  fail(ErrorKind::kType, "item() expected a real dtype, got ", tensor->dtype,
       ": a complex number does not convert to double");
}

}  // namespace tt::client
