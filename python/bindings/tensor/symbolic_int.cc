#include "python/bindings/tensor/symbolic_int.h"

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/types.h"

namespace tt::python {
namespace {

using client::SizeRequirement;
using Number = client::ProgramTrace::Number;
using Relation = SizeRequirement::Relation;
using Kind = SizeTerm::Kind;

struct SymbolicInt {
  PyObject_HEAD;
  Number number;
};

PyTypeObject* symbolic_type = nullptr;
// A function of an operator's sign and its operands that returns a SymFloat; null until the package has set it.
PyObject* float_maker = nullptr;
// SymBool, whose method `of` returns the comparison of an operator's sign and its operands; null until the package has
// set it.
PyObject* bool_type = nullptr;
// RecordedSize, whose attribute `_value` is an int, and RecordedFloat; null until the package has set them.
PyObject* recorded_size_type = nullptr;
PyObject* recorded_float_type = nullptr;

const Number& number_of(PyObject* o) { return reinterpret_cast<SymbolicInt*>(o)->number; }

void deallocate(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  reinterpret_cast<SymbolicInt*>(o)->number.~Number();
  type->tp_free(o);
  Py_DECREF(type);
}

// The object as a plain Python object: a SymInt becomes an int, which runs must have.
PyObject* plain(PyObject* o) {
  return throw_if_null(is_symbolic(o) ? PyLong_FromLongLong(number_of(o).constant()) : Py_NewRef(o));
}

// The number of a SymInt or of an int of 64 bits.
std::optional<Number> integer(PyObject* o) {
  if (is_symbolic(o)) return number_of(o);
  if (!PyLong_Check(o)) return std::nullopt;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  return overflow != 0 ? std::nullopt : std::optional<Number>(Number(value));
}

bool is_number(PyObject* o) { return PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) || is_symbolic(o); }

using Binary = PyObject* (*)(PyObject*, PyObject*);

// The operator of Python's numbers. For other objects, such as tensors and lists, their own.
template <Binary python>
PyObject* of_ints(PyObject* a, PyObject* b) noexcept {
  return guard([&]() -> PyObject* {
    if (!is_number(a) || !is_number(b)) Py_RETURN_NOTIMPLEMENTED;
    const Owned left(plain(a)), right(plain(b));
    return python(left.get(), right.get());
  });
}

// The SymFloat of an operation of which an operand is a SymInt of a Program's trace; null if the result is a plain
// number.
PyObject* symbolic_float(const char* sign, PyObject* a, PyObject* b) {
  const auto is_sized = [](PyObject* o) { return is_symbolic(o) && number_of(o).is_of_program(); };
  const auto is_real = [](PyObject* o) { return PyFloat_Check(o) || PyLong_Check(o) || is_symbolic(o); };
  if (float_maker == nullptr || !is_real(a) || !is_real(b) || !(is_sized(a) || is_sized(b))) return nullptr;
  return throw_if_null(PyObject_CallFunction(float_maker, "sOO", sign, a, b));
}

const char* sign_of(Kind kind) {
  return kind == Kind::kAdd ? "+" : kind == Kind::kSubtract ? "-" : kind == Kind::kMultiply ? "*" : nullptr;
}

PyObject* true_divided(PyObject* a, PyObject* b) noexcept {
  return guard([&] {
    PyObject* const made = symbolic_float("/", a, b);
    return made != nullptr ? made : of_ints<PyNumber_TrueDivide>(a, b);
  });
}

PyObject* set_float_maker(PyObject*, PyObject* maker) {
  Py_XSETREF(float_maker, Py_NewRef(maker));
  Py_RETURN_NONE;
}

PyObject* peek(PyObject*, PyObject* o) noexcept {
  return guard([&] {
    check(ErrorKind::kType, is_symbolic(o), "expected a SymInt, got ", Py_TYPE(o)->tp_name);
    return throw_if_null(PyLong_FromLongLong(number_of(o).value()));
  });
}

template <Kind kind, Binary python>
PyObject* combined(PyObject* a, PyObject* b) noexcept {
  return guard([&] {
    const std::optional<Number> left = integer(a), right = integer(b);
    const bool divides = kind == Kind::kFloorDivide || kind == Kind::kModulo;
    if (const char* const sign = sign_of(kind); sign != nullptr && (PyFloat_Check(a) || PyFloat_Check(b))) {
      if (PyObject* const made = symbolic_float(sign, a, b)) return made;
    }
    if (!left || !right || (divides && right->value() == 0)) return of_ints<python>(a, b);
    std::optional<Number> result;
    try {
      result = Number::combine(kind, *left, *right);
    } catch (const Error&) {  // beyond 64 bits
      return of_ints<python>(a, b);
    }
    return number_object(*result);
  });
}

template <Kind kind>
PyObject* extremum(PyObject* self, PyObject* other) noexcept {
  return guard([&]() -> PyObject* {
    const std::optional<Number> right = integer(other);
    check(ErrorKind::kType, right.has_value(), "expected an int, got ", Py_TYPE(other)->tp_name);
    return number_object(Number::combine(kind, number_of(self), *right));
  });
}

PyObject* zero() {
  static PyObject* const number = PyLong_FromLong(0);
  return number;
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return guard([&]() -> PyObject* {
    if (!is_number(a) || !is_number(b)) Py_RETURN_NOTIMPLEMENTED;
    const bool is_root = PyFloat_Check(b) || (PyLong_Check(b) && PyObject_RichCompareBool(b, zero(), Py_LT) == 1);
    if (modulus == Py_None && (is_root || PyFloat_Check(a))) {
      if (PyObject* const made = symbolic_float("**", a, b)) return made;
    }
    const Owned base(plain(a)), exponent(plain(b)), by(plain(modulus));
    return PyNumber_Power(base.get(), exponent.get(), by.get());
  });
}

PyObject* negative(PyObject* o) noexcept {
  return guard([&] { return number_object(Number::combine(Kind::kSubtract, Number(0), number_of(o))); });
}

PyObject* absolute(PyObject* o) noexcept {
  return guard([&] {
    return number_object(
        Number::combine(Kind::kMaximum, number_of(o), Number::combine(Kind::kSubtract, Number(0), number_of(o))));
  });
}

PyObject* same(PyObject* o, PyObject*) { return Py_NewRef(o); }
PyObject* positive(PyObject* o) { return Py_NewRef(o); }

template <PyObject* (*python)(PyObject*)>
PyObject* of_int(PyObject* o) noexcept {
  return guard([&] {
    const Owned value(plain(o));
    return python(value.get());
  });
}

int is_true(PyObject* o) noexcept {
  return guard([&] { return Number::compare(Relation::kEqual, number_of(o), Number(0)) ? 0 : 1; }, -1);
}

PyObject* to_plain(PyObject* o) noexcept {
  return guard([&] { return plain(o); });
}

// The outcome of a comparison of two numbers, which runs must have.
bool outcome(int op, const Number& a, const Number& b) {
  switch (op) {
    case Py_EQ: return Number::compare(Relation::kEqual, a, b);
    case Py_NE: return !Number::compare(Relation::kEqual, a, b);
    case Py_LT: return Number::compare(Relation::kLess, a, b);
    case Py_LE: return Number::compare(Relation::kLessEqual, a, b);
    case Py_GT: return !Number::compare(Relation::kLessEqual, a, b);
    default: return !Number::compare(Relation::kLess, a, b);
  }
}

constexpr std::array<const char*, 6> kSigns = {
    "<", "<=", "==", "!=", ">", ">="};  // by Python's numbers of the relations

PyObject* compare(PyObject* self, PyObject* other, int op) noexcept {
  return guard([&]() -> PyObject* {
    const std::optional<Number> right = integer(other);
    if (bool_type != nullptr && (right || PyFloat_Check(other)) && number_of(self).is_of_program()) {
      return throw_if_null(
          PyObject_CallMethod(bool_type, "of", "sOO", kSigns.at(static_cast<size_t>(op)), self, other));
    }
    if (!right) {
      const bool is_of_float = PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(other)), "compared") == 1;
      if (!PyNumber_Check(other) || is_tensor(other) || is_of_float) Py_RETURN_NOTIMPLEMENTED;  // None, or a SymFloat
      const Owned value(plain(self));
      return PyObject_RichCompare(value.get(), other, op);
    }
    return PyBool_FromLong(outcome(op, number_of(self), *right));
  });
}

PyObject* decide(PyObject*, PyObject* args) noexcept {
  return guard([&]() -> PyObject* {
    const char* sign = nullptr;
    PyObject *a = nullptr, *b = nullptr;
    if (PyArg_ParseTuple(args, "sOO", &sign, &a, &b) == 0) throw PythonErrorSet();
    const std::optional<Number> left = integer(a), right = integer(b);
    const auto found = std::find(kSigns.begin(), kSigns.end(), std::string_view(sign));
    check(ErrorKind::kType, left && right && found != kSigns.end(), "expected a relation and two ints");
    return PyBool_FromLong(outcome(static_cast<int>(found - kSigns.begin()), *left, *right));
  });
}

PyObject* set_bool_type(PyObject*, PyObject* type) {
  Py_XSETREF(bool_type, Py_NewRef(type));
  Py_RETURN_NONE;
}

PyObject* set_recorded_types(PyObject*, PyObject* args) {
  PyObject *size = nullptr, *number = nullptr;
  if (!PyArg_ParseTuple(args, "OO:set_recorded_types", &size, &number)) return nullptr;
  Py_XSETREF(recorded_size_type, Py_NewRef(size));
  Py_XSETREF(recorded_float_type, Py_NewRef(number));
  Py_RETURN_NONE;
}

Py_hash_t hash(PyObject* o) noexcept {
  return guard([&] { return PyObject_Hash(Owned(plain(o)).get()); }, Py_hash_t{-1});
}

// Attributes of int, such as bit_length, are those of the plain number.
PyObject* attribute(PyObject* o, PyObject* name) noexcept {
  PyObject* const own = PyObject_GenericGetAttr(o, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  if (PyObject_HasAttr(reinterpret_cast<PyObject*>(&PyLong_Type), name) == 0) return PyObject_GenericGetAttr(o, name);
  return guard([&] { return PyObject_GetAttr(Owned(plain(o)).get(), name); });
}

PyObject* format(PyObject* o, PyObject* spec) noexcept {
  return guard([&] { return PyObject_Format(Owned(plain(o)).get(), spec); });
}

PyObject* rounded(PyObject* o, PyObject* args) noexcept {
  if (PyTuple_GET_SIZE(args) == 0) return Py_NewRef(o);
  return guard([&] {
    const Owned value(plain(o)), method(throw_if_null(PyObject_GetAttrString(value.get(), "__round__")));
    return PyObject_CallObject(method.get(), args);
  });
}

PyObject* reduce(PyObject* o, PyObject*) noexcept {
  return guard([&] { return Py_BuildValue("O(N)", &PyLong_Type, plain(o)); });
}

// Adds ComputedInt. A class statement cannot make it, because objects of its bases have different layouts; it has none.
bool add_computed_int(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A subclass of int and SymInt without instances: the __class__ of numbers that "
                                    "isinstance() accepts as both, and C code as neither.")},
      {0, nullptr}};
  PyType_Spec spec{"teletensor.ComputedInt", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  const Owned made(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&PyLong_Type)));
  if (!made) return false;
  auto* const type = reinterpret_cast<PyTypeObject*>(made.get());
  PyObject* const order = PyTuple_Pack(4, type, &PyLong_Type, symbolic_type, &PyBaseObject_Type);
  if (order == nullptr) return false;
  Py_SETREF(type->tp_mro, order);
  PyType_Modified(type);
  return PyModule_AddType(module, type) == 0;
}

}  // namespace

bool is_symbolic(PyObject* o) { return Py_TYPE(o) == symbolic_type; }

bool is_symbolic_bool(PyObject* o) { return reinterpret_cast<PyObject*>(Py_TYPE(o)) == bool_type; }

PyObject* decided(PyObject* o) {
  if (!is_symbolic_bool(o)) [[likely]]
    return o;
  const int outcome = PyObject_IsTrue(o);
  if (outcome < 0) throw PythonErrorSet();
  return outcome == 1 ? Py_True : Py_False;
}

bool is_bool(PyObject* o) { return PyBool_Check(o) || is_symbolic_bool(o); }

int64_t marked_int(PyObject* o) { return number_of(o).mark(); }

bool is_recorded_size(PyObject* o) { return reinterpret_cast<PyObject*>(Py_TYPE(o)) == recorded_size_type; }

bool is_recorded_number(PyObject* o) {
  return is_recorded_size(o) || reinterpret_cast<PyObject*>(Py_TYPE(o)) == recorded_float_type;
}

double recorded_double(PyObject* o) {
  const Owned value(throw_if_null(PyObject_GetAttrString(o, "_float_argument")));
  const double number = PyFloat_AsDouble(value.get());
  if (number == -1 && PyErr_Occurred()) throw PythonErrorSet();
  return number;
}

PyObject* peeked(PyObject* o) {
  return is_recorded_size(o) ? throw_if_null(PyObject_GetAttrString(o, "_value")) : Py_NewRef(o);
}

PyObject* number_object(const Number& number) {
  if (number.is_constant()) return throw_if_null(PyLong_FromLongLong(number.value()));
  auto* const self = reinterpret_cast<SymbolicInt*>(throw_if_null(symbolic_type->tp_alloc(symbolic_type, 0)));
  new (&self->number) Number(number);
  return reinterpret_cast<PyObject*>(self);
}

PyObject* traced_shape(client::ProgramTrace& trace, const client::Handle& tensor) {
  Owned tuple(throw_if_null(PyTuple_New(static_cast<Py_ssize_t>(tensor.sizes.size()))));
  for (size_t dim = 0; dim < tensor.sizes.size(); ++dim) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(dim), number_object(trace.size_of(tensor, dim)));
  }
  return throw_if_null(PyObject_CallOneArg(size_class(), tuple.get()));
}

PyObject* traced_numel(client::ProgramTrace& trace, const client::Handle& tensor) {
  Number product(1);
  for (size_t dim = 0; dim < tensor.sizes.size(); ++dim) {
    product = Number::combine(Kind::kMultiply, product, trace.size_of(tensor, dim));
  }
  return number_object(product);
}

bool init_symbolic_int(PyObject* module) {
  static PyMethodDef methods[] = {
      {"__format__", format, METH_O, nullptr},
      {"__reduce__", reduce, METH_NOARGS, nullptr},
      {"__trunc__", same, METH_NOARGS, nullptr},
      {"__floor__", same, METH_NOARGS, nullptr},
      {"__ceil__", same, METH_NOARGS, nullptr},
      {"__round__", rounded, METH_VARARGS, nullptr},
      {"__copy__", same, METH_NOARGS, nullptr},
      {"__deepcopy__", same, METH_O, nullptr},
      {"__sym_max__", extremum<Kind::kMaximum>, METH_O, "The larger of this number and an int or a SymInt."},
      {"__sym_min__", extremum<Kind::kMinimum>, METH_O, "The smaller of this number and an int or a SymInt."},
      {}};
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
      {Py_tp_methods, methods},
      {Py_tp_getattro, reinterpret_cast<void*>(attribute)},
      {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
      {Py_tp_hash, reinterpret_cast<void*>(hash)},
      {Py_tp_repr, reinterpret_cast<void*>(of_int<PyObject_Repr>)},
      {Py_nb_add, reinterpret_cast<void*>(combined<Kind::kAdd, PyNumber_Add>)},
      {Py_nb_subtract, reinterpret_cast<void*>(combined<Kind::kSubtract, PyNumber_Subtract>)},
      {Py_nb_multiply, reinterpret_cast<void*>(combined<Kind::kMultiply, PyNumber_Multiply>)},
      {Py_nb_floor_divide, reinterpret_cast<void*>(combined<Kind::kFloorDivide, PyNumber_FloorDivide>)},
      {Py_nb_remainder, reinterpret_cast<void*>(combined<Kind::kModulo, PyNumber_Remainder>)},
      {Py_nb_true_divide, reinterpret_cast<void*>(true_divided)},
      {Py_nb_divmod, reinterpret_cast<void*>(of_ints<PyNumber_Divmod>)},
      {Py_nb_lshift, reinterpret_cast<void*>(of_ints<PyNumber_Lshift>)},
      {Py_nb_rshift, reinterpret_cast<void*>(of_ints<PyNumber_Rshift>)},
      {Py_nb_and, reinterpret_cast<void*>(of_ints<PyNumber_And>)},
      {Py_nb_or, reinterpret_cast<void*>(of_ints<PyNumber_Or>)},
      {Py_nb_xor, reinterpret_cast<void*>(of_ints<PyNumber_Xor>)},
      {Py_nb_power, reinterpret_cast<void*>(power)},
      {Py_nb_negative, reinterpret_cast<void*>(negative)},
      {Py_nb_positive, reinterpret_cast<void*>(positive)},
      {Py_nb_absolute, reinterpret_cast<void*>(absolute)},
      {Py_nb_invert, reinterpret_cast<void*>(of_int<PyNumber_Invert>)},
      {Py_nb_bool, reinterpret_cast<void*>(is_true)},
      {Py_nb_int, reinterpret_cast<void*>(to_plain)},
      {Py_nb_index, reinterpret_cast<void*>(to_plain)},
      {Py_nb_float, reinterpret_cast<void*>(of_int<PyNumber_Float>)},
      {Py_tp_doc, const_cast<char*>("An integer that a traced function has computed from sizes.")},
      {0, nullptr}};
  PyType_Spec spec{"teletensor.SymInt", sizeof(SymbolicInt), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   slots};
  static PyMethodDef functions[] = {
      {"peek_symbolic_int", peek, METH_O,
       "The number that a SymInt has for the trace's example, of which no run is required."},
      {"set_symbolic_float_maker", set_float_maker, METH_O,
       "Sets the function of an operator's sign and two operands that returns a SymFloat."},
      {"compare_symbolic_ints", decide, METH_VARARGS,
       "The outcome of the relation of a sign, such as '<', of two ints or SymInts, which runs are required to have."},
      {"set_symbolic_bool_type", set_bool_type, METH_O,
       "Sets SymBool, whose method of() returns the comparison of a relation's sign and two operands."},
      {"set_recorded_types", set_recorded_types, METH_VARARGS,
       "Sets the classes of the sizes and floats of recordings. Calls pass on their attributes `_value` and "
       "`_float_argument`."},
      {}};
  symbolic_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return symbolic_type && PyModule_AddType(module, symbolic_type) == 0 && add_computed_int(module) &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tt::python
