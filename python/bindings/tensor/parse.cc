#include "python/bindings/tensor/parse.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "engine/schema/op_ids.h"
#include "python/bindings/tensor/convert.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/read.h"
#include "python/bindings/tensor/symbolic_int.h"
#include "python/bindings/tensor/torch_dispatch.h"
#include "python/bindings/tensor/torch_function.h"
#include "python/bindings/tensor/types.h"

namespace tt::python {
namespace {

// Whether the operator creates a tensor: it has a device parameter.
bool creates_tensor(const Op& op) {
  return absl::c_any_of(op.params, [](const Param& p) { return p.type == ParamType::kDevice; });
}

// Whether the operator's function has PyTorch's keyword `memory_format`.
bool takes_memory_format(const Op& op) {
  return op.id == op_id::kClone || op.id == op_id::kContiguous || creates_tensor(op);
}

// The format that the results are copied to: none if torch.preserve_format stands for the operator's own choice. A copy
// in it is checked by in_format(). Throws Error (RuntimeError) if there is no tensor whose format could be preserved.
MemoryFormat requested_format(const Op& op, MemoryFormat format) {
  if (format != MemoryFormat::kPreserve || op.id == op_id::kContiguous) return format;
  check(!op.params.empty() && op.params[0].type == ParamType::kTensor, "unsupported memory format Preserve");
  return MemoryFormat::kNone;
}

// Returns true for keywords of PyTorch's functions that have no effect here: the default layout or the pinning of the
// result, and `generator=None`. `generator=` of random functions is implemented in Python
// (_generator.py).
bool is_ignored_keyword(const Op& op, std::string_view name, PyObject* value) {
  if (name == "generator") return op.is_random && value == Py_None;
  if (!creates_tensor(op)) return false;
  if (name == "layout") {
    return value == Py_None ||
           (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, "torch.strided") == 0);
  }
  return name == "pin_memory" && (value == Py_None || PyBool_Check(value));
}

// Returns the index of the parameter that a keyword names: by its own name, else by a name that PyTorch also accepts:
// NumPy's names, and several names of the first tensor. Returns the number of parameters if there is none.
size_t parameter_index(const Op& op, std::string_view name) {
  auto find = [&](std::string_view own) {
    size_t i = 0;
    while (i < op.params.size() && op.params[i].name != own) ++i;
    return i;
  };
  if (const size_t i = find(name); i < op.params.size()) return i;
  if (name == "axis") return find("dim");
  if (name == "keepdims") return find("keepdim");
  if (name == "x2") return find("other");
  if (name == "from") return find("from_");
  const bool names_first =
      name == "input" || name == "self" || name == "x" || name == "x1" || name == "a" || name == "A";
  return names_first && !op.params.empty() && op.params[0].type == ParamType::kTensor ? 0 : op.params.size();
}

bool is_number_object(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || PyNumber_Check(o);
}

// Like plain_number, but also accepts a one-element tensor, whose value is read from the engine.
bool number_from(PyObject* o, Arg* out) {
  if (!is_tensor(o)) return argument_number(o, out);
  if (handle_of(o)->numel() != 1) return false;
  return *out = Arg(tensor_number(o)), true;
}

template <typename... Parts>
std::string text(const Parts&... parts) {
  return absl::StrCat(message_part(parts)...);
}

class Binder {
 public:
  Binder(const Op& op, const PythonCall& call, ParsedArgs* out, std::string* why, bool strict)
      : op_(op), call_(call), out_(out), why_(why), strict_(strict) {}

  bool bind() {
    out_->args.resize(op_.params.size());
    filled_.assign(op_.params.size(), false);
    return bind_positional() && bind_keywords() && fill_defaults();
  }

 private:
  bool refuse(std::string reason) {
    *why_ = std::move(reason);
    return false;
  }

  // Whether the parameter is an int[] that takes all remaining positional arguments: zeros(2, 3), x.view(2, -1).
  bool is_variadic(size_t i) const { return op_.params[i].variadic; }

  // Whether the object is an int, another library's or a tensor's; not an array. Python makes Tensor a sequence when a
  // program replaces its __getitem__.
  static bool is_index(PyObject* o) {
    return PyLong_Check(o) || (PyIndex_Check(o) && (is_tensor(o) || !PySequence_Check(o)));
  }

  bool bind_positional() {
    Py_ssize_t total = call_.count + (call_.self ? 1 : 0);
    size_t param = 0;
    for (Py_ssize_t i = 0; i < total; ++i, ++param) {
      PyObject* value = call_.self ? (i == 0 ? call_.self : call_.args[i - 1]) : call_.args[i];
      if (param >= op_.params.size() || op_.params[param].keyword_only) {
        return refuse(absl::StrCat("takes ", param, " positional arguments but ", total, " were given"));
      }
      if (is_variadic(param) && is_index(value)) {
        auto& list = out_->ints.emplace_back();
        for (; i < total; ++i) {
          PyObject* item = call_.self ? call_.args[i - 1] : call_.args[i];
          if (!PyIndex_Check(item) || is_bool(item) || is_foreign(item)) {
            return refuse(type_error(op_.params[param], item));
          }
          if (!unpack(
                  op_.params[param], [&] { return list.push_back(argument_int(item)), true; }, &list))
            return false;
        }
        out_->args[param] = Arg(absl::Span<const int64_t>(list));
        filled_[param] = true;
        return true;
      }
      if (!set(param, value)) return false;
    }
    return true;
  }

  bool bind_keywords() {
    if (!call_.keywords) return true;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call_.keywords); ++k) {
      PyObject* value = call_.args[call_.count + k];
      Py_ssize_t length = 0;
      const char* keyword = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(call_.keywords, k), &length);
      if (!keyword) throw PythonErrorSet();
      const std::string_view name(keyword, static_cast<size_t>(length));
      const size_t i = parameter_index(op_, name);
      if (i < op_.params.size()) {
        if (filled_[i]) return refuse(text("got multiple values for argument '", name, "'"));
        if (!set(i, value)) return false;
      } else if (name == "out") {
        if (!set_out(value)) return false;
      } else if (name == "requires_grad") {
        value = decided(value);
        if (!PyBool_Check(value) && value != Py_None) {
          return refuse(text("argument 'requires_grad' must be bool, not ", Py_TYPE(value)->tp_name));
        }
        out_->requires_grad = value == Py_True;
      } else if (name == "memory_format" && takes_memory_format(op_) &&
                 memory_format_from(value, &out_->memory_format)) {
        out_->memory_format = requested_format(op_, out_->memory_format);
      } else if (!is_ignored_keyword(op_, name, value) || (name == "layout" && value != Py_None && is_of_wrapper())) {
        return refuse(text("got an unexpected keyword argument '", name, "'"));
      }
    }
    return true;
  }

  bool fill_defaults() {
    for (size_t i = 0; i < op_.params.size(); ++i) {
      const Param& p = op_.params[i];
      if (p.type == ParamType::kDevice && p.optional && out_->args[i].is_none() && !out_->any_session()) {
        set_default_device(&out_->args[i]);
        continue;
      }
      if (filled_[i]) continue;
      if (p.has_default) {
        out_->args[i] = p.default_value;
      } else if (!p.optional) {
        return refuse(text("missing required argument '", p.name, "'"));
      }
    }
    return true;
  }

  // Sets the default device if no tensor and no device was given. Without a device argument the engine uses the CPU.
  static void set_default_device(Arg* arg) {
    if (const Device device = default_device(); device != Device{}) *arg = Arg(checked_device(device, nullptr));
  }

  // Whether the first argument is a tensor of a wrapper subclass, whose layout may be another one than a strided
  // result's.
  bool is_of_wrapper() const {
    return !out_->args.empty() && out_->args[0].kind == Arg::Kind::kTensor && is_wrapper(out_->args[0].tensor);
  }

  bool set_out(PyObject* value) {
    if (value == Py_None) return true;
    if (is_tensor(value)) return push_out(value), true;
    const bool is_list = PyList_Check(value) && op_.num_outputs != 1;
    if (!PyTuple_Check(value) && !is_list) return refuse("out must be a Tensor or a tuple of Tensors");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(value, i);
      if (!is_tensor(item)) return refuse("out must be a Tensor or a tuple of Tensors");
      push_out(item);
    }
    return true;
  }
  void push_out(PyObject* tensor) {
    if (!is_plain_tensor(tensor)) note_overridable(tensor);
    out_->into.push_back(handle_of(tensor));
  }

  static std::string_view type_text(const Param& p) {
    switch (p.type) {
      case ParamType::kTensor: return "Tensor";
      case ParamType::kTensors: return "tuple of Tensors";
      case ParamType::kScalar: return "Number";
      case ParamType::kInt: return "int";
      case ParamType::kFloat: return "float";
      case ParamType::kBool: return "bool";
      case ParamType::kInts: return "tuple of ints";
      case ParamType::kFloats: return "tuple of floats";
      case ParamType::kString: return "str";
      case ParamType::kDType: return "teletensor.dtype";
      case ParamType::kDevice: return "teletensor.device";
    }
    return "?";
  }
  std::string type_error(const Param& p, PyObject* value) const {
    return text("argument '", p.name, "' must be ", type_text(p), ", not ", Py_TYPE(value)->tp_name);
  }

  // Accepts a tensor as an argument; returns false for other objects.
  bool take(PyObject* o) {
    if (!is_plain_tensor(o)) [[unlikely]] {
      if (!is_tensor(o)) return false;
      note_overridable(o);
    } else if (!out_->session && !out_->overridable_session) {
      out_->session = handle_of(o)->session.get();
    }
    return true;
  }
  void note_overridable(PyObject* tensor) {
    if (!out_->any_session()) out_->session = handle_of(tensor)->session.get();
    if (out_->session) out_->overridable_session = std::exchange(out_->session, nullptr);
  }

  bool set(size_t i, PyObject* value) {
    const Param& p = op_.params[i];
    filled_[i] = true;
    Arg& arg = out_->args[i];
    if (p.type == ParamType::kTensor) [[likely]] {
      if (take(value)) {
        arg = Arg(static_cast<const TensorMeta*>(handle_of(value).get()));
        return true;
      }
    }
    value = decided(value);
    if (p.type == ParamType::kTensor) [[likely]] {
      if (value == Py_None && p.optional) return true;
      if (p.accepts_number && is_number_object(value) && number_from(value, &arg)) return true;
      return refuse(type_error(p, value));
    }
    if (value == Py_None) {
      if (p.optional) return true;
      // PyTorch's parser writes an empty default as None.
      if (p.type == ParamType::kInts && p.has_default && p.default_value.size == 0) return arg = p.default_value, true;
      return refuse(type_error(p, value));
    }
    return set_plain(p, value, &arg) || (why_->empty() && refuse(type_error(p, value)));
  }

  bool set_plain(const Param& p, PyObject* value, Arg* arg) {
    if ((strict_ && is_tensor(value)) || (!is_tensor(value) && is_foreign(value))) return false;
    switch (p.type) {
      case ParamType::kTensor: return false;
      case ParamType::kTensors: return set_list(p, value, arg);
      case ParamType::kScalar: return is_number_object(value) && number_from(value, arg);
      case ParamType::kFloat:
        if (is_recorded_number(value)) return *arg = Arg(recorded_double(value)), true;
        if (is_symbolic(value)) return plain_number(value, arg) && (*arg = Arg(arg->to_double()), true);
        if (PyLong_CheckExact(value)) return *arg = Arg(double_from(value)), true;
        return is_number_object(value) && number_from(value, arg) && arg->is_real_number() &&
               (*arg = Arg(arg->to_double()), true);
      case ParamType::kInt:
        if (PyLong_CheckExact(value)) [[likely]]
          return *arg = Arg(int_from(value)), true;
        return !PyFloat_Check(value) && !PyBool_Check(value) && is_number_object(value) && number_from(value, arg) &&
               arg->kind < Arg::Kind::kFloat &&
               (*arg = Arg(arg->scalar().is_beyond_int() ? (fail_beyond_64_bits(), 0) : arg->integer), true);
      case ParamType::kBool:
        return (PyBool_Check(value) || ((PyLong_Check(value) || is_recorded_size(value)) && !strict_)) &&
               (*arg = Arg(is_true(value)), true);
      case ParamType::kInts: return set_ints(p, value, arg);
      case ParamType::kFloats: return set_floats(p, value, arg);
      case ParamType::kString: return set_string(value, arg);
      case ParamType::kDType: return *arg = Arg(dtype_from(value)), true;
      case ParamType::kDevice: *arg = Arg(checked_device(device_from(value), out_->any_session())); return true;
    }
    return false;
  }

  static bool is_true(PyObject* value) {
    const int outcome = PyObject_IsTrue(value);
    if (outcome < 0) throw PythonErrorSet();
    return outcome == 1;
  }

  static double double_from(PyObject* value) {
    const double v = PyLong_AsDouble(value);
    if (v == -1 && PyErr_Occurred()) throw PythonErrorSet();
    return v;
  }

  bool set_list(const Param& p, PyObject* value, Arg* arg) {
    // Rejects tensors, which are sequences too, and one-shot iterators, which cannot be parsed twice.
    if (is_tensor(value) || !PySequence_Check(value)) return false;
    PyObject* items = out_->owners.emplace_back(throw_if_null(PySequence_Tuple(value))).get();
    auto& list = out_->lists.emplace_back();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) {
      PyObject* item = PyTuple_GET_ITEM(items, i);
      if (take(item)) {
        list.push_back(handle_of(item).get());
      } else if (item == Py_None && p.optional_entries) {
        list.push_back(nullptr);
      } else {
        return false;
      }
    }
    *arg = Arg(absl::Span<const TensorMeta* const>(list));
    return true;
  }

  // Whether an object is a bool, or a tuple or list that contains one: not accepted for ints, although a bool is an
  // int.
  static bool has_bool(PyObject* value) {
    if (!PyTuple_Check(value) && !PyList_Check(value)) return is_bool(value);
    PyObject** items = PySequence_Fast_ITEMS(value);
    return std::any_of(items, items + PySequence_Fast_GET_SIZE(value), [](PyObject* item) { return is_bool(item); });
  }

  bool set_ints(const Param& p, PyObject* value, Arg* arg) {
    if (has_bool(value)) return false;
    auto& list = out_->ints.emplace_back();
    // NumPy's integers have an index, too.
    const bool is_int = is_index(value) && !is_tensor(value);
    if (is_int && p.list_size > 0) {
      list.assign(static_cast<size_t>(p.list_size), argument_int(value));
    } else if (p.list_size > 0 && is_tensor(value) && handle_of(value)->dim() == 0 &&
               category(handle_of(value)->dtype) == Category::kInteger) {
      list.assign(static_cast<size_t>(p.list_size), tensor_number(value).to_int());
    } else if (!unpack(
                   p, [&] { return ints_from(value, &list, /*for_call=*/true); }, &list)) {
      return false;
    } else if (p.list_size > 1 && list.size() == 1) {  // (3,) means 3x3, as in PyTorch
      list.resize(static_cast<size_t>(p.list_size), list[0]);
    }
    *arg = Arg(absl::Span<const int64_t>(list));
    return true;
  }

  // Calls the function, which appends ints to the list; refuses one beyond 64 bits.
  template <typename Function>
  bool unpack(const Param& p, Function&& append, absl::InlinedVector<int64_t, 6>* list) {
    try {
      return append();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kValue) throw;
      return refuse(text("argument '", p.name, "' failed to unpack the object at pos ", list->size() + 1,
                         " with error \"", e.message(), "\""));
    }
  }

  bool set_floats(const Param& p, PyObject* value, Arg* arg) {
    auto& list = out_->floats.emplace_back();
    if (PyNumber_Check(value) && !PySequence_Check(value)) {
      double v = PyFloat_AsDouble(value);
      if (v == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
      list.assign(p.list_size > 0 ? static_cast<size_t>(p.list_size) : 1, v);
    } else {
      if (!PySequence_Check(value)) return false;
      Owned items(throw_if_null(PySequence_Tuple(value)));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
        double v = PyFloat_AsDouble(PyTuple_GET_ITEM(items.get(), i));
        if (v == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
        list.push_back(v);
      }
    }
    *arg = Arg(absl::Span<const double>(list));
    return true;
  }

  static bool set_string(PyObject* value, Arg* arg) {
    if (PyBytes_Check(value)) {
      *arg = Arg(std::string_view(PyBytes_AS_STRING(value), static_cast<size_t>(PyBytes_GET_SIZE(value))));
      return true;
    }
    if (!PyUnicode_Check(value)) return false;
    Py_ssize_t length = 0;
    const char* characters = PyUnicode_AsUTF8AndSize(value, &length);
    if (!characters) throw PythonErrorSet();
    *arg = Arg(std::string_view(characters, static_cast<size_t>(length)));
    return true;
  }

  const Op& op_;
  const PythonCall& call_;
  ParsedArgs* out_;
  std::string* why_;
  bool strict_;
  absl::InlinedVector<bool, 12> filled_;
};

}  // namespace

void fail_beyond_64_bits() {
  fail(ErrorKind::kValue, "Overflow when unpacking long long, got a number beyond 64 bits");
}

Scalar tensor_number(PyObject* o) {
  if (!is_wrapper(handle_of(o).get())) return read_scalar(handle_of(o));
  Owned value(throw_if_null(PyObject_CallMethod(o, "item", nullptr)));
  Arg number;
  check(ErrorKind::kType, plain_number(value.get(), &number), "expected item() to return a number, got ",
        Py_TYPE(value.get())->tp_name);
  return number.scalar();
}

bool plain_number(PyObject* o, Arg* out) {
  if (PyBool_Check(o)) return *out = Arg(o == Py_True), true;
  if (PyFloat_Check(o)) return *out = Arg(PyFloat_AS_DOUBLE(o)), true;
  if (PyLong_Check(o)) {
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return *out = Arg(static_cast<int64_t>(v)), true;
    const unsigned long long beyond = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred()) throw PythonErrorSet();
    return *out = Arg(Scalar::of_unsigned(beyond)), true;
  }
  if (PyComplex_Check(o)) {  // includes NumPy's complex128
    return *out = Arg(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o))), true;
  }
  if (is_symbolic_bool(o)) [[unlikely]]
    return *out = Arg(decided(o) == Py_True), true;
  if (PySequence_Check(o) || is_foreign(o)) return false;
  if (PyIndex_Check(o)) {  // NumPy's integers
    Owned index(throw_if_null(PyNumber_Index(o)));
    return plain_number(index.get(), out);
  }
  // NumPy's complex64 has a __float__ too, which drops the imaginary part.
  const bool is_complex = PyObject_HasAttrString(o, "__complex__") &&
                          (!PyObject_HasAttrString(o, "__float__") || buffer_dtype(o) == DType::kComplex64);
  if (is_complex) {
    const Py_complex value = PyComplex_AsCComplex(o);
    if (value.real == -1 && PyErr_Occurred()) throw PythonErrorSet();
    return *out = Arg(std::complex<double>(value.real, value.imag)), true;
  }
  if (!PyNumber_Check(o) || !Py_TYPE(o)->tp_as_number->nb_float) return false;
  Owned value(throw_if_null(PyNumber_Float(o)));
  return *out = Arg(PyFloat_AS_DOUBLE(value.get())), true;
}

bool argument_number(PyObject* o, Arg* out) {
  if (is_symbolic(o)) [[unlikely]]
    return *out = Arg(marked_int(o)), true;
  if (is_recorded_number(o)) [[unlikely]]
    return *out = is_recorded_size(o) ? Arg(argument_int(o)) : Arg(recorded_double(o)), true;
  return plain_number(o, out);
}

int64_t argument_int(PyObject* o) {
  if (PyLong_CheckExact(o)) [[likely]]
    return int_from(o);
  return is_symbolic(o) ? marked_int(o) : int_from(Owned(peeked(o)).get());
}

bool ints_from(PyObject* o, absl::InlinedVector<int64_t, 6>* out, bool for_call) {
  if (is_tensor(o) || PyUnicode_Check(o)) return false;
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    if (!PySequence_Check(o)) return false;
  }
  Owned items(throw_if_null(PySequence_Tuple(o)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    if (is_tensor(item)) {
      const auto& tensor = handle_of(item);
      if (tensor->numel() != 1 || category(tensor->dtype) != Category::kInteger) return false;
      out->push_back(tensor_number(item).to_int());
      continue;
    }
    if (!PyIndex_Check(item) || is_foreign(item)) return false;
    out->push_back(for_call ? argument_int(item) : int_from(item));
  }
  return true;
}

int64_t int_from(PyObject* o) {
  int overflow = 0;
  if (PyLong_CheckExact(o)) [[likely]] {
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) fail_beyond_64_bits();
    return v;
  }
  Owned index(throw_if_null(PyNumber_Index(o)));
  const long long v = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (v == -1 && !overflow && PyErr_Occurred()) throw PythonErrorSet();
  if (overflow) fail_beyond_64_bits();
  return v;
}

bool parse(const Op& op, const PythonCall& call, ParsedArgs* out, std::string* why, bool strict) {
  return Binder(op, call, out, why, strict).bind();
}

}  // namespace tt::python
