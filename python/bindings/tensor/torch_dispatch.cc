#include "python/bindings/tensor/torch_dispatch.h"

#include <string>

#include "client/autograd/backward.h"
#include "engine/schema/op_ids.h"
#include "python/bindings/tensor/arguments.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/operators.h"
#include "python/bindings/tensor/stand_in.h"
#include "python/bindings/tensor/torch_function.h"
#include "python/bindings/tensor/types.h"

namespace py = pybind11;

namespace tt::python {
namespace {

PyObject* dispatch_name = nullptr;            // "__torch_dispatch__"
PyObject* disabled_implementation = nullptr;  // _disabled_torch_dispatch_impl

thread_local int disabled = 0;  // depth of _DisableTorchDispatch contexts

bool handles_dispatch(PyTypeObject* type) {
  if (type == tensor_type) return false;
  PyObject* handler = _PyType_Lookup(type, dispatch_name);  // borrowed
  return handler && handler != disabled_implementation;
}

template <typename F>
bool any_object(PyObject* o, const F& matches) {
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (matches(PySequence_Fast_GET_ITEM(o, i))) return true;
    }
    return false;
  }
  return matches(o);
}

template <typename F>
bool any_object(const PythonCall& call, const F& matches) {
  if (call.self && matches(call.self)) return true;
  const Py_ssize_t count = call.count + (call.keywords ? PyTuple_GET_SIZE(call.keywords) : 0);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (any_object(call.args[i], matches)) return true;
  }
  return false;
}

// Finds the object of a tensor among a call's arguments, so that handlers receive the caller's objects.
py::object object_in(const PythonCall& call, const TensorMeta* tensor) {
  PyObject* found = nullptr;
  any_object(call, [&](PyObject* o) {
    if (!is_tensor(o) || handle_of(o).get() != tensor) return false;
    found = o;
    return true;
  });
  return found ? py::reinterpret_borrow<py::object>(found) : tensor_object(tensor);
}

// The module that implements the dispatch: teletensor._library.dispatch.
PyObject* handler_module() {
  static PyObject* module = throw_if_null(PyImport_ImportModule("teletensor._library.dispatch"));
  return module;
}

// The object of a wrapper subclass, which keeps the handle.
class Wrapper final : public StandIn {
 public:
  ~Wrapper() override {
    if (!weak_reference || !Py_IsInitialized()) return;
    HoldGil held;
    Py_DECREF(weak_reference);
  }
  client::Tensors call(const Op& op, Args, absl::Span<const client::Tensor>) override {
    check_has_values(op.name);
    return {};
  }
  void check_has_values(std::string_view what) const override {
    fail(ErrorKind::kNotImplemented, "[", what,
         "] a tensor of _make_wrapper_subclass() has no values in the engine; its __torch_dispatch__ does not handle "
         "this");
  }
  PyObject* object() const override {
    PyObject* o = weak_reference ? PyWeakref_GetObject(weak_reference) : Py_None;  // borrowed
    return o == Py_None ? nullptr : Py_NewRef(o);
  }
  PyTypeObject* type() const override { return tensor_type; }

  PyObject* weak_reference = nullptr;
};

}  // namespace

bool is_dispatched(const PythonCall& call) {
  if (disabled) return false;
  return dispatch_mode_count() > 0 || any_object(call, [](PyObject* o) { return handles_dispatch(Py_TYPE(o)); });
}

PyObject* call_dispatched(const Op& op, const ParsedArgs& parsed, const PythonCall& call, bool in_place) {
  if (!is_dispatched(call)) return nullptr;
  op.check_args(parsed.args);
  auto tensor = [&](const TensorMeta* t) { return t ? object_in(call, t) : py::none(); };
  py::list arguments;
  for (size_t i = 0; i < parsed.args.size(); ++i) arguments.append(to_python(op.params[i], parsed.args[i], tensor));
  py::object targets = py::none();
  if (!in_place && !parsed.into.empty()) {
    py::list list;
    for (const client::Tensor& t : parsed.into) list.append(tensor(t.get()));
    targets = list;
  }
  const py::str name(op.name.data(), op.name.size());
  Owned function(throw_if_null(PyObject_GetAttrString(handler_module(), "call")));
  return throw_if_null(PyObject_CallFunctionObjArgs(function.get(), name.ptr(), arguments.ptr(), targets.ptr(),
                                                    in_place ? Py_True : Py_False,
                                                    parsed.requires_grad ? Py_True : Py_False, nullptr));
}

PyObject* call_dispatched_method(const char* name, std::initializer_list<PyObject*> args) {
  if (!is_dispatched({nullptr, args.begin(), static_cast<Py_ssize_t>(args.size()), nullptr})) return nullptr;
  Owned function(throw_if_null(PyObject_GetAttrString(handler_module(), name)));
  return throw_if_null(PyObject_Vectorcall(function.get(), args.begin(), args.size(), nullptr));
}

bool is_wrapper(const TensorMeta* tensor) { return dynamic_cast<const Wrapper*>(stand_in_of(tensor)) != nullptr; }

namespace {

PyTypeObject* tensor_subclass(PyObject* type, const char* what) {
  check(ErrorKind::kType, PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type),
        what, "(): argument 'cls' must be a subclass of Tensor, not ", Py_TYPE(type)->tp_name);
  return reinterpret_cast<PyTypeObject*>(type);
}

// _make_subclass(cls, data, require_grad=False): an object of the class that shares the data's values, without history.
PyObject* make_subclass(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"cls", "data", "require_grad", "dispatch_sizes_strides_policy", nullptr};
  PyObject *type = nullptr, *data = nullptr, *policy = nullptr;
  int require_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|pO:_make_subclass", const_cast<char**>(names), &type, &data,
                                   &require_grad, &policy)) {
    return nullptr;
  }
  return guard([&]() -> PyObject* {
    check(ErrorKind::kType, is_tensor(data), "_make_subclass(): argument 'data' (position 2) must be Tensor, not ",
          Py_TYPE(data)->tp_name);
    check(ErrorKind::kNotImplemented, !policy || policy == Py_None,
          "[_make_subclass] sizes and strides cannot be computed by the subclass");
    PyTypeObject* subclass = tensor_subclass(type, "_make_subclass");
    const client::Tensor& handle = handle_of(data);
    check_has_values(handle.get(), "_make_subclass");
    const Arg detached[] = {Arg(static_cast<const TensorMeta*>(handle.get()))};
    client::Tensor result = call_op(op_id::kDetach, detached, *handle->session)[0];
    if (require_grad) client::set_requires_grad(result, true, current_site(*result->session));
    return wrap(std::move(result), subclass);
  });
}

// make_wrapper(cls, size, strides or None, storage_offset, dtype, device): an object of the class without values.
PyObject* make_wrapper(PyObject*, PyObject* args) {
  PyObject *type = nullptr, *size = nullptr, *strides = nullptr, *dtype = nullptr, *device = nullptr;
  long long offset = 0;
  if (!PyArg_ParseTuple(args, "OOOLOO", &type, &size, &strides, &offset, &dtype, &device)) return nullptr;
  return guard([&]() -> PyObject* {
    PyTypeObject* subclass = tensor_subclass(type, "_make_wrapper_subclass");
    TensorMeta meta;
    absl::InlinedVector<int64_t, 6> numbers;
    check(ErrorKind::kType, ints_from(size, &numbers),
          "_make_wrapper_subclass(): argument 'size' must be a tuple of ints");
    meta.sizes = Sizes(numbers.begin(), numbers.end());
    meta.strides = contiguous_strides(meta.sizes);
    if (strides != Py_None) {
      numbers.clear();
      check(ErrorKind::kType, ints_from(strides, &numbers) && numbers.size() == meta.sizes.size(),
            "_make_wrapper_subclass(): argument 'strides' must have one int per dimension");
      meta.strides = Sizes(numbers.begin(), numbers.end());
    }
    meta.offset = offset;
    meta.dtype = dtype_from(dtype);
    meta.device = device_from(device);
    auto handle = make_ref<client::Handle>(std::move(meta), Ref<client::Session>(&current_session()), 0);
    Ref<Wrapper> wrapper = make_ref<Wrapper>();
    Wrapper* owner = wrapper.get();
    handle->stands_for = Ref<RefCounted>(std::move(wrapper));
    stand_ins_exist = true;
    Owned object(throw_if_null(wrap(std::move(handle), subclass)));
    owner->weak_reference = throw_if_null(PyWeakref_NewRef(object.get(), nullptr));
    return object.release();
  });
}

PyObject* disabled_dispatch(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError, "this tensor's class does not implement __torch_dispatch__");
  return nullptr;
}

PyObject* set_disabled(PyObject*, PyObject* on) {
  disabled += on == Py_True ? 1 : -1;
  Py_RETURN_NONE;
}

PyObject* handles_object(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && handles_dispatch(Py_TYPE(o)));
}
PyObject* is_dispatched_call(PyObject*, PyObject* values) {
  return guard([&]() -> PyObject* {
    check(ErrorKind::kType, PyTuple_Check(values), "_is_dispatched(): expected a tuple of arguments");
    PyObject* args[] = {values};
    return PyBool_FromLong(is_dispatched({nullptr, args, 1, nullptr}));
  });
}
PyObject* is_wrapper_object(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && is_wrapper(handle_of(o).get()));
}

PyMethodDef functions[] = {
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&make_subclass)),
     METH_VARARGS | METH_KEYWORDS, "An object of a subclass of Tensor that shares a tensor's values, without history."},
    {"_make_wrapper", make_wrapper, METH_VARARGS, "An object of a subclass of Tensor without values in the engine."},
    {"_disabled_torch_dispatch_impl", disabled_dispatch, METH_VARARGS, "Tensor.__torch_dispatch__: handles no calls."},
    {"_set_dispatch_disabled", set_disabled, METH_O, "Enters (True) or leaves (False) a context without dispatch."},
    {"_handles_dispatch", handles_object, METH_O, "Whether the object is a tensor with a __torch_dispatch__."},
    {"_is_dispatched", is_dispatched_call, METH_O,
     "Whether a mode or one of a tuple of arguments handles operators in this thread."},
    {"_is_wrapper", is_wrapper_object, METH_O, "Whether the object is a tensor of _make_wrapper_subclass()."},
    {}};

}  // namespace

bool init_torch_dispatch(PyObject* module) {
  dispatch_name = PyUnicode_InternFromString("__torch_dispatch__");
  if (!dispatch_name || PyModule_AddFunctions(module, functions) < 0) return false;
  disabled_implementation = PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl");
  return disabled_implementation != nullptr;
}

}  // namespace tt::python
