#include "client/api/tensor.h"

#include <algorithm>
#include <ostream>

#include "client/api/creation.h"
#include "client/api/dispatch.h"
#include "client/api/errors.h"
#include "client/api/operators.h"
#include "client/api/session.h"
#include "client/session/default_dtype.h"
#include "client/session/program_trace.h"
#include "client/session/session.h"
#include "engine/schema/float8.h"
#include "engine/schema/op_ids.h"

namespace teletensor {
namespace {

int64_t wrapped(int64_t dim, int64_t count) {
  const int64_t limit = std::max<int64_t>(count, 1);
  if (count == 0 || dim < -limit || dim >= limit) {
    throw IndexError(count == 0 ? "dimension specified as " + std::to_string(dim) + " but tensor has no dimensions"
                                : "Dimension out of range (expected to be in range of [" + std::to_string(-limit) +
                                      ", " + std::to_string(limit - 1) + "], but got " + std::to_string(dim) + ")");
  }
  return dim < 0 ? dim + count : dim;
}

template <typename T>
T as(const std::string& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const IntArrayRef& list) { return stream << tt::to_string(list.span()); }

Device::Device(std::string_view text) : device_(internal::translated([&] { return tt::parse_device(text); })) {}

Dtype get_default_dtype() { return tt::client::default_dtype(); }
void set_default_dtype(Dtype dtype) {
  internal::translated([&] { tt::client::set_default_dtype(dtype); });
}

Tensor::Tensor(const Scalar& number) : Tensor(full({}, number)) {}

void Tensor::throw_undefined() { throw RuntimeError("expected a tensor, got an undefined Tensor"); }

void Tensor::require_of_runs(Read what, size_t dim) const {
  static_assert(kTracedHandle == tt::client::ProgramTrace::kTracedHandle);
  tt::client::ProgramTrace* const trace = tt::client::ProgramTrace::of_tensor(*handle_);
  if (trace == nullptr) return;
  internal::translated([&] {
    switch (what) {
      case Read::kSize: trace->size_of(*handle_, dim).constant(); break;
      case Read::kSizes: trace->require_sizes(*handle_); break;
      case Read::kStride: trace->require_stride(*handle_, dim); break;
      case Read::kStrides:
        for (size_t d = 0; d < handle_->sizes.size(); ++d) trace->require_stride(*handle_, d);
        break;
      case Read::kOffset: trace->require_offset(*handle_); break;
      case Read::kContiguity: trace->require_contiguity(*handle_); break;
    }
  });
}

int64_t Tensor::size(int64_t dim) const {
  const auto index = static_cast<size_t>(wrapped(dim, this->dim()));
  return read_meta(Read::kSize, index).sizes[index];
}
int64_t Tensor::stride(int64_t dim) const {
  const auto index = static_cast<size_t>(wrapped(dim, this->dim()));
  return read_meta(Read::kStride, index).strides[index];
}

Session Tensor::session() const {
  meta();
  return Session(handle_->session);
}

Scalar Tensor::item() const {
  if (numel() != 1) {
    throw RuntimeError("a Tensor with " + std::to_string(numel()) + " elements cannot be converted to Scalar");
  }
  const std::string bytes = internal::translated([&] { return handle_->session->read(handle_).bytes; });
  switch (dtype()) {
    case Dtype::kBool: return Scalar(as<uint8_t>(bytes) != 0);
    case Dtype::kUInt8: return Scalar(int64_t{as<uint8_t>(bytes)});
    case Dtype::kInt8: return Scalar(int64_t{as<int8_t>(bytes)});
    case Dtype::kInt16: return Scalar(int64_t{as<int16_t>(bytes)});
    case Dtype::kUInt16: return Scalar(int64_t{as<uint16_t>(bytes)});
    case Dtype::kInt32: return Scalar(int64_t{as<int32_t>(bytes)});
    case Dtype::kUInt32: return Scalar(int64_t{as<uint32_t>(bytes)});
    case Dtype::kInt64: return Scalar(as<int64_t>(bytes));
    case Dtype::kUInt64: return Scalar::of_unsigned(as<uint64_t>(bytes));
    case Dtype::kFloat16: return Scalar(double{static_cast<float>(as<tt::Half>(bytes))});
    case Dtype::kBFloat16: return Scalar(double{static_cast<float>(as<tt::BFloat16>(bytes))});
    case Dtype::kFloat32: return Scalar(double{as<float>(bytes)});
    case Dtype::kFloat64: return Scalar(as<double>(bytes));
    case Dtype::kComplex64: {
      const auto value = as<std::complex<float>>(bytes);
      return Scalar(std::complex<double>(value.real(), value.imag()));
    }
    case Dtype::kComplex128: return Scalar(as<std::complex<double>>(bytes));
    case Dtype::kFloat8E4m3fn: return Scalar(double{static_cast<float>(as<tt::Float8E4m3fn>(bytes))});
    case Dtype::kFloat8E5m2: return Scalar(double{static_cast<float>(as<tt::Float8E5m2>(bytes))});
  }
  throw TypeError("item: unknown dtype");
}

bool Tensor::equal(const Tensor& other) const {
  NoGradGuard no_grad;
  return is_same_size(other) && eq(other).all().item<bool>();
}

bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  if (dtype() != other.dtype()) {
    throw RuntimeError(std::string("[allclose] expected tensors of one dtype, got ") + std::string(tt::name(dtype())) +
                       " and " + std::string(tt::name(other.dtype())));
  }
  NoGradGuard no_grad;
  return isclose(other, rtol, atol, equal_nan).all().item<bool>();
}

void Tensor::read(void* into, size_t bytes, Dtype dtype) const {
  NoGradGuard no_grad;
  const Tensor converted = to(dtype);
  if (bytes != converted.nbytes()) {
    throw ValueError("read: expected memory of " + std::to_string(converted.nbytes()) + " bytes, got " +
                     std::to_string(bytes));
  }
  internal::translated([&] { handle_->session->read_into(converted.handle(), {static_cast<char*>(into), bytes}); });
}

Tensor Tensor::to(Dtype dtype) const { return dtype == this->dtype() ? *this : ops::to_dtype(*this, dtype); }
Tensor Tensor::to(Device device) const { return device == this->device() ? *this : ops::to_device(*this, device); }
Tensor Tensor::to(const TensorOptions& options) const {
  Tensor result = *this;
  if (options.device_opt()) result = result.to(*options.device_opt());
  if (options.dtype_opt()) result = result.to(*options.dtype_opt());
  return result;
}

Tensor Tensor::copy_(const Operand& source) const {
  const tt::Arg& arg = source.arg();
  if (arg.kind == tt::Arg::Kind::kTensor && arg.tensor->sizes.size() > meta().sizes.size()) {
    throw RuntimeError("[copy_] output with shape " + tt::to_string(meta().sizes) +
                       " doesn't match the shape of the source, " + tt::to_string(arg.tensor->sizes));
  }
  if (arg.kind == tt::Arg::Kind::kTensor && arg.tensor->device != meta().device) {
    const auto* handle = static_cast<const tt::client::Handle*>(arg.tensor);
    const Tensor given(tt::client::Tensor(const_cast<tt::client::Handle*>(handle)));
    return copy_(given.to(device()));
  }
  const tt::Arg args[] = {self(), arg};
  return internal::call_into(tt::op_id::kAssign, args, handle_);
}

Tensor Tensor::where(const Tensor& condition, const Operand& other) const {
  return teletensor::where(condition, *this, other);
}

namespace internal {
Tensor subtract(const Operand& a, const Tensor& b) { return teletensor::sub(a, b); }
Tensor divide(const Operand& a, const Tensor& b) { return teletensor::div(a, b); }
}  // namespace internal

}  // namespace teletensor
