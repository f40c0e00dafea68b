#include "python/bindings/tensor/read.h"

#include <pybind11/pybind11.h>

#include <cstring>
#include <memory>
#include <optional>

#include "engine/schema/float8.h"
#include "python/bindings/tensor/function_log.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"

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

PyObject* PendingList::wait() const {
  const char* at = wait_for_bytes().data();
  return nested(meta(), 0, at);
}

Scalar read_scalar(const client::Tensor& tensor) {
  std::optional<LoggedCall> logged, logged_read;
  if (logs_functions) [[unlikely]]
    logged.emplace("item");
  check_is_number(*tensor);
  if (logs_functions) [[unlikely]]
    logged_read.emplace("_local_scalar_dense");
  client::Value value = read(tensor);
  return element(tensor->dtype, value.bytes.data());
}

std::string read_bytes(const client::Tensor& tensor) { return read(tensor).bytes; }

PyObject* item(const client::Tensor& tensor) { return number(read_scalar(tensor)); }

// ---- PendingItem: written with the C API, because a training loop may create one per step.

namespace {

struct PendingItemObject {
  PyObject_HEAD DType dtype;
  Ref<client::Session> session;
  std::unique_ptr<client::PendingValue> value;
};

PyTypeObject* pending_item_type = nullptr;

PendingItemObject* item_of(PyObject* o) { return reinterpret_cast<PendingItemObject*>(o); }

void dealloc_item(PyObject* o) {
  PendingItemObject* self = item_of(o);
  PyTypeObject* type = Py_TYPE(o);
  std::destroy_at(&self->value);
  std::destroy_at(&self->session);
  type->tp_free(o);
  Py_DECREF(type);
}

// Holds the GIL, because it only handles replies that have arrived.
PyObject* item_done(PyObject* o, PyObject*) {
  return guard([&] {
    client::PendingValue& value = *item_of(o)->value;
    return PyBool_FromLong(value.is_ready() || value.has_arrived());
  });
}

PyObject* item_wait(PyObject* o, PyObject*) {
  return guard([&] {
    const PendingItemObject& self = *item_of(o);
    if (self.value->is_ready()) return number(element(self.dtype, self.value->get().data()));
    const uint32_t site = current_site(*self.session);
    absl::Span<const char> bytes;
    {
      ReleaseGil released;
      bytes = self.value->get(site);
    }
    return number(element(self.dtype, bytes.data()));
  });
}

PyMethodDef item_methods[] = {
    {"done", item_done, METH_NOARGS, "done(): whether wait() returns at once. Does not wait."},
    {"wait", item_wait, METH_NOARGS,
     "wait(): waits for the number and returns it. Raises the tensor's error if its computation failed."},
    {}};

}  // namespace

bool init_pending_item_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_item)},
      {Py_tp_methods, item_methods},
      {Py_tp_doc, const_cast<char*>("The number that Tensor.item_async() requested, as it was at that call.")},
      {0, nullptr},
  };
  PyType_Spec spec{"teletensor.PendingItem", sizeof(PendingItemObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  pending_item_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return pending_item_type && PyModule_AddType(module, pending_item_type) == 0;
}

PyObject* item_async(const client::Tensor& tensor) {
  check_is_number(*tensor);
  const DType dtype = tensor->dtype;
  Ref<client::Session> session = tensor->session;
  std::unique_ptr<client::PendingValue> value = session->read_async(tensor, current_site(*session));
  auto* self = reinterpret_cast<PendingItemObject*>(throw_if_null(pending_item_type->tp_alloc(pending_item_type, 0)));
  self->dtype = dtype;
  new (&self->session) Ref<client::Session>(std::move(session));
  new (&self->value) std::unique_ptr<client::PendingValue>(std::move(value));
  return reinterpret_cast<PyObject*>(self);
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
