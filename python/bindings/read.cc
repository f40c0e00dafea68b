#include "python/bindings/read.h"

#include <pybind11/pybind11.h>

#include <cstring>

#include "engine/schema/float8.h"
#include "python/bindings/mode.h"
#include "python/bindings/object.h"

namespace tt::python {
namespace {

template <typename T>
T load(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

Scalar element(DType t, const char* p) {
  switch (t) {
    case DType::kBool: return Scalar(load<uint8_t>(p) != 0);
    case DType::kUInt8: return Scalar(int64_t{load<uint8_t>(p)});
    case DType::kInt8: return Scalar(int64_t{load<int8_t>(p)});
    case DType::kInt16: return Scalar(int64_t{load<int16_t>(p)});
    case DType::kInt32: return Scalar(int64_t{load<int32_t>(p)});
    case DType::kInt64: return Scalar(load<int64_t>(p));
    case DType::kFloat16: return Scalar(double{load<Half>(p)});
    case DType::kBFloat16: return Scalar(double{load<BFloat16>(p)});
    case DType::kFloat32: return Scalar(double{load<float>(p)});
    case DType::kFloat64: return Scalar(load<double>(p));
    case DType::kComplex64: return Scalar(std::complex<double>(load<std::complex<float>>(p)));
    case DType::kComplex128: return Scalar(load<std::complex<double>>(p));
    case DType::kUInt16: return Scalar(int64_t{load<uint16_t>(p)});
    case DType::kUInt32: return Scalar(int64_t{load<uint32_t>(p)});
    case DType::kUInt64: return Scalar::of_unsigned(load<uint64_t>(p));
    case DType::kFloat8E4m3fn: return Scalar(double{load<Float8E4m3fn>(p)});
    case DType::kFloat8E5m2: return Scalar(double{load<Float8E5m2>(p)});
  }
  return Scalar();
}

PyObject* number(const Scalar& s) {
  switch (s.category()) {
    case Category::kBool: return PyBool_FromLong(s.to_bool());
    case Category::kInteger:
      return s.is_beyond_int() ? PyLong_FromUnsignedLongLong(static_cast<uint64_t>(s.to_int()))
                               : PyLong_FromLongLong(s.to_int());
    case Category::kFloating: return PyFloat_FromDouble(s.to_double());
    default: return PyComplex_FromDoubles(s.to_complex().real(), s.to_complex().imag());
  }
}

PyObject* nested(const TensorMeta& meta, size_t dim, const char*& at) {
  if (dim == meta.sizes.size()) {
    PyObject* result = number(element(meta.dtype, at));
    at += item_size(meta.dtype);
    return result;
  }
  Owned list(throw_if_null(PyList_New(meta.sizes[dim])));
  for (int64_t i = 0; i < meta.sizes[dim]; ++i) {
    PyList_SET_ITEM(list.get(), i, throw_if_null(nested(meta, dim + 1, at)));
  }
  return list.release();
}

void check_is_number(const TensorMeta& tensor) {
  check(tensor.numel() == 1, "a Tensor with ", tensor.numel(), " elements cannot be converted to Scalar");
  check(tensor.device.type != DeviceType::kMeta, "Tensor.item() cannot be called on meta tensors");
}

client::Value read(const client::Tensor& tensor) {
  uint32_t site = current_site(*tensor->session);
  ReleaseGil released;
  return tensor->session->read(tensor, site);
}

}  // namespace

PendingRead::PendingRead(const client::Tensor& tensor) : meta_(*tensor), session_(tensor->session) {
  pending_ = session_->read_async(tensor, current_site(*session_));
}

bool PendingRead::done() const {
  ReleaseGil released;
  return pending_->has_arrived();
}

absl::Span<char> PendingRead::wait_for_bytes() const {
  const uint32_t site = current_site(*session_);
  ReleaseGil released;
  return received_ = pending_->get(site);
}

static const client::Tensor& check_number(const client::Tensor& tensor) {
  check_is_number(*tensor);
  return tensor;
}

PendingItem::PendingItem(const client::Tensor& tensor) : PendingRead(check_number(tensor)) {}

PyObject* PendingItem::wait() const { return number(element(meta().dtype, wait_for_bytes().data())); }

PyObject* PendingList::wait() const {
  const char* at = wait_for_bytes().data();
  return nested(meta(), 0, at);
}

Scalar read_scalar(const client::Tensor& tensor) {
  check_is_number(*tensor);
  client::Value value = read(tensor);
  return element(tensor->dtype, value.bytes.data());
}

std::string read_bytes(const client::Tensor& tensor) { return read(tensor).bytes; }

PyObject* item(const client::Tensor& tensor) { return number(read_scalar(tensor)); }

PyObject* item_async(const client::Tensor& tensor) {
  return pybind11::cast(std::make_unique<PendingItem>(tensor)).release().ptr();
}

PyObject* to_list_async(const client::Tensor& tensor) {
  return pybind11::cast(std::make_unique<PendingList>(tensor)).release().ptr();
}

PyObject* to_list(const client::Tensor& tensor) {
  std::string bytes = read_bytes(tensor);
  const char* at = bytes.data();
  return nested(*tensor, 0, at);
}

}  // namespace tt::python
