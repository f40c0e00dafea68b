#include "python/bindings/overridable.h"

#include <structmember.h>

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "client/session/autocast.h"
#include "python/bindings/tensor/function_log.h"
#include "python/bindings/tensor/torch_function.h"

namespace tt::python {
namespace {

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;  // the Python function
  PyObject* passed;    // the object passed to handlers; null: this object
  PyObject* module;    // name of the public module, such as teletensor.nn.functional
  PyObject* qualname;  // name within the module, such as dropout or Tensor.split
  PyObject* autocast;  // the function's policies in mixed precision; null: it is in no list
  PyObject* form;      // makes the arguments that handlers receive of those of a call; null: they receive these
  PyObject* dict;
  PyObject* weak_references;
  bool only_modes;  // whether arguments do not override the function, as for functions that create tensors
};

PyObject* autocast_caller = nullptr;  // see set_autocast_caller

FunctionObject* self_of(PyObject* o) { return reinterpret_cast<FunctionObject*>(o); }

// Whether the object cannot override a function; false for objects that need a closer look.
bool is_plain(PyObject* o) {
  return is_plain_tensor(o) || o == Py_None || PyLong_CheckExact(o) || PyBool_Check(o) || PyFloat_CheckExact(o) ||
         PyUnicode_CheckExact(o);
}

// Same, for an argument: a tuple of plain objects is plain.
bool is_plain_argument(PyObject* o) {
  if (!PyTuple_CheckExact(o)) return is_plain(o);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    if (!is_plain(PyTuple_GET_ITEM(o, i))) return false;
  }
  return true;
}

// The name for error messages, such as torch.nn.functional.dropout.
std::string public_name(const FunctionObject* self) {
  constexpr std::string_view kPackage = "teletensor";
  const char *module = PyUnicode_AsUTF8(self->module), *name = PyUnicode_AsUTF8(self->qualname);
  if (!module || !name) throw PythonErrorSet();
  std::string_view place = module;
  if (place.starts_with(kPackage)) place.remove_prefix(kPackage.size());
  return absl::StrCat("torch", std::string(place), ".", name);
}

// Calls a listed function in mixed precision: autocast_caller(function, policies, args, keywords).
[[gnu::cold, gnu::noinline]] PyObject* call_with_autocast(FunctionObject* self, const PythonCall& called) {
  return guard([&]() -> PyObject* {
    const PackedCall packed(called);
    return PyObject_CallFunctionObjArgs(autocast_caller, self->function, self->autocast, packed.args.get(),
                                        packed.keywords ? packed.keywords.get() : Py_None, nullptr);
  });
}

PyObject* call_unlogged(PyObject* o, PyObject* const* args, size_t flags, PyObject* keywords) {
  FunctionObject* self = self_of(o);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  const PythonCall called{nullptr, args, count, keywords};
  bool plain = threads_with_function_modes == 0;
  if (plain && !self->only_modes) {
    const Py_ssize_t total = count + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    for (Py_ssize_t i = 0; i < total && plain; ++i) plain = is_plain_argument(args[i]);
  }
  if (!plain) {
    PyObject* result = guard([&]() -> PyObject* {
      Overrides overrides;
      if (!self->only_modes) overrides.add(called);
      if (!overrides.found()) return nullptr;
      PackedCall packed(called);
      if (!packed.keywords) packed.keywords = Owned(throw_if_null(PyDict_New()));
      if (self->form) {
        const Owned formed(throw_if_null(PyObject_Call(self->form, packed.args.get(), packed.keywords.get())));
        PyObject *positional = nullptr, *by_name = nullptr;
        if (!PyArg_ParseTuple(formed.get(), "O!O!", &PyTuple_Type, &positional, &PyDict_Type, &by_name)) {
          throw PythonErrorSet();
        }
        packed.args = Owned(Py_NewRef(positional));
        packed.keywords = Owned(Py_NewRef(by_name));
      }
      return overrides.python_message().call(self->passed ? self->passed : o, packed.args.get(), packed.keywords.get(),
                                             public_name(self));
    });
    if (result || PyErr_Occurred()) return result;
  }
  if (self->autocast && autocast_caller && client::autocast_settings().state().enabled()) [[unlikely]] {
    return call_with_autocast(self, called);
  }
  return PyObject_Vectorcall(self->function, args, flags, keywords);
}

PyObject* call(PyObject* o, PyObject* const* args, size_t flags, PyObject* keywords) {
  if (!logs_functions) [[likely]]
    return call_unlogged(o, args, flags, keywords);
  const LoggedCall logged(self_of(o)->module, self_of(o)->qualname);
  return call_unlogged(o, args, flags, keywords);
}

PyObject* bind(PyObject* o, PyObject* instance, PyObject*) {
  return instance && instance != Py_None ? PyMethod_New(o, instance) : Py_NewRef(o);
}

PyObject* get_attribute(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(self_of(o)->function, name);
}

PyObject* representation(PyObject* o) { return PyObject_Repr(self_of(o)->function); }

PyObject* get_doc(PyObject* o, void*) { return PyObject_GetAttrString(self_of(o)->function, "__doc__"); }
PyObject* get_module(PyObject* o, void*) { return Py_NewRef(self_of(o)->module); }
PyObject* get_qualname(PyObject* o, void*) { return Py_NewRef(self_of(o)->qualname); }
PyObject* get_name(PyObject* o, void*) {
  PyObject* qualname = self_of(o)->qualname;
  const Py_ssize_t length = PyUnicode_GET_LENGTH(qualname);
  return PyUnicode_Substring(qualname, PyUnicode_FindChar(qualname, '.', 0, length, -1) + 1, length);  // -1: no dot
}

int visit(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(self_of(o)->function);
  Py_VISIT(self_of(o)->passed);
  Py_VISIT(self_of(o)->autocast);
  Py_VISIT(self_of(o)->form);
  Py_VISIT(self_of(o)->dict);
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(self_of(o)->function);
  Py_CLEAR(self_of(o)->passed);
  Py_CLEAR(self_of(o)->autocast);
  Py_CLEAR(self_of(o)->form);
  Py_CLEAR(self_of(o)->dict);
  return 0;
}
void dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  if (self_of(o)->weak_references) PyObject_ClearWeakRefs(o);
  clear(o);
  Py_CLEAR(self_of(o)->module);
  Py_CLEAR(self_of(o)->qualname);
  PyObject_GC_Del(o);
}

// Pickled and copied by reference, like a function.
PyObject* reduce(PyObject* o, PyObject*) { return Py_NewRef(self_of(o)->qualname); }

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};
PyMemberDef members[] = {{"__wrapped__", T_OBJECT, offsetof(FunctionObject, function), READONLY, nullptr}, {}};
PyGetSetDef attributes[] = {{"__doc__", get_doc, nullptr, nullptr, nullptr},
                            {"__name__", get_name, nullptr, nullptr, nullptr},
                            {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
                            {"__module__", get_module, nullptr, nullptr, nullptr},
                            {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {}};

PyTypeObject function_type = [] {
  PyTypeObject t = {PyVarObject_HEAD_INIT(nullptr, 0)};
  t.tp_name = "teletensor._C.OverridableFunction";
  t.tp_basicsize = sizeof(FunctionObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
  t.tp_vectorcall_offset = offsetof(FunctionObject, vectorcall);
  t.tp_call = PyVectorcall_Call;
  t.tp_dealloc = dealloc;
  t.tp_traverse = visit;
  t.tp_clear = clear;
  t.tp_repr = representation;
  t.tp_getattro = get_attribute;
  t.tp_setattro = PyObject_GenericSetAttr;
  t.tp_descr_get = bind;
  t.tp_methods = methods;
  t.tp_members = members;
  t.tp_getset = attributes;
  t.tp_dictoffset = offsetof(FunctionObject, dict);
  t.tp_weaklistoffset = offsetof(FunctionObject, weak_references);
  return t;
}();

PyObject* make(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"function", "module", "qualname", "only_modes", "passed", "autocast", "form", nullptr};
  PyObject *function = nullptr, *module = nullptr, *qualname = nullptr, *passed = nullptr, *autocast = nullptr,
           *form = nullptr;
  int only_modes = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OUU|pOOO", const_cast<char**>(names), &function, &module, &qualname,
                                   &only_modes, &passed, &autocast, &form)) {
    return nullptr;
  }
  auto* self = PyObject_GC_New(FunctionObject, &function_type);
  if (!self) return nullptr;
  self->vectorcall = call;
  self->function = Py_NewRef(function);
  self->passed = passed && passed != Py_None ? Py_NewRef(passed) : nullptr;
  self->autocast = autocast && autocast != Py_None ? Py_NewRef(autocast) : nullptr;
  self->form = form && form != Py_None ? Py_NewRef(form) : nullptr;
  self->module = Py_NewRef(module);
  self->qualname = Py_NewRef(qualname);
  self->dict = self->weak_references = nullptr;
  self->only_modes = only_modes != 0;
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject*>(self);
}

PyObject* set_autocast_caller(PyObject*, PyObject* function) {
  Py_XSETREF(autocast_caller, Py_NewRef(function));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"set_autocast_caller", set_autocast_caller, METH_O,
     "set_autocast_caller(function): sets what calls functions with `autocast` while autocast is enabled."},
    {"overridable", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&make)), METH_VARARGS | METH_KEYWORDS,
     "overridable(function, module, qualname, only_modes=False, passed=None, autocast=None, form=None): the function "
     "with __torch_function__ honoured.\n\n"
     "Handlers receive `passed`, by default the result of this call. `autocast`: see _autocast_lists.policies. `form` "
     "receives the arguments of a call that is overridden, and returns those that handlers receive: a tuple and a "
     "dict."},
    {}};

}  // namespace

bool init_overridable(PyObject* module) {
  return PyType_Ready(&function_type) == 0 && PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddType(module, &function_type) == 0;
}

}  // namespace tt::python
