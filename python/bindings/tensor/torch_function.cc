#include "python/bindings/tensor/torch_function.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "python/bindings/tensor/torch_dispatch.h"

namespace tt::python {

PyTypeObject* plain_tensor_type = nullptr;
PyTypeObject* plain_parameter_type = nullptr;
int threads_with_function_modes = 0;

namespace {

PyTypeObject* parameter_type = nullptr;
PyObject* disabled_implementation = nullptr;  // _disabled_torch_function_impl
PyObject* handler_name = nullptr;             // "__torch_function__"

enum class Enabled : uint8_t { kAll, kModesOnly, kNothing };

struct ThreadState {
  Enabled enabled = Enabled::kAll;
  bool skips_next = false;                       // whether the next overridable call skips the overrides
  std::vector<PyObject*> modes, dispatch_modes;  // owned; the innermost is the last
};
int threads_with_dispatch_modes = 0;

ThreadState& state() {
  static thread_local ThreadState s;
  return s;
}

void update_plain_types() {
  const bool has_modes = threads_with_function_modes > 0 || threads_with_dispatch_modes > 0;
  plain_tensor_type = has_modes ? nullptr : tensor_type;
  plain_parameter_type = has_modes ? nullptr : parameter_type;
}

// Takes the reference. `threads` counts the threads with modes of the kind.
void push(std::vector<PyObject*>* modes, int* threads, PyObject* mode) {
  modes->push_back(mode);
  if (modes->size() > 1) return;
  ++*threads;
  update_plain_types();
}
// Returns the reference. Requires a mode.
PyObject* pop(std::vector<PyObject*>* modes, int* threads) {
  PyObject* mode = modes->back();
  modes->pop_back();
  if (!modes->empty()) return mode;
  --*threads;
  update_plain_types();
  return mode;
}
void push_mode(PyObject* mode) { push(&state().modes, &threads_with_function_modes, mode); }
PyObject* pop_mode() { return pop(&state().modes, &threads_with_function_modes); }

bool mode_is_active() { return !state().modes.empty() && state().enabled != Enabled::kNothing; }

// Removes the innermost mode while its handler runs, so that the handler's own calls do not reach it again.
class ModeRemoved {
 public:
  ModeRemoved() : mode_(pop_mode()) {}
  ~ModeRemoved() { push_mode(mode_); }
  ModeRemoved(const ModeRemoved&) = delete;
  ModeRemoved& operator=(const ModeRemoved&) = delete;
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

std::string repr(PyObject* o) {
  Owned text(PyObject_Repr(o));
  const char* characters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!characters) throw PythonErrorSet();
  return characters;
}

PyObject* call_handler(PyObject* handler, PyObject* function, PyObject* types, PyObject* args, PyObject* keywords) {
  return throw_if_null(PyObject_CallFunctionObjArgs(handler, function, types, args, keywords, nullptr));
}

}  // namespace

bool overrides_functions(PyTypeObject* type) {
  PyObject* handler = _PyType_Lookup(type, handler_name);  // borrowed
  return handler && type != tensor_type && type != parameter_type && handler != disabled_implementation &&
         state().enabled == Enabled::kAll;
}

void Overrides::add(PyObject* o) {
  if (is_plain_tensor(o) || o == Py_None) return;
  if (PyTuple_CheckExact(o)) return add_items(o);
  if (PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) {
      if (PyObject* item = PyList_GET_ITEM(o, i); !PyTuple_CheckExact(item) && !PyList_CheckExact(item)) add(item);
    }
    return;
  }
  if (PySlice_Check(o)) {
    auto* slice = reinterpret_cast<PySliceObject*>(o);
    return add(slice->start), add(slice->stop), add(slice->step);
  }
  if (!is_foreign(o)) return;
  PyTypeObject* type = Py_TYPE(o);
  auto place = objects_.end();
  for (auto at = objects_.begin(); at != objects_.end(); ++at) {
    if (Py_TYPE(*at) == type) return;
    if (place == objects_.end() && PyType_IsSubtype(type, Py_TYPE(*at))) place = at;
  }
  objects_.insert(place, o);
}

void Overrides::add_items(PyObject* tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    if (PyObject* item = PyTuple_GET_ITEM(tuple, i); !PyTuple_CheckExact(item) && !PyList_CheckExact(item)) add(item);
  }
}

void Overrides::add(const PythonCall& call) {
  if (call.self) add(call.self);
  const Py_ssize_t count = call.count + (call.keywords ? PyTuple_GET_SIZE(call.keywords) : 0);
  for (Py_ssize_t i = 0; i < count; ++i) add(call.args[i]);
}

bool Overrides::found() const {
  if (objects_.empty() && !mode_is_active()) return false;
  return !std::exchange(state().skips_next, false);
}

PyObject* Overrides::call(PyObject* function, PyObject* args, PyObject* keywords, const std::string& name) const {
  Owned types(throw_if_null(PyTuple_New(static_cast<Py_ssize_t>(objects_.size()))));
  std::vector<Owned> kept;  // a handler may change the lists that the objects come from
  for (size_t i = 0; i < objects_.size(); ++i) {
    kept.emplace_back(Py_NewRef(objects_[i]));
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(objects_[i]))));
  }
  Owned mode;
  if (mode_is_active()) {
    ModeRemoved removed;
    mode = Owned(Py_NewRef(removed.mode()));
    Owned handler(throw_if_null(PyObject_GetAttr(mode.get(), handler_name)));
    Owned result(call_handler(handler.get(), function, types.get(), args, keywords));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  for (const Owned& o : kept) {
    Owned handler(throw_if_null(PyObject_GetAttr(o.get(), handler_name)));
    Owned result(call_handler(handler.get(), function, types.get(), args, keywords));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  refuse(mode.get(), name);
}

void Overrides::refuse(PyObject* mode, const std::string& name) const {
  std::string text;
  if (is_python_) {
    for (PyObject* o : objects_) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", repr(reinterpret_cast<PyObject*>(Py_TYPE(o))));
    }
    text = absl::StrCat("no implementation found for '", name, "' on types that implement __torch_function__: [", text,
                        "]", mode ? " nor in mode " + repr(mode) : "");
  } else {
    absl::StrAppend(&text, "Multiple dispatch failed for '", name,
                    "'; all __torch_function__ handlers returned NotImplemented:\n\n");
    if (mode) absl::StrAppend(&text, "  - mode object ", repr(mode), "\n");
    for (PyObject* o : objects_) {
      absl::StrAppend(&text, "  - tensor subclass ", repr(reinterpret_cast<PyObject*>(Py_TYPE(o))), "\n");
    }
  }
  PyErr_SetString(PyExc_TypeError, text.c_str());
  throw PythonErrorSet();
}

size_t dispatch_mode_count() { return state().dispatch_modes.size(); }

PackedCall::PackedCall(const PythonCall& call) {
  const Py_ssize_t offset = call.self ? 1 : 0;
  args = Owned(throw_if_null(PyTuple_New(call.count + offset)));
  if (call.self) PyTuple_SET_ITEM(args.get(), 0, Py_NewRef(call.self));
  for (Py_ssize_t i = 0; i < call.count; ++i) PyTuple_SET_ITEM(args.get(), i + offset, Py_NewRef(call.args[i]));
  if (!call.keywords || PyTuple_GET_SIZE(call.keywords) == 0) return;
  keywords = Owned(throw_if_null(PyDict_New()));
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call.keywords); ++k) {
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(call.keywords, k), call.args[call.count + k]) < 0) {
      throw PythonErrorSet();
    }
  }
}

namespace {

// Returns the last part of a module's name, such as linalg.
std::string place_of(PyObject* module) {
  const char* text = PyModule_GetName(module);
  if (!text) throw PythonErrorSet();
  std::string_view place = text;
  place.remove_prefix(place.rfind('.') + 1);  // 0 if there is no dot
  return std::string(place);
}

// The function of an entry: the entry linalg_inv is named inv in the module linalg.
PyObject* function_in(PyObject* module, const char* name) {
  const std::string prefix = absl::StrCat(place_of(module), "_");
  const bool has_prefix = std::string_view(name).starts_with(prefix);
  return throw_if_null(PyObject_GetAttrString(module, name + (has_prefix ? prefix.size() : 0)));
}

// The public name of a module's function: the functions of _C.torch are torch.<name>.
std::string public_name(PyObject* module, const char* name) {
  const std::string place = place_of(module);
  if (place == "torch") return absl::StrCat("torch.", name);
  return absl::StrCat("torch.", place == "functional" ? "nn" : place.c_str(), ".", name);
}

}  // namespace

PyObject* call_overridden(PyObject* module, const char* name, const PythonCall& call) {
  if (!module && !call.self) return nullptr;  // a function of _C.ops
  Overrides overrides;
  overrides.add(call);
  if (!overrides.found()) return nullptr;
  PackedCall packed(call);
  Owned function(call.self ? throw_if_null(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name))
                           : function_in(module, name));
  const std::string full = call.self ? absl::StrCat("torch.Tensor.", name) : public_name(module, name);
  return overrides.call(function.get(), packed.args.get(), packed.keywords.get(), full);
}

PyObject* call_overridden_method(const char* name, std::initializer_list<PyObject*> args, const char* kind,
                                 PyObject* keywords) {
  Overrides overrides;
  for (PyObject* o : args) overrides.add(o);
  if (!overrides.found()) return nullptr;
  Owned tuple(throw_if_null(PyTuple_New(static_cast<Py_ssize_t>(args.size()))));
  Py_ssize_t i = 0;
  for (PyObject* o : args) PyTuple_SET_ITEM(tuple.get(), i++, Py_NewRef(o));
  Owned function(throw_if_null(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name)));
  if (*kind) function = Owned(throw_if_null(PyObject_GetAttrString(function.get(), kind)));
  const std::string full = absl::StrCat("torch.Tensor.", name, *kind ? "." : "", kind);
  return overrides.call(function.get(), tuple.get(), keywords, full);
}

namespace {

// Context managers that switch __torch_function__ off in this thread: for arguments, or for modes too.
struct SwitchObject {
  PyObject_HEAD Enabled previous;
  bool entered;
};

template <Enabled Setting>
PyObject* switch_enter(PyObject* o, PyObject*) {
  auto* self = reinterpret_cast<SwitchObject*>(o);
  self->previous = state().enabled;
  self->entered = true;
  if (state().enabled < Setting) state().enabled = Setting;
  Py_RETURN_NONE;
}
PyObject* switch_exit(PyObject* o, PyObject* const*, Py_ssize_t) {
  auto* self = reinterpret_cast<SwitchObject*>(o);
  if (self->entered) state().enabled = self->previous;
  self->entered = false;
  Py_RETURN_NONE;
}

template <Enabled Setting>
PyMethodDef* switch_methods() {
  static PyMethodDef methods[] = {
      {"__enter__", switch_enter<Setting>, METH_NOARGS, nullptr},
      {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&switch_exit)), METH_FASTCALL, nullptr},
      {}};
  return methods;
}

template <Enabled Setting>
bool add_switch(PyObject* module, const char* name, const char* doc) {
  PyType_Slot slots[] = {{Py_tp_methods, switch_methods<Setting>()},
                         {Py_tp_new, reinterpret_cast<void*>(&PyType_GenericNew)},
                         {Py_tp_doc, const_cast<char*>(doc)},
                         {0, nullptr}};
  PyType_Spec spec{name, sizeof(SwitchObject), 0, Py_TPFLAGS_DEFAULT, slots};
  PyObject* type = PyType_FromSpec(&spec);
  return type && PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type)) == 0;
}

// _disabled_torch_function_impl(cls?, func, types, args=(), kwargs=None): calls func without the arguments' overrides.
PyObject* call_without_overrides(PyObject*, PyObject* args) {
  PyObject *function = nullptr, *types = nullptr, *call_args = nullptr, *keywords = nullptr;
  if (!PyArg_ParseTuple(args, "OO|OO", &function, &types, &call_args, &keywords)) return nullptr;
  Owned tuple(call_args ? PySequence_Tuple(call_args) : PyTuple_New(0));
  if (!tuple) return nullptr;
  const Enabled previous = state().enabled;
  if (previous == Enabled::kAll) state().enabled = Enabled::kModesOnly;
  PyObject* result = PyObject_Call(function, tuple.get(), keywords == Py_None ? nullptr : keywords);
  state().enabled = previous;
  return result;
}

// _call_without_one_override(func, types, args, kwargs): calls func; the handlers do not receive this call, but those
// of the calls that func makes.
PyObject* call_without_one_override(PyObject*, PyObject* args) {
  PyObject *function = nullptr, *types = nullptr, *call_args = nullptr, *keywords = nullptr;
  if (!PyArg_ParseTuple(args, "OOOO!", &function, &types, &call_args, &PyDict_Type, &keywords)) return nullptr;
  Owned tuple(PySequence_Tuple(call_args));
  if (!tuple) return nullptr;
  state().skips_next = true;
  PyObject* result = PyObject_Call(function, tuple.get(), keywords);
  state().skips_next = false;
  return result;
}

PyObject* has_torch_function(PyObject*, PyObject* sequence) {
  Owned items(PySequence_Tuple(sequence));
  if (!items) return nullptr;
  Overrides overrides;
  overrides.add_items(items.get());
  return PyBool_FromLong(overrides.found());
}
PyObject* has_torch_function_variadic(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Overrides overrides;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!PyTuple_CheckExact(args[i]) && !PyList_CheckExact(args[i])) overrides.add(args[i]);
  }
  return PyBool_FromLong(overrides.found());
}

// handle_torch_function(name, function, relevant arguments, args, kwargs).
PyObject* handle_torch_function(PyObject*, PyObject* all) {
  const char* name = nullptr;
  PyObject *function = nullptr, *relevant = nullptr, *args = nullptr, *keywords = nullptr;
  if (!PyArg_ParseTuple(all, "sOOO!O!", &name, &function, &relevant, &PyTuple_Type, &args, &PyDict_Type, &keywords)) {
    return nullptr;
  }
  return guard([&]() -> PyObject* {
    Owned items(throw_if_null(PySequence_Tuple(relevant)));
    Overrides overrides;
    overrides.add_items(items.get());
    return overrides.python_message().call(function, args, keywords, name);
  });
}

enum class ModeKind : uint8_t { kFunction, kDispatch };

template <ModeKind Kind>
std::vector<PyObject*>& modes_of() {
  return Kind == ModeKind::kFunction ? state().modes : state().dispatch_modes;
}
template <ModeKind Kind>
int* threads_with() {
  return Kind == ModeKind::kFunction ? &threads_with_function_modes : &threads_with_dispatch_modes;
}
template <ModeKind Kind>
PyObject* mode_push(PyObject*, PyObject* mode) {
  push(&modes_of<Kind>(), threads_with<Kind>(), Py_NewRef(mode));
  Py_RETURN_NONE;
}
template <ModeKind Kind>
PyObject* mode_pop(PyObject*, PyObject*) {
  if (!modes_of<Kind>().empty()) return pop(&modes_of<Kind>(), threads_with<Kind>());
  PyErr_SetString(PyExc_RuntimeError, "expected an active mode, got an empty stack");
  return nullptr;
}
template <ModeKind Kind>
PyObject* mode_count(PyObject*, PyObject*) {
  return PyLong_FromSize_t(modes_of<Kind>().size());
}
template <ModeKind Kind>
PyObject* mode_at(PyObject*, PyObject* index) {
  const Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  const std::vector<PyObject*>& modes = modes_of<Kind>();
  if (i >= 0 && static_cast<size_t>(i) < modes.size()) return Py_NewRef(modes[static_cast<size_t>(i)]);
  PyErr_SetString(PyExc_IndexError, "index of a mode out of range");
  return nullptr;
}
PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(state().enabled == Enabled::kAll); }
PyObject* is_all_disabled(PyObject*, PyObject*) { return PyBool_FromLong(state().enabled == Enabled::kNothing); }
PyObject* is_mode_enabled(PyObject*, PyObject*) { return PyBool_FromLong(mode_is_active()); }

PyObject* set_parameter_type(PyObject*, PyObject* type) {
  Py_XSETREF(parameter_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(type)));
  update_plain_types();
  Py_RETURN_NONE;
}

template <typename F>
PyCFunction function_pointer(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

PyMethodDef functions[] = {
    {"_disabled_torch_function_impl", call_without_overrides, METH_VARARGS,
     "Calls a function without the __torch_function__ of its arguments."},
    {"_call_without_one_override", call_without_one_override, METH_VARARGS,
     "Calls a function whose own call the handlers do not receive."},
    {"_has_torch_function", has_torch_function, METH_O,
     "Whether an object in the sequence, or a mode, overrides functions."},
    {"_has_torch_function_unary", function_pointer(&has_torch_function_variadic), METH_FASTCALL, nullptr},
    {"_has_torch_function_variadic", function_pointer(&has_torch_function_variadic), METH_FASTCALL,
     "Whether an argument, or a mode, overrides functions."},
    {"_handle_torch_function", handle_torch_function, METH_VARARGS,
     "Passes a call to the mode or to the relevant arguments."},
    {"_push_on_torch_function_stack", mode_push<ModeKind::kFunction>, METH_O,
     "Makes a function mode the innermost of this thread."},
    {"_pop_torch_function_stack", mode_pop<ModeKind::kFunction>, METH_NOARGS,
     "Removes and returns this thread's innermost function mode."},
    {"_len_torch_function_stack", mode_count<ModeKind::kFunction>, METH_NOARGS,
     "The number of this thread's function modes."},
    {"_get_function_stack_at", mode_at<ModeKind::kFunction>, METH_O,
     "A function mode of this thread; 0 is the outermost."},
    {"_push_on_torch_dispatch_stack", mode_push<ModeKind::kDispatch>, METH_O,
     "Makes a dispatch mode the innermost of this thread."},
    {"_pop_torch_dispatch_stack", mode_pop<ModeKind::kDispatch>, METH_VARARGS,
     "Removes and returns this thread's innermost dispatch mode."},
    {"_len_torch_dispatch_stack", mode_count<ModeKind::kDispatch>, METH_NOARGS,
     "The number of this thread's dispatch modes."},
    {"_get_dispatch_stack_at", mode_at<ModeKind::kDispatch>, METH_O,
     "A dispatch mode of this thread; 0 is the outermost."},
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS, "Whether the arguments' overrides are enabled."},
    {"_is_torch_function_all_disabled", is_all_disabled, METH_NOARGS, "Whether function modes are disabled too."},
    {"_is_torch_function_mode_enabled", is_mode_enabled, METH_NOARGS, "Whether a function mode is active."},
    {"_set_parameter_type", set_parameter_type, METH_O, "Sets the type of parameters, which override no function."},
    {}};

}  // namespace

bool init_torch_function(PyObject* module) {
  handler_name = PyUnicode_InternFromString("__torch_function__");
  if (!handler_name || PyModule_AddFunctions(module, functions) < 0) return false;
  disabled_implementation = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
  update_plain_types();
  return disabled_implementation && init_torch_dispatch(module) &&
         add_switch<Enabled::kModesOnly>(module, "teletensor._C.DisableTorchFunctionSubclass",
                                         "Disables the __torch_function__ of arguments in a with statement.") &&
         add_switch<Enabled::kNothing>(module, "teletensor._C.DisableTorchFunction",
                                       "Disables the __torch_function__ of arguments and modes in a with statement.");
}

}  // namespace tt::python
