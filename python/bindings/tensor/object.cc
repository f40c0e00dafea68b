#include "python/bindings/tensor/object.h"

#include <structmember.h>

#include <algorithm>
#include <new>

#include "client/autograd/backward.h"
#include "client/session/default_dtype.h"
#include "client/session/program_trace.h"
#include "engine/schema/op_ids.h"
#include "python/bindings/tensor/convert.h"
#include "python/bindings/tensor/errors.h"
#include "python/bindings/tensor/indexing.h"
#include "python/bindings/tensor/memory_format.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/operators.h"
#include "python/bindings/tensor/parse.h"
#include "python/bindings/tensor/read.h"
#include "python/bindings/tensor/symbolic_int.h"
#include "python/bindings/tensor/torch_dispatch.h"
#include "python/bindings/tensor/torch_function.h"
#include "python/bindings/tensor/types.h"

namespace tt::python {

PyTypeObject* tensor_type = nullptr;

namespace {

TensorObject* self_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }

// Sets the object that `leaf.grad` returns, with the reference `grad`; null for None.
void set_grad_object(PyObject* leaf, PyObject* grad) {
  PyObject* const old = std::exchange(self_of(leaf)->grad, grad);
  if (old != nullptr) {
    PyObject** place = &self_of(old)->leaf;
    while (*place != leaf) place = &self_of(*place)->next_leaf;
    *place = std::exchange(self_of(leaf)->next_leaf, nullptr);
  }
  if (grad != nullptr) self_of(leaf)->next_leaf = std::exchange(self_of(grad)->leaf, leaf);
  Py_XDECREF(old);
}

Arg arg(const client::Tensor& t) { return Arg(static_cast<const TensorMeta*>(t.get())); }

void dealloc(PyObject* o) {
  TensorObject* self = self_of(o);
  PyTypeObject* type = Py_TYPE(o);
  if (self->weak_references) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  set_grad_object(o, nullptr);
  if (self->handle && self->handle->object == o) self->handle->object = nullptr;
  self->handle.~Ref();
  type->tp_free(o);
  Py_DECREF(type);
}

// Whether an object is the shape of a tensor of a recording, which is a tuple of a class of its own.
bool is_recorded_shape(PyObject* o) {
  if (!PyTuple_Check(o) || PyTuple_CheckExact(o) || PyTuple_GET_SIZE(o) == 0) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    if (!is_recorded_size(PyTuple_GET_ITEM(o, i))) return false;
  }
  return true;
}

// Returns the device of Tensor(...), that of the default tensor type; the argument `device` may name it or one of its
// type.
Device device_of_new(PyObject* given) {
  const Device device = tensor_type_device();
  if (!given || given == Py_None) return device;
  const Device requested = device_from(given);
  check(ErrorKind::kRuntime, requested.type == device.type,
        "legacy constructor expects device type: ", device_type_name(device.type),
        " but device type: ", device_type_name(requested.type), " was passed");
  return requested;
}

// Keyword arguments of Tensor(...), as borrowed references: a tensor or data, sizes, and the device.
struct NewKeywords {
  PyObject *data = nullptr, *size = nullptr, *device = nullptr;
};

// Throws TypeError for others, except for subclasses, whose constructors may have more.
NewKeywords keywords_of_new(PyTypeObject* type, PyObject* keywords, bool has_positional) {
  NewKeywords found;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; keywords && PyDict_Next(keywords, &at, &key, &value);) {
    const char* const text = PyUnicode_AsUTF8(key);
    if (!text) throw PythonErrorSet();  // a surrogate
    const std::string_view name = text;
    if (name == "device") {
      found.device = value;
    } else if (!has_positional && !found.data && !found.size && (name == "data" || name == "other" || name == "size")) {
      (name == "size" ? found.size : found.data) = value;
      check(ErrorKind::kType, name == "size" || !(PyLong_Check(value) || PyFloat_Check(value)),
            "new(): data must be a sequence (got ", Py_TYPE(value)->tp_name, ")");
    } else {
      check(ErrorKind::kType, type != tensor_type,
            "Tensor(): expected a tensor, data, or sizes, and the keyword argument device, got ", name);
    }
  }
  return found;
}

// Returns a tensor of the bytes of a storage in the default dtype, or null if the object is no storage.
Owned tensor_of_storage(PyObject* o) {
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return {};
  const Owned method(PyObject_GetAttrString(o, "_as_default_dtype"));
  if (!method) {
    PyErr_Clear();
    return {};
  }
  return Owned(throw_if_null(PyObject_CallNoArgs(method.get())));
}

// Implements Tensor(existing), which creates objects of subclasses such as Parameter; Tensor(2, 3), which creates an
// uninitialised tensor of these sizes; and Tensor(data), which uses the default dtype.
PyObject* make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  return guard([&]() -> PyObject* {
    const Py_ssize_t positional = PyTuple_GET_SIZE(args);
    const NewKeywords named = keywords_of_new(type, keywords, positional > 0);
    const Py_ssize_t count = named.data ? 1 : positional;
    PyObject* first = positional > 0 ? PyTuple_GET_ITEM(args, 0) : named.data;
    if (count == 1 && is_tensor(first)) {
      check(ErrorKind::kRuntime, !named.device,
            "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use ",
            "torch.tensor(...) or torch.as_tensor(...) instead.");
      return wrap(handle_of(first), type);
    }
    const Device device = device_of_new(named.device);
    client::Session& session = current_session();
    PyObject* given = named.size                                                   ? named.size
                      : count == 1 && (is_size(first) || is_recorded_shape(first)) ? first
                                                                                   : args;
    absl::InlinedVector<int64_t, 6> sizes;
    if (count > 1 || given != args || !first || (!named.data && (PyLong_Check(first) || is_recorded_size(first)))) {
      check(ErrorKind::kType, ints_from(given, &sizes, /*for_call=*/true),
            "Tensor(): expected a tensor, data, or sizes as ints");
      if (!first && !named.size) sizes.push_back(0);
      const Arg empty[] = {Arg(absl::Span<const int64_t>(sizes)), Arg(client::default_dtype()), Arg(device)};
      DispatchedMethod method({});
      const client::Tensor made = method.call(op_id::kEmpty, empty, session);
      return type == tensor_type ? method.object_of(made) : wrap(made, type);
    }
    if (const Owned made = tensor_of_storage(first)) return wrap(handle_of(made.get()), type);
    return wrap(tensor_from(first, client::default_dtype(), device, session), type);
  });
}

// Of a traced tensor, calls require(trace, tensor), because what Python reads is a constant of the Program. False with
// a Python exception.
template <typename Require>
bool require_traced(PyObject* o, const Require& require) {
  client::ProgramTrace* const trace = client::ProgramTrace::of_tensor(*handle_of(o));
  if (trace == nullptr) [[likely]]
    return true;
  return guard([&] { return require(*trace, *handle_of(o)), true; }, false);
}
PyObject* shape_of(PyObject* o) {
  const client::Handle& tensor = *handle_of(o);
  if (client::ProgramTrace* trace = client::ProgramTrace::of_tensor(tensor)) [[unlikely]]
    return guard([&] { return traced_shape(*trace, tensor); });
  return size_object(tensor.sizes);
}

PyObject* get_shape(PyObject* o, void*) { return shape_of(o); }
PyObject* get_dtype(PyObject* o, void*) { return Py_NewRef(dtype_object(handle_of(o)->dtype)); }
PyObject* get_device(PyObject* o, void*) { return device_object(handle_of(o)->device); }
PyObject* get_ndim(PyObject* o, void*) { return PyLong_FromLongLong(handle_of(o)->dim()); }
PyObject* get_requires_grad(PyObject* o, void*) {
  handle_of(o)->follow_base();
  return PyBool_FromLong(handle_of(o)->requires_grad);
}
PyObject* get_is_inference(PyObject* o, void*) { return PyBool_FromLong(handle_of(o)->is_inference); }
PyObject* get_is_leaf(PyObject* o, void*) {
  handle_of(o)->follow_base();
  return PyBool_FromLong(handle_of(o)->is_leaf());
}
PyObject* get_version(PyObject* o, void*) { return PyLong_FromUnsignedLong(handle_of(o)->version()); }
PyObject* get_handle(PyObject* o, void*) { return PyLong_FromUnsignedLongLong(handle_of(o)->id); }
// Returns the (number, bytes) of the tensor's storage, which its views share.
PyObject* get_storage(PyObject* o, void*) {
  const bool is_required = require_traced(o, [](auto& trace, const client::Handle& tensor) {
    const client::Handle& root = tensor.base ? *tensor.base : tensor;
    if (client::ProgramTrace::of_tensor(root) != nullptr) trace.require_sizes(root);
  });
  if (!is_required) return nullptr;
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(handle_of(o)->storage_number()),
                       static_cast<unsigned long long>(handle_of(o)->storage_bytes()));
}
PyObject* get_session(PyObject* o, void*) { return PyLong_FromVoidPtr(&*handle_of(o)->session); }
PyObject* get_is_cuda(PyObject* o, void*) { return PyBool_FromLong(handle_of(o)->device.type == DeviceType::kCUDA); }
PyObject* get_base(PyObject* o, void*) {
  return handle_of(o)->base ? object_of(handle_of(o)->base) : Py_NewRef(Py_None);
}

int set_requires_grad(PyObject* o, PyObject* value, void*) {
  return guard(
      [&] {
        check(ErrorKind::kRuntime, value && PyBool_Check(value), "requires_grad must be a bool");
        const client::Tensor& handle = handle_of(o);
        bool requires_grad = value == Py_True;
        if (requires_grad == handle->requires_grad) return 0;
        check_has_values(handle.get(), "requires_grad");
        check(handle->is_leaf(), "you can only change requires_grad flags of leaf variables.");
        check(!requires_grad || has_gradients(handle->dtype),
              "only Tensors of floating point and complex dtype can require gradients");
        client::set_requires_grad(handle, requires_grad, current_site(*handle->session));
        return 0;
      },
      -1);
}

PyObject* get_grad(PyObject* o, void*) {
  TensorObject* self = self_of(o);
  if (client::ProgramTrace* trace = client::ProgramTrace::of(*self->handle->session)) [[unlikely]] {
    if (guard([&] { return trace->read_grad(self->handle), 0; }, -1) != 0) return nullptr;
  }
  const client::Tensor& grad = self->handle->grad;
  if (!grad) {
    set_grad_object(o, nullptr);
    Py_RETURN_NONE;
  }
  if (!self->grad || !(handle_of(self->grad) == grad)) set_grad_object(o, wrap(grad));
  return Py_XNewRef(self->grad);
}

int set_grad(PyObject* o, PyObject* value, void*) {
  return guard(
      [&] {
        const client::Tensor& leaf = handle_of(o);
        client::Tensor grad;
        if (value && value != Py_None) {
          check(ErrorKind::kType, is_tensor(value), "assigned grad expected to be a Tensor or None but got ",
                Py_TYPE(value)->tp_name);
          check(ErrorKind::kRuntime, value != o, "can't assign Variable as its own grad");
          grad = handle_of(value);
          check(grad->sizes == leaf->sizes, "assigned grad has data of a different size, got ", to_string(grad->sizes),
                " and ", to_string(leaf->sizes));
          check(grad->dtype == leaf->dtype, "assigned grad has data of a different type");
        }
        if (grad && grad->stands_for && !leaf->stands_for) {  // a sparse gradient, which the client adds to later ones
          client::set_grads({leaf}, {client::Tensor()}, current_site(*leaf->session));
          Owned module(throw_if_null(PyImport_ImportModule("teletensor._gradients")));
          Owned done(throw_if_null(PyObject_CallMethod(module.get(), "hold", "O", o)));
          leaf->grad = grad;
          set_grad_object(o, Py_NewRef(value));
          return 0;
        }
        client::set_grads({leaf}, {grad}, current_site(*leaf->session));
        set_grad_object(o, grad ? Py_NewRef(value) : nullptr);
        return 0;
      },
      -1);
}

// Reverses all dimensions, or exchanges the last two.
PyObject* get_transposed(PyObject* o, void* last_two) {
  return guard([&]() -> PyObject* {
    const client::Tensor& handle = handle_of(o);
    auto call = [&](uint16_t id, Args args) {
      if (is_plain_tensor(o)) [[likely]]
        return wrap(call_op(id, args, *handle->session)[0]);
      DispatchedMethod method({o});
      return method.object_of(method.call(id, args, *handle->session));
    };
    if (last_two) {
      if (handle->dim() == 0) return Py_NewRef(o);
      check(handle->dim() > 1, "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.");
      const Arg args[] = {arg(handle), Arg(int64_t{-2}), Arg(int64_t{-1})};
      return call(op_id::kTranspose, args);
    }
    Sizes order(handle->sizes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(order.size() - 1 - i);
    const Arg args[] = {arg(handle), Arg(SizesView(order))};
    return call(op_id::kPermute, args);
  });
}

PyObject* size(PyObject* o, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"dim", nullptr};
  PyObject* dim = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:size", const_cast<char**>(names), &dim)) return nullptr;
  if (!dim || dim == Py_None) return shape_of(o);
  return guard([&]() -> PyObject* {
    const int64_t d = int_from(dim), n = handle_of(o)->dim();
    check(ErrorKind::kIndex, d >= -n && d < n, "Dimension out of range (expected to be in range of [", -n, ", ", n - 1,
          "], but got ", d, ")");
    const client::Handle& tensor = *handle_of(o);
    const auto at = static_cast<size_t>(d < 0 ? d + n : d);
    if (client::ProgramTrace* trace = client::ProgramTrace::of_tensor(tensor)) [[unlikely]]
      return number_object(trace->size_of(tensor, at));
    return PyLong_FromLongLong(tensor.sizes[at]);
  });
}
PyObject* stride(PyObject* o, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"dim", nullptr};
  PyObject* dim = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:stride", const_cast<char**>(names), &dim)) return nullptr;
  const Sizes& strides = handle_of(o)->strides;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (!require_traced(o, [i](auto& trace, const auto& tensor) { trace.require_stride(tensor, i); })) return nullptr;
  }
  Owned tuple(PyTuple_New(static_cast<Py_ssize_t>(strides.size())));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < strides.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(strides[i]));
  }
  return dim && dim != Py_None ? PyObject_GetItem(tuple.get(), dim) : tuple.release();
}
PyObject* dim(PyObject* o, PyObject*) { return PyLong_FromLongLong(handle_of(o)->dim()); }
PyObject* numel(PyObject* o, PyObject*) {
  const client::Handle& tensor = *handle_of(o);
  if (client::ProgramTrace* trace = client::ProgramTrace::of_tensor(tensor)) [[unlikely]]
    return guard([&] { return traced_numel(*trace, tensor); });
  return PyLong_FromLongLong(tensor.numel());
}
PyObject* element_size(PyObject* o, PyObject*) { return PyLong_FromSize_t(item_size(handle_of(o)->dtype)); }
PyObject* storage_offset(PyObject* o, PyObject*) {
  const bool is_required = require_traced(o, [](auto& trace, const auto& tensor) { trace.require_offset(tensor); });
  return is_required ? PyLong_FromLongLong(handle_of(o)->offset) : nullptr;
}

PyObject* is_contiguous(PyObject* o, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"memory_format", nullptr};
  PyObject* format = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:is_contiguous", const_cast<char**>(names), &format)) {
    return nullptr;
  }
  return guard([&]() -> PyObject* {
    MemoryFormat wanted = MemoryFormat::kNone;
    if (memory_format_from(format, &wanted)) {
      if (format == Py_None) wanted = MemoryFormat::kContiguous;
      if (client::ProgramTrace* trace = client::ProgramTrace::of_tensor(*handle_of(o))) [[unlikely]]
        require_format(*trace, *handle_of(o), wanted);
      return PyBool_FromLong(has_format(*handle_of(o), wanted));
    }
    fail(ErrorKind::kType, "is_contiguous(): argument 'memory_format' must be torch.memory_format, not ",
         Py_TYPE(format)->tp_name);
  });
}
PyObject* is_floating_point(PyObject* o, PyObject*) { return PyBool_FromLong(is_floating(handle_of(o)->dtype)); }
PyObject* item_method(PyObject* o, PyObject*) {
  return guard([&] { return item(handle_of(o)); });
}
PyObject* item_async_method(PyObject* o, PyObject*) {
  return guard([&] { return item_async(handle_of(o)); });
}
PyObject* tolist_async(PyObject* o, PyObject*) {
  return guard([&] { return to_list_async(handle_of(o)); });
}
PyObject* tolist(PyObject* o, PyObject*) {
  return guard([&] { return to_list(handle_of(o)); });
}

template <typename F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

// A string literal as a template argument.
template <size_t N>
struct Name {
  constexpr Name(const char (&literal)[N]) { std::copy_n(literal, N, text); }  // NOLINT: implicit on purpose
  char text[N];
};

// Runs `overridden`, which calls the handler of an attribute of a tensor that is not exactly a Tensor or Parameter.
// Returns whether `result` is the attribute's result: a value, or null with an exception set.
template <typename F>
bool found_override(F overridden, PyObject** result) {
  *result = guard(overridden);
  return *result || PyErr_Occurred();
}

template <Name name, PyObject* (*get)(PyObject*, void*)>
PyObject* checked_get(PyObject* o, void* closure) {
  if (PyObject * result; !is_plain_tensor(o)) [[unlikely]] {
    if (found_override([&] { return call_overridden_method(name.text, {o}, "__get__"); }, &result)) return result;
  }
  return get(o, closure);
}

template <Name name, int (*set)(PyObject*, PyObject*, void*)>
int checked_set(PyObject* o, PyObject* value, void* closure) {
  if (PyObject * result; !is_plain_tensor(o)) [[unlikely]] {
    auto overridden = [&] {
      return value ? call_overridden_method(name.text, {o, value}, "__set__")
                   : call_overridden_method(name.text, {o}, "__delete__");
    };
    if (found_override(overridden, &result)) return Py_XDECREF(result), result ? 0 : -1;
  }
  return set(o, value, closure);
}

// Passes a method's call with a tuple of arguments (null: none) to the handlers.
PyObject* method_overridden(const char* name, PyObject* o, PyObject* args, PyObject* keywords) {
  if (!args) return call_overridden_method(name, {o});
  Owned names;
  std::vector<PyObject*> values(&PyTuple_GET_ITEM(args, 0), &PyTuple_GET_ITEM(args, 0) + PyTuple_GET_SIZE(args));
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (keywords) {
    names = Owned(throw_if_null(PySequence_Tuple(keywords)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
      values.push_back(PyDict_GetItem(keywords, PyTuple_GET_ITEM(names.get(), i)));
    }
  }
  return call_overridden(nullptr, name, {o, values.data(), count, names.get()});
}

template <Name name, PyObject* (*method)(PyObject*, PyObject*)>
PyObject* checked_method(PyObject* o, PyObject* args) {
  if (PyObject * result; !is_plain_tensor(o)) [[unlikely]] {
    if (found_override([&] { return method_overridden(name.text, o, args, nullptr); }, &result)) return result;
  }
  return method(o, args);
}

template <Name name, PyObject* (*method)(PyObject*, PyObject*, PyObject*)>
PyObject* checked_method_with_keywords(PyObject* o, PyObject* args, PyObject* keywords) {
  if (PyObject * result; !is_plain_tensor(o)) [[unlikely]] {
    if (found_override([&] { return method_overridden(name.text, o, args, keywords); }, &result)) return result;
  }
  return method(o, args, keywords);
}

Py_ssize_t length(PyObject* o) {
  if (PyObject * result; !is_plain_tensor(o)) [[unlikely]] {
    if (found_override([&] { return call_overridden_method("__len__", {o}); }, &result)) {
      Owned owned(result);
      return result ? PyNumber_AsSsize_t(result, PyExc_OverflowError) : -1;
    }
  }
  if (handle_of(o)->dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  const client::Handle& tensor = *handle_of(o);
  if (client::ProgramTrace* trace = client::ProgramTrace::of_tensor(tensor)) [[unlikely]]
    return guard([&] { return static_cast<Py_ssize_t>(trace->size_of(tensor, 0).constant()); }, Py_ssize_t{-1});
  return tensor.sizes[0];
}

Py_hash_t hash(PyObject* o) { return _Py_HashPointer(o); }

PyGetSetDef getset[] = {
    {"shape", checked_get<"shape", get_shape>, nullptr, "The sizes, as a Size.", nullptr},
    {"dtype", checked_get<"dtype", get_dtype>, nullptr, "The type of the elements.", nullptr},
    {"device", checked_get<"device", get_device>, nullptr, "The device of the engine that stores the bytes.", nullptr},
    {"ndim", checked_get<"ndim", get_ndim>, nullptr, "The number of dimensions.", nullptr},
    {"requires_grad", checked_get<"requires_grad", get_requires_grad>, checked_set<"requires_grad", set_requires_grad>,
     "Whether gradients are computed for the tensor.", nullptr},
    {"grad", checked_get<"grad", get_grad>, checked_set<"grad", set_grad>,
     "The gradient accumulated by backward(), or None.", nullptr},
    {"is_leaf", checked_get<"is_leaf", get_is_leaf>, nullptr,
     "Whether the tensor is a leaf: no recorded operation computed it.", nullptr},
    {"is_cuda", checked_get<"is_cuda", get_is_cuda>, nullptr, "Whether the tensor is on a GPU.", nullptr},
    {"T", checked_get<"T", get_transposed>, nullptr, "A view with the dimensions reversed.", nullptr},
    {"mT", checked_get<"mT", get_transposed>, nullptr, "A view with the last two dimensions exchanged.",
     const_cast<char*>("last two")},
    {"_version", checked_get<"_version", get_version>, nullptr, "The number of in-place writes so far.", nullptr},
    {"_base", checked_get<"_base", get_base>, nullptr, "The tensor that this tensor is a view of, or None.", nullptr},
    {"_is_inference", get_is_inference, nullptr, "Whether the tensor was created in inference mode.", nullptr},
    {"_handle", get_handle, nullptr, "The tensor's handle in the engine.", nullptr},
    {"_storage", get_storage, nullptr, "The (number, bytes) of the tensor's storage.", nullptr},
    {"_session", get_session, nullptr, "A number that identifies the tensor's session as long as the tensor exists.",
     nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};

PyMethodDef methods[] = {
    {"size", reinterpret_cast<PyCFunction>(slot(checked_method_with_keywords<"size", size>)),
     METH_VARARGS | METH_KEYWORDS, "size(dim=None): the sizes, or one of them."},
    {"stride", reinterpret_cast<PyCFunction>(slot(checked_method_with_keywords<"stride", stride>)),
     METH_VARARGS | METH_KEYWORDS, "stride(dim=None): the strides in elements, or one of them."},
    {"dim", checked_method<"dim", dim>, METH_NOARGS, "The number of dimensions."},
    {"ndimension", checked_method<"ndimension", dim>, METH_NOARGS, "The number of dimensions."},
    {"numel", checked_method<"numel", numel>, METH_NOARGS, "The number of elements."},
    {"nelement", checked_method<"nelement", numel>, METH_NOARGS, "The number of elements."},
    {"element_size", checked_method<"element_size", element_size>, METH_NOARGS, "The size of an element in bytes."},
    {"storage_offset", checked_method<"storage_offset", storage_offset>, METH_NOARGS,
     "The offset from the storage's start, in elements."},
    {"is_contiguous", reinterpret_cast<PyCFunction>(slot(checked_method_with_keywords<"is_contiguous", is_contiguous>)),
     METH_VARARGS | METH_KEYWORDS,
     "is_contiguous(memory_format=torch.contiguous_format): whether the elements are contiguous in that order."},
    {"is_floating_point", checked_method<"is_floating_point", is_floating_point>, METH_NOARGS,
     "Whether the dtype is a floating-point type."},
    {"item", checked_method<"item", item_method>, METH_NOARGS,
     "The single element as a Python number. Waits for the engine."},
    {"item_async", checked_method<"item_async", item_async_method>, METH_NOARGS,
     "Requests the single element without waiting; returns a PendingItem."},
    {"tolist", checked_method<"tolist", tolist>, METH_NOARGS, "The elements as nested lists. Waits for the engine."},
    {"tolist_async", checked_method<"tolist_async", tolist_async>, METH_NOARGS,
     "Requests the elements as nested lists without waiting; returns a PendingList."},
    {}};

PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
                         {}};

}  // namespace

bool init_tensor_type(PyObject* module) {
  const PyNumberMethods& n = tensor_as_number;
  PyType_Slot slots[] = {
      {Py_tp_dealloc, slot(dealloc)},
      {Py_tp_new, slot(make)},
      {Py_tp_getset, getset},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_hash, slot(hash)},
      {Py_tp_richcompare, slot(tensor_compare)},
      {Py_tp_doc, const_cast<char*>("A tensor stored in an engine; see torch.Tensor.")},
      {Py_mp_length, slot(length)},
      {Py_mp_subscript, slot(get_item)},
      {Py_mp_ass_subscript, slot(set_item)},
      {Py_nb_add, slot(n.nb_add)},
      {Py_nb_subtract, slot(n.nb_subtract)},
      {Py_nb_multiply, slot(n.nb_multiply)},
      {Py_nb_true_divide, slot(n.nb_true_divide)},
      {Py_nb_floor_divide, slot(n.nb_floor_divide)},
      {Py_nb_remainder, slot(n.nb_remainder)},
      {Py_nb_matrix_multiply, slot(n.nb_matrix_multiply)},
      {Py_nb_power, slot(n.nb_power)},
      {Py_nb_and, slot(n.nb_and)},
      {Py_nb_or, slot(n.nb_or)},
      {Py_nb_xor, slot(n.nb_xor)},
      {Py_nb_lshift, slot(n.nb_lshift)},
      {Py_nb_rshift, slot(n.nb_rshift)},
      {Py_nb_inplace_add, slot(n.nb_inplace_add)},
      {Py_nb_inplace_subtract, slot(n.nb_inplace_subtract)},
      {Py_nb_inplace_multiply, slot(n.nb_inplace_multiply)},
      {Py_nb_inplace_true_divide, slot(n.nb_inplace_true_divide)},
      {Py_nb_inplace_floor_divide, slot(n.nb_inplace_floor_divide)},
      {Py_nb_inplace_remainder, slot(n.nb_inplace_remainder)},
      {Py_nb_inplace_lshift, slot(n.nb_inplace_lshift)},
      {Py_nb_inplace_rshift, slot(n.nb_inplace_rshift)},
      {Py_nb_inplace_power, slot(n.nb_inplace_power)},
      {Py_nb_inplace_and, slot(n.nb_inplace_and)},
      {Py_nb_inplace_or, slot(n.nb_inplace_or)},
      {Py_nb_inplace_xor, slot(n.nb_inplace_xor)},
      {Py_nb_negative, slot(n.nb_negative)},
      {Py_nb_positive, slot(n.nb_positive)},
      {Py_nb_absolute, slot(n.nb_absolute)},
      {Py_nb_invert, slot(n.nb_invert)},
      {Py_nb_bool, slot(n.nb_bool)},
      {Py_nb_int, slot(n.nb_int)},
      {Py_nb_float, slot(n.nb_float)},
      {Py_nb_index, slot(n.nb_index)},
      {0, nullptr},
  };
  PyType_Spec spec{"teletensor.Tensor", sizeof(TensorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!tensor_type) return false;
  // Adds the generated methods; Python code adds further ones (teletensor/_tensor.py).
  for (PyMethodDef* m = method_tables().methods; m->ml_name; ++m) {
    Owned descriptor(PyDescr_NewMethod(tensor_type, m));
    if (!descriptor ||
        PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), m->ml_name, descriptor.get()) < 0) {
      return false;
    }
  }
  return PyModule_AddType(module, tensor_type) == 0;
}

PyObject* wrap(client::Tensor handle, PyTypeObject* type) {
  if (handle->stands_for && type == tensor_type) [[unlikely]] {
    if (PyObject* existing = wrapper_object(handle)) return existing;
  }
  auto* self = reinterpret_cast<TensorObject*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  new (&self->handle) client::Tensor(std::move(handle));
  self->handle->object = self;
  return reinterpret_cast<PyObject*>(self);
}

const client::Tensor& tensor_argument(PyObject* o, const char* function) {
  check(ErrorKind::kType, is_tensor(o), "[", function, "] expected a Tensor, got ", Py_TYPE(o)->tp_name);
  return handle_of(o);
}

PyObject* object_of(const client::Tensor& handle) {
  auto* const existing = static_cast<PyObject*>(handle->object);
  return existing && Py_REFCNT(existing) > 0 ? Py_NewRef(existing) : wrap(handle);  // 0: it is being freed
}

void CallInProgress::free_replaced_handles() { std::vector<client::Tensor>().swap(replaced_); }

void forget_grad(PyObject* o) { set_grad_object(o, nullptr); }

// Makes `replacement` the gradient of the tensors whose gradient `o` is: `p.grad.data = y`.
static void replace_grad(PyObject* o, const client::Tensor& replacement) {
  const client::Tensor& grad = handle_of(o);
  std::vector<client::Tensor> leaves;
  // Others have had another gradient since `.grad` returned `o`.
  for (PyObject* leaf = self_of(o)->leaf; leaf != nullptr; leaf = self_of(leaf)->next_leaf) {
    if (handle_of(leaf)->grad == grad) leaves.push_back(handle_of(leaf));
  }
  if (client::ProgramTrace* trace = client::ProgramTrace::of(*grad->session)) [[unlikely]] {
    leaves = trace->leaves_with_grad(grad);  // whose objects may not exist any more
  }
  if (leaves.empty()) return;
  check(
      ErrorKind::kNotImplemented,
      grad->sizes == replacement->sizes && grad->dtype == replacement->dtype && grad->device == replacement->device &&
          !grad->stands_for == !replacement->stands_for,
      "[grad] expected a gradient of the same sizes, dtype and device in place of this one: assign to `.grad` instead "
      "of replacing it by `.data =` or an operator in place");
  for (const client::Tensor& leaf : leaves) {
    if (grad->stands_for) {  // the engine does not have the gradient
      leaf->grad = replacement;
    } else {
      client::set_grads({leaf}, {replacement}, current_site(*grad->session));
    }
  }
}

static uint64_t handles_replaced = 0;  // the GIL guards it

uint64_t replaced_handles() { return handles_replaced; }

void replace_handle(PyObject* o, client::Tensor handle) {
  ++handles_replaced;
  check(ErrorKind::kNotImplemented, !client::ProgramTrace::is_active() || client::is_traced(handle_of(o)->id),
        "[trace] a traced function cannot replace a tensor that exists outside, as `x.data = y` and x.detach_() do");
  replace_grad(o, handle);
  std::swap(self_of(o)->handle, handle);
  self_of(o)->handle->object = o;
  if (handle->object == o) handle->object = nullptr;
  handle->is_replaced = true;
  CallInProgress::keep(std::move(handle));
}

PyObject* wrap_tuple(absl::Span<const client::Tensor> handles) {
  Owned tuple(throw_if_null(PyTuple_New(static_cast<Py_ssize_t>(handles.size()))));
  for (size_t i = 0; i < handles.size(); ++i) {
    PyObject* item = handles[i] ? throw_if_null(wrap(handles[i])) : Py_NewRef(Py_None);
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.release();
}

}  // namespace tt::python
