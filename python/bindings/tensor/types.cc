#include "python/bindings/tensor/types.h"

#include <structmember.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "engine/schema/foreign_devices.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"
#include "python/bindings/tensor/symbolic_int.h"

namespace tt::python {
namespace {

struct DTypeObject {
  PyObject_HEAD DType value;
};
struct DeviceObject {
  PyObject_HEAD Device value;
  int8_t index;  // as given; PyTorch accepts any for a CPU, of which value.index is 0
  bool has_index;
  bool is_foreign;  // value.type is then an index into kForeignDeviceTypes
};

// PyTorch's name of the type of a plug-in before it is renamed: the first of the engine's types of device libraries, if
// there is one.
constexpr std::string_view kPluginAlias = "privateuseone";

// Indices that "cuda" and the types of device libraries without a number mean, the default device of new tensors (null
// if none is set) and the device of the default tensor type (null for the CPU). Guarded by the GIL.
int8_t current_gpu = 0;
std::array<int8_t, kMaxPluginTypes> current_plugins{};
PyObject* default_device_object = nullptr;
PyObject* tensor_type_device_object = nullptr;

PyTypeObject* dtype_type = nullptr;
PyTypeObject* device_type = nullptr;
PyTypeObject* size_type = nullptr;
std::array<PyObject*, kNumDTypes> dtype_objects{};

DType dtype_of(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->value; }
std::string_view foreign_type(const DeviceObject* device) {
  return kForeignDeviceTypes.at(static_cast<size_t>(device->value.type));
}
[[noreturn]] void fail_foreign(std::string_view type) {
  fail(ErrorKind::kRuntime, "expected a device of an engine: cpu, cuda or meta, got ", type);
}

// The index that a type without a number means.
int8_t& current_index(DeviceType type) {
  if (!is_plugin(type)) return current_gpu;
  return current_plugins.at(static_cast<size_t>(type) - static_cast<size_t>(DeviceType::kPlugin));
}

// Returns the device, with "cuda" resolved to the current GPU. Throws Error (RuntimeError) for a type of
// kForeignDeviceTypes.
Device device_of(PyObject* self) {
  auto* device = reinterpret_cast<DeviceObject*>(self);
  if (device->is_foreign) fail_foreign(foreign_type(device));
  if (!is_accelerator(device->value.type) || device->has_index) return device->value;
  return {device->value.type, current_index(device->value.type)};
}
std::string device_text(PyObject* self) {
  auto* device = reinterpret_cast<DeviceObject*>(self);
  std::string text = device->is_foreign ? std::string(foreign_type(device)) : to_string(device->value);
  text = text.substr(0, text.find(':'));
  return device->has_index ? absl::StrCat(text, ":", static_cast<int>(device->index)) : text;
}

PyObject* dtype_repr(PyObject* self) {
  return PyUnicode_FromString(absl::StrCat("torch.", message_part(dtype_of(self))).c_str());
}
PyObject* dtype_itemsize(PyObject* self, void*) { return PyLong_FromSize_t(item_size(dtype_of(self))); }
PyObject* dtype_is_floating(PyObject* self, void*) { return PyBool_FromLong(is_floating(dtype_of(self))); }
PyObject* dtype_is_complex(PyObject* self, void*) {
  return PyBool_FromLong(category(dtype_of(self)) == Category::kComplex);
}
PyObject* dtype_is_signed(PyObject* self, void*) {
  return PyBool_FromLong(dtype_of(self) != DType::kBool && !is_unsigned(dtype_of(self)));
}
PyObject* dtype_to_real(PyObject* self, PyObject*) {
  return guard([&] {
    check(has_gradients(dtype_of(self)), "to_real: not a floating point or complex dtype: ", name(dtype_of(self)));
    return Py_NewRef(dtype_object(to_real(dtype_of(self))));
  });
}
PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  return guard([&] {
    check(has_gradients(dtype_of(self)), "to_complex: not a floating point or complex dtype: ", name(dtype_of(self)));
    return Py_NewRef(dtype_object(to_complex(dtype_of(self))));
  });
}
PyObject* dtype_reduce(PyObject* self, PyObject*) {  // pickles by name, so that a copy is the same object
  return PyUnicode_FromString(std::string(name(dtype_of(self))).c_str());
}

// The index of a device type in kForeignDeviceTypes.
std::optional<uint8_t> find_foreign(std::string_view type) {
  if (type == kPluginAlias && !device_type_name(DeviceType::kPlugin).empty()) return std::nullopt;
  const auto* found = std::find(kForeignDeviceTypes.begin(), kForeignDeviceTypes.end(), type);
  if (found == kForeignDeviceTypes.end()) return std::nullopt;
  return static_cast<uint8_t>(found - kForeignDeviceTypes.begin());
}

// Parses "mps" or "mps:1"; throws Error (RuntimeError) for an invalid index.
Device parse_foreign(uint8_t type, const std::string& text) {
  const size_t colon = text.find(':');
  int32_t index = 0;
  const bool valid = colon == std::string::npos ||
                     (absl::SimpleAtoi(text.substr(colon + 1), &index) && index >= 0 && index <= INT8_MAX);
  check(valid, "Invalid device string: '", text, "'");
  return {static_cast<DeviceType>(type), static_cast<int8_t>(index)};
}

// A device of an engine and the index in its name. "cpu:1" is the CPU.
struct NamedDevice {
  Device device;
  int8_t index = 0;
};

NamedDevice parse_named(std::string text) {
  size_t colon = text.find(':');
  if (text.substr(0, colon) == kPluginAlias) {
    text.replace(0, kPluginAlias.size(), device_type_name(DeviceType::kPlugin));
    colon = text.find(':');
  }
  const std::string type = text.substr(0, colon);
  // Types of device libraries are the engine's, which a program may name before it has opened a session.
  if (is_device_type_name(type) && !find_device_type(type)) learn_device_types();
  const std::optional<DeviceType> found = find_device_type(type);
  const bool is_indexed = found && is_accelerator(*found);
  const Device device = parse_device(colon != std::string::npos && !is_indexed ? type : text);
  if (colon == std::string::npos || is_indexed) return {device, device.index};
  int32_t index = 0;
  check(absl::SimpleAtoi(text.substr(colon + 1), &index) && index >= 0 && index <= INT8_MAX, "Invalid device string: '",
        text, "'");
  return {device, static_cast<int8_t>(index)};
}

// Borrows the string from the object.
std::string_view text_from(PyObject* o) {
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(o, &length);
  if (!text) throw PythonErrorSet();
  return {text, static_cast<size_t>(length)};
}

PyObject* device_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"type", "index", nullptr};
  PyObject* what = nullptr;
  PyObject* index = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O", const_cast<char**>(names), &what, &index)) return nullptr;
  return guard([&]() -> PyObject* {
    std::string text;
    if (PyLong_Check(what)) {
      text = absl::StrCat("cuda:", int_from(what));
    } else if (PyObject_TypeCheck(what, device_type)) {
      text = device_text(what);
    } else if (PyUnicode_Check(what)) {
      text = text_from(what);
    } else {
      fail(ErrorKind::kType, "device must be teletensor.device, str or int, not ", Py_TYPE(what)->tp_name);
    }
    if (index != Py_None) absl::StrAppend(&text, ":", int_from(index));
    const size_t colon = text.find(':');
    const std::optional<uint8_t> foreign = find_foreign(std::string_view(text).substr(0, colon));
    NamedDevice named;
    if (foreign) {
      named.device = parse_foreign(*foreign, text);
      named.index = named.device.index;
    } else {
      named = parse_named(text);
    }
    auto* self = reinterpret_cast<DeviceObject*>(throw_if_null(type->tp_alloc(type, 0)));
    self->value = named.device;
    self->index = named.index;
    self->has_index = colon != std::string::npos;
    self->is_foreign = foreign.has_value();
    return reinterpret_cast<PyObject*>(self);
  });
}
PyObject* device_str(PyObject* self) { return PyUnicode_FromString(device_text(self).c_str()); }
PyObject* device_repr(PyObject* self) {
  std::string text = device_text(self);
  size_t colon = text.find(':');
  if (colon == std::string::npos) return PyUnicode_FromFormat("device(type='%s')", text.c_str());
  return PyUnicode_FromFormat("device(type='%s', index=%s)", text.substr(0, colon).c_str(),
                              text.substr(colon + 1).c_str());
}
PyObject* device_compare(PyObject* a, PyObject* b, int what) {
  if (!PyObject_TypeCheck(b, device_type) || (what != Py_EQ && what != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_text(a) == device_text(b)) == (what == Py_EQ));
}
Py_hash_t device_hash(PyObject* self) {
  auto* device = reinterpret_cast<DeviceObject*>(self);
  return 512 * device->value.encode() + 4 * device->index + 2 * device->is_foreign + device->has_index;
}
PyObject* device_get_type(PyObject* self, void*) {
  std::string text = device_text(self);
  return PyUnicode_FromString(text.substr(0, text.find(':')).c_str());
}
PyObject* device_get_index(PyObject* self, void*) {
  auto* device = reinterpret_cast<DeviceObject*>(self);
  if (!device->has_index) Py_RETURN_NONE;
  return PyLong_FromLong(device->index);
}

// Whether an object is the size of a nested tensor's ragged dimension (python/teletensor/_nested/ragged.py).
bool is_nested_int(PyObject* o) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__nested_int__") != 0;
}

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  Owned self(PyTuple_Type.tp_new(type, args, keywords));
  if (!self) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(self.get(), i);
    if (PyLong_Check(item) || is_symbolic(item) || is_recorded_size(item) || is_nested_int(item)) continue;
    if (!PyIndex_Check(item) || PySequence_Check(item)) {
      return PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                          Py_TYPE(item)->tp_name);
    }
    PyObject* number = PyNumber_Index(item);  // converts NumPy's integers
    if (!number) return nullptr;
    PyTuple_SET_ITEM(self.get(), i, number);
    Py_DECREF(item);
  }
  return self.release();
}
PyObject* size_numel(PyObject* self, PyObject*) {
  return guard([&]() -> PyObject* {
    PyObject** const items = PySequence_Fast_ITEMS(self);
    const auto is_computed = [](PyObject* item) { return is_symbolic(item) || is_recorded_size(item); };
    if (std::any_of(items, items + PyTuple_GET_SIZE(self), is_computed)) [[unlikely]] {
      Owned product(throw_if_null(PyLong_FromLong(1)));
      for (PyObject* item : absl::MakeSpan(items, static_cast<size_t>(PyTuple_GET_SIZE(self))))
        product = Owned(throw_if_null(PyNumber_Multiply(product.get(), item)));
      return product.release();
    }
    int64_t n = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      const bool overflows = __builtin_mul_overflow(n, int_from(PyTuple_GET_ITEM(self, i)), &n);
      check(!overflows, "numel() is beyond 64 bits");
    }
    return PyLong_FromLongLong(n);
  });
}
// Converts the result of a tuple operation to a Size.
PyObject* as_size(PyObject* tuple) {
  if (!tuple || Py_TYPE(tuple) != &PyTuple_Type) return tuple;
  Owned held(tuple);
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(size_type), tuple);
}
PyObject* size_concat(PyObject* a, PyObject* b) { return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b)); }
// a + b, one of which is a Size. Other operands are left to their types, which raise an error.
PyObject* size_add(PyObject* a, PyObject* b) {
  return PyTuple_Check(a) && PyTuple_Check(b) ? size_concat(a, b) : Py_NewRef(Py_NotImplemented);
}
PyObject* size_repeat(PyObject* self, Py_ssize_t times) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(self, times));
}
PyObject* size_subscript(PyObject* self, PyObject* index) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, index));
}
PyObject* size_repr(PyObject* self) {
  Owned list(PySequence_List(self));
  return list ? PyUnicode_FromFormat("torch.Size(%R)", list.get()) : nullptr;
}

PyTypeObject* make_type(const char* name, int size, unsigned flags, PyType_Slot* slots, PyObject* base = nullptr) {
  PyType_Spec spec{name, size, 0, flags, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, base));
}

}  // namespace

bool is_dtype(PyObject* o) { return Py_TYPE(o) == dtype_type; }
PyObject* dtype_object(DType t) { return dtype_objects[static_cast<size_t>(t)]; }

DType dtype_from(PyObject* o) {
  if (is_dtype(o)) return dtype_of(o);
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::kFloat64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::kInt64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::kBool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::kComplex128;
  // torch.complex32, torch.bits8, torch.quint8 and others, whose __class__ is torch.dtype.
  if (PyObject_IsInstance(o, reinterpret_cast<PyObject*>(dtype_type)) == 1) {
    Owned name(PyObject_Repr(o));
    const char* text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
    if (text != nullptr) fail(ErrorKind::kRuntime, "dtype: expected one that ordinary tensors have, got ", text);
  }
  PyErr_Clear();
  fail(ErrorKind::kType, "dtype must be teletensor.dtype, not ", Py_TYPE(o)->tp_name);
}

Device device_from(PyObject* o) {
  if (PyObject_TypeCheck(o, device_type)) return device_of(o);
  if (PyUnicode_Check(o)) {
    const std::string_view text = text_from(o);
    if (find_foreign(text.substr(0, text.find(':')))) fail_foreign(text);
    const Device device = parse_named(std::string(text)).device;
    const bool has_index = text.find(':') != std::string_view::npos;
    return is_accelerator(device.type) && !has_index ? Device{device.type, current_index(device.type)} : device;
  }
  if (PyLong_Check(o)) return parse_device(absl::StrCat("cuda:", int_from(o)));
  fail(ErrorKind::kType, "device must be teletensor.device or str, not ", Py_TYPE(o)->tp_name);
}

Device tensor_type_device() { return tensor_type_device_object ? device_of(tensor_type_device_object) : Device{}; }

std::optional<Device> chosen_device() {
  if (!default_device_object) return std::nullopt;
  return device_of(default_device_object);
}

Device default_device() { return chosen_device().value_or(tensor_type_device()); }

namespace {

// Stores a device, or null for None, and returns a new reference to the previous one, or None.
PyObject* swap_device(PyObject*& stored, PyObject* device) {
  check(ErrorKind::kType, device == Py_None || PyObject_TypeCheck(device, device_type),
        "the default device must be a teletensor.device or None, not ", Py_TYPE(device)->tp_name);
  PyObject* before = stored ? stored : Py_NewRef(Py_None);
  stored = device == Py_None ? nullptr : Py_NewRef(device);
  return before;
}

}  // namespace

PyObject* swap_default_device(PyObject* device) { return swap_device(default_device_object, device); }
PyObject* swap_tensor_type_device(PyObject* device) { return swap_device(tensor_type_device_object, device); }

int swap_current_gpu(int index) { return std::exchange(current_gpu, parse_device(absl::StrCat("cuda:", index)).index); }

int swap_current_plugin(const std::string& type, int index) {
  const Device device = parse_device(absl::StrCat(type, ":", index));
  check(ErrorKind::kValue, is_plugin(device.type), "expected a device type of a device library, got ", type);
  return std::exchange(current_index(device.type), device.index);
}

PyObject* device_object(Device device) {
  auto* self = reinterpret_cast<DeviceObject*>(device_type->tp_alloc(device_type, 0));
  if (self) {
    self->value = device;
    self->index = device.index;
    self->has_index = is_accelerator(device.type);
  }
  return reinterpret_cast<PyObject*>(self);
}

PyObject* size_object(SizesView sizes) {
  PyObject* tuple = size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(sizes.size()));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < sizes.size(); ++i) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(sizes[i]));
  }
  return tuple;
}

PyObject* size_class() { return reinterpret_cast<PyObject*>(size_type); }
bool is_size(PyObject* o) { return PyObject_TypeCheck(o, size_type); }

bool init_types(PyObject* module) {
  static PyGetSetDef dtype_getset[] = {{"itemsize", dtype_itemsize, nullptr, "element size in bytes", nullptr},
                                       {"is_floating_point", dtype_is_floating, nullptr, nullptr, nullptr},
                                       {"is_complex", dtype_is_complex, nullptr, nullptr, nullptr},
                                       {"is_signed", dtype_is_signed, nullptr, nullptr, nullptr},
                                       {}};
  static PyMethodDef dtype_methods[] = {
      {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
      {"to_real", dtype_to_real, METH_NOARGS, "The dtype of the real parts."},
      {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype of this dtype."},
      {}};
  static PyType_Slot dtype_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
                                      {Py_tp_getset, dtype_getset},
                                      {Py_tp_methods, dtype_methods},
                                      {Py_tp_doc, const_cast<char*>("The type of a tensor's elements.")},
                                      {0, nullptr}};
  static PyGetSetDef device_getset[] = {
      {"type", device_get_type, nullptr, "'cpu', 'cuda', 'meta' or another type of PyTorch's", nullptr},
      {"index", device_get_index, nullptr, "the index, or None", nullptr},
      {}};
  static PyType_Slot device_slots[] = {{Py_tp_new, reinterpret_cast<void*>(device_new)},
                                       {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
                                       {Py_tp_str, reinterpret_cast<void*>(device_str)},
                                       {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
                                       {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
                                       {Py_tp_getset, device_getset},
                                       {Py_tp_doc, const_cast<char*>("device('cuda:0'): where a tensor is stored.")},
                                       {0, nullptr}};
  static PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The product of the sizes."}, {}};
  static PyType_Slot size_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(size_repr)},
                                     {Py_tp_new, reinterpret_cast<void*>(size_new)},
                                     {Py_nb_add, reinterpret_cast<void*>(size_add)},
                                     {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
                                     {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
                                     {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
                                     {Py_tp_methods, size_methods},
                                     {Py_tp_doc, const_cast<char*>("A tensor's shape: a tuple of ints.")},
                                     {0, nullptr}};
  dtype_type = make_type("teletensor.dtype", sizeof(DTypeObject),
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, dtype_slots);
  device_type = make_type("teletensor.device", sizeof(DeviceObject), Py_TPFLAGS_DEFAULT, device_slots);
  size_type = make_type("teletensor.Size", 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, size_slots,
                        reinterpret_cast<PyObject*>(&PyTuple_Type));
  if (!dtype_type || !device_type || !size_type) return false;
  for (PyTypeObject* type : {dtype_type, device_type, size_type}) {
    if (PyModule_AddType(module, type) < 0) return false;
  }
  for (int i = 0; i < kNumDTypes; ++i) {
    auto* self = reinterpret_cast<DTypeObject*>(dtype_type->tp_alloc(dtype_type, 0));
    if (!self) return false;
    self->value = static_cast<DType>(i);
    dtype_objects[static_cast<size_t>(i)] = reinterpret_cast<PyObject*>(self);
    const std::string text(name(self->value));
    if (PyModule_AddObjectRef(module, text.c_str(), reinterpret_cast<PyObject*>(self)) < 0) return false;
  }
  return true;
}

}  // namespace tt::python
