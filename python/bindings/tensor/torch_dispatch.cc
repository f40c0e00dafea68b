#include "python/bindings/tensor/torch_dispatch.h"

#include <string>

#include "client/autograd/backward.h"
#include "client/session/default_dtype.h"
#include "engine/schema/default_float.h"
#include "engine/schema/op_ids.h"
#include "python/bindings/tensor/arguments.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/operators.h"
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

// Returns whether the object is the tensor's, and stores it in `found` then.
auto matches(const TensorMeta* tensor, PyObject** found) {
  return [=](PyObject* o) {
    if (!is_tensor(o) || handle_of(o).get() != tensor) return false;
    *found = o;
    return true;
  };
}

// Finds the object of a tensor among a call's arguments, so that handlers receive the caller's objects.
py::object object_in(const PythonCall& call, const TensorMeta* tensor) {
  PyObject* found = nullptr;
  any_object(call, matches(tensor, &found));
  return found ? py::reinterpret_borrow<py::object>(found) : tensor_object(tensor);
}

// The object of a wrapper subclass's tensor, which keeps the handle.
class Wrapper final : public RefCounted {
 public:
  explicit Wrapper(PyObject* object) : weak_reference_(throw_if_null(PyWeakref_NewRef(object, nullptr))) {}
  ~Wrapper() override {
    if (!Py_IsInitialized()) return;
    HoldGil held;
    Py_DECREF(weak_reference_);
  }
  // Returns a borrowed reference; null if the object was freed.
  PyObject* object() const {
    PyObject* o = PyWeakref_GetObject(weak_reference_);
    return o == Py_None ? nullptr : o;
  }

 private:
  PyObject* const weak_reference_;
};

bool wrappers_exist = false;

const Wrapper* wrapper_of(const TensorMeta* tensor) {
  if (!tensor || !wrappers_exist) return nullptr;
  return static_cast<const Wrapper*>(static_cast<const client::Handle*>(tensor)->stands_for.get());
}

// The object of the keyword `memory_format`, which parse() has accepted. Returns a borrowed reference.
PyObject* memory_format_object(const PythonCall& call) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call.keywords); ++k) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.keywords, k), "memory_format") == 0)
      return call.args[call.count + k];
  }
  return Py_None;
}

// Passes a call to the handlers. `into` are the tensors of `out=`.
PyObject* call_handlers_of(const Op& op, Args args, absl::Span<const client::Tensor> into, bool in_place,
                           bool requires_grad, PyObject* memory_format, const TensorObjects& tensor) {
  py::list arguments;
  for (size_t i = 0; i < args.size(); ++i) arguments.append(to_python(op.params[i], args[i], tensor));
  py::object targets = py::none();
  if (!into.empty()) {
    py::list list;
    for (const client::Tensor& t : into) list.append(tensor(t.get()));
    targets = list;
  }
  static PyObject* function = [] {
    Owned module(throw_if_null(PyImport_ImportModule("teletensor._library.dispatch")));
    return throw_if_null(PyObject_GetAttrString(module.get(), "call"));
  }();
  const py::str name(op.name.data(), op.name.size());
  return throw_if_null(PyObject_CallFunctionObjArgs(function, name.ptr(), arguments.ptr(), targets.ptr(),
                                                    in_place ? Py_True : Py_False, requires_grad ? Py_True : Py_False,
                                                    memory_format, nullptr));
}

}  // namespace

bool is_dispatched(const PythonCall& call) {
  if (disabled) return false;
  return dispatch_mode_count() > 0 || any_object(call, [](PyObject* o) { return handles_dispatch(Py_TYPE(o)); });
}

PyObject* call_dispatched(const Op& op, const ParsedArgs& parsed, const PythonCall& call, bool in_place) {
  if (!is_dispatched(call)) return nullptr;
  op.check_args(parsed.args);
  const client::Tensors none;
  PyObject* format = parsed.memory_format == MemoryFormat::kNone ? Py_None : memory_format_object(call);
  return call_handlers_of(op, parsed.args, in_place ? none : parsed.into, in_place, parsed.requires_grad, format,
                          [&](const TensorMeta* t) { return t ? object_in(call, t) : py::none(); });
}

PyObject* DispatchedMethod::find(const TensorMeta* tensor) const {
  PyObject* found = nullptr;
  const auto is_tensors = matches(tensor, &found);
  for (const Owned& result : results_) {
    if (is_tensors(result.get())) return found;
  }
  for (PyObject* argument : arguments_) {
    if (any_object(argument, is_tensors)) return found;
  }
  return nullptr;
}

PyObject* DispatchedMethod::object_of(const client::Tensor& tensor) const {
  PyObject* found = find(tensor.get());
  return found ? Py_NewRef(found) : tt::python::object_of(tensor);
}

client::Tensor DispatchedMethod::call(uint16_t id, Args args, client::Session& session,
                                      absl::Span<const client::Tensor> into) {
  const Op& op = *find_op(id);
  bool applies = dispatch_mode_count() > 0;
  auto object = [&](const TensorMeta* tensor) -> py::object {
    if (!tensor) return py::none();
    PyObject* found = find(tensor);
    if (!found) return tensor_object(tensor);
    applies |= handles_dispatch(Py_TYPE(found));
    return py::reinterpret_borrow<py::object>(found);
  };
  for (const Arg& arg : args) {
    if (arg.kind == Arg::Kind::kTensor) object(arg.tensor);
    if (arg.kind != Arg::Kind::kTensors) continue;
    for (const TensorMeta* tensor : arg.list()) object(tensor);
  }
  if (!applies) {
    client::Tensors results = call_op(id, args, session, into);
    return into.empty() ? std::move(results[0]) : into[0];
  }
  Owned result(call_handlers_of(op, args, into, false, false, Py_None, object));
  if (!into.empty()) return into[0];
  check(ErrorKind::kType, is_tensor(result.get()), "[", op.name, "] expected a Tensor from __torch_dispatch__, got ",
        Py_TYPE(result.get())->tp_name);
  return handle_of(results_.emplace_back(std::move(result)).get());
}

bool is_wrapper(const TensorMeta* tensor) { return wrapper_of(tensor) != nullptr; }

PyObject* wrapper_object(const client::Tensor& tensor) {
  const Wrapper* wrapper = wrapper_of(tensor.get());
  return wrapper ? Py_XNewRef(wrapper->object()) : nullptr;
}

void check_has_values(const TensorMeta* tensor, std::string_view what) {
  const Wrapper* wrapper = wrapper_of(tensor);
  if (!wrapper) return;
  PyObject* o = wrapper->object();
  fail(ErrorKind::kNotImplemented, "[", what, "] a ", o ? Py_TYPE(o)->tp_name : "tensor of a wrapper subclass",
       " has no values in the engine; its __torch_dispatch__ does not handle this");
}

namespace {

bool is_wrapper_object(PyObject* o) { return is_tensor(o) && is_wrapper(handle_of(o).get()); }

const Op& operator_of(PyObject* name) {
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  const Op* op = text ? find_op(text) : nullptr;
  check(ErrorKind::kValue, op != nullptr, "expected the name of an operator, got ",
        text ? text : Py_TYPE(name)->tp_name);
  return *op;
}

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
    if (strides == Py_None) {
      meta.strides = contiguous_strides(meta.sizes);
    } else {
      numbers.clear();
      check(ErrorKind::kType, ints_from(strides, &numbers) && numbers.size() == meta.sizes.size(),
            "_make_wrapper_subclass(): argument 'strides' must have one int per dimension");
      meta.strides = Sizes(numbers.begin(), numbers.end());
    }
    meta.offset = offset;
    meta.dtype = dtype_from(dtype);
    meta.device = device_from(device);
    auto handle = make_ref<client::Handle>(std::move(meta), Ref<client::Session>(&current_session()), 0);
    Owned object(throw_if_null(wrap(handle, subclass)));
    handle->stands_for = Ref<RefCounted>(new Wrapper(object.get()));
    wrappers_exist = true;
    return object.release();
  });
}

// _set_wrapper(object, like): gives a wrapper subclass's object the sizes, dtype and device of another one.
PyObject* set_wrapper(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guard([&]() -> PyObject* {
    check(ErrorKind::kType, count == 2 && is_wrapper_object(args[0]) && is_wrapper_object(args[1]),
          "_set_wrapper(): expected two tensors of _make_wrapper_subclass()");
    const client::Tensor& like = handle_of(args[1]);
    auto handle = make_ref<client::Handle>(TensorMeta(*like), like->session, 0);
    handle->stands_for = Ref<RefCounted>(new Wrapper(args[0]));
    replace_handle(args[0], std::move(handle));
    Py_RETURN_NONE;
  });
}

// _result_sizes(operator, arguments...): the sizes of an operator's results; None if they depend on data.
PyObject* result_sizes(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guard([&]() -> PyObject* {
    const Op& op = operator_of(count > 0 ? args[0] : Py_None);
    if (op.is_dynamic) Py_RETURN_NONE;
    ParsedArgs parsed;
    std::string why;
    check(ErrorKind::kType, parse(op, {nullptr, args + 1, count - 1, keywords}, &parsed, &why), op.name, "(): ", why);
    op.check_args(parsed.args);
    const DefaultFloat default_float(client::default_dtype());
    Inference inferred;
    infer(op, parsed.args, false, &inferred);
    py::list sizes;
    for (const TensorMeta& meta : inferred.outputs) {
      sizes.append(py::reinterpret_steal<py::object>(throw_if_null(size_object(meta.sizes))));
    }
    return sizes.release().ptr();
  });
}

// _declaration(operator): ([(parameter, keyword only, written)], pointwise, view, random, number of results).
PyObject* declaration(PyObject*, PyObject* name) {
  return guard([&]() -> PyObject* {
    const Op& op = operator_of(name);
    py::list parameters;
    for (const Param& p : op.params) parameters.append(py::make_tuple(std::string(p.name), p.keyword_only, p.written));
    return py::make_tuple(parameters, op.is_pointwise, op.is_view, op.is_random, op.num_outputs).release().ptr();
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
PyObject* is_wrapper_function(PyObject*, PyObject* o) { return PyBool_FromLong(is_wrapper_object(o)); }

template <typename F>
PyCFunction function_pointer(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

PyMethodDef functions[] = {
    {"_make_subclass", function_pointer(&make_subclass), METH_VARARGS | METH_KEYWORDS,
     "An object of a subclass of Tensor that shares a tensor's values, without history."},
    {"_make_wrapper", make_wrapper, METH_VARARGS, "An object of a subclass of Tensor without values in the engine."},
    {"_disabled_torch_dispatch_impl", disabled_dispatch, METH_VARARGS, "Tensor.__torch_dispatch__: handles no calls."},
    {"_set_dispatch_disabled", set_disabled, METH_O, "Enters (True) or leaves (False) a context without dispatch."},
    {"_handles_dispatch", handles_object, METH_O, "Whether the object is a tensor with a __torch_dispatch__."},
    {"_is_dispatched", is_dispatched_call, METH_O,
     "Whether a mode or one of a tuple of arguments handles operators in this thread."},
    {"_is_wrapper", is_wrapper_function, METH_O, "Whether the object is a tensor of _make_wrapper_subclass()."},
    {"_set_wrapper", function_pointer(&set_wrapper), METH_FASTCALL,
     "Gives a tensor of _make_wrapper_subclass() the sizes, dtype and device of another one."},
    {"_result_sizes", function_pointer(&result_sizes), METH_FASTCALL | METH_KEYWORDS,
     "_result_sizes(operator, arguments...): the sizes of an operator's results; None if they depend on data."},
    {"_declaration", declaration, METH_O,
     "([(parameter, keyword only, written)], pointwise, view, random, number of results) of an operator."},
    {}};

}  // namespace

bool init_torch_dispatch(PyObject* module) {
  dispatch_name = PyUnicode_InternFromString("__torch_dispatch__");
  if (!dispatch_name || PyModule_AddFunctions(module, functions) < 0) return false;
  disabled_implementation = PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl");
  return disabled_implementation != nullptr;
}

}  // namespace tt::python
