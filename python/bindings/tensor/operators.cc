#include "python/bindings/tensor/operators.h"

#include <structmember.h>

#include <deque>
#include <limits>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "client/autograd/backward.h"
#include "client/session/program_trace.h"
#include "engine/schema/custom_operator.h"
#include "engine/schema/default_float.h"
#include "engine/schema/op_ids.h"
#include "python/bindings/tensor/convert.h"
#include "python/bindings/tensor/function_log.h"
#include "python/bindings/tensor/handlers.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/read.h"
#include "python/bindings/tensor/torch_dispatch.h"
#include "python/bindings/tensor/torch_function.h"
#include "python/bindings/tensor/unchanged.h"

namespace tt::python {
namespace {

// Prints named results as PyTorch does: a field per line. Those that PyTorch returns without names are a plain tuple.
PyObject* printed_results(PyObject* results) {
  const std::string name = Py_TYPE(results)->tp_name;  // teletensor.return_types.max
  const std::string own = name.substr(name.rfind('.') + 1);
  const bool is_plain = own == "var_mean" || own == "std_mean";
  std::string text = is_plain ? "(" : absl::StrCat("torch.return_types.", own, "(\n");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); ++i) {
    Owned value(PyObject_Repr(PyTuple_GET_ITEM(results, i)));
    const char* printed = value ? PyUnicode_AsUTF8(value.get()) : nullptr;
    if (printed == nullptr) return nullptr;
    if (i != 0) text += is_plain ? ", " : ",\n";
    if (!is_plain) absl::StrAppend(&text, Py_TYPE(results)->tp_members[i].name, "=");
    text += printed;
  }
  text += ")";
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

// Returns the entry's type `torch.return_types.<name>`, or `<name>_out` for calls with `out=`, which is created on
// first use.
PyTypeObject* result_type(const Entry& entry, bool is_out) {
  static auto* types = new absl::flat_hash_map<std::pair<const Entry*, bool>, PyTypeObject*>();
  PyTypeObject*& type = (*types)[{&entry, is_out}];
  if (type) return type;
  static auto* names = new std::deque<std::string>();  // types keep pointers to their names
  std::string& full_name =
      names->emplace_back(absl::StrCat("teletensor.return_types.", entry.name, is_out ? "_out" : ""));
  std::vector<PyStructSequence_Field> fields;
  for (const char* name : entry.results) fields.push_back({name, nullptr});
  fields.push_back({nullptr, nullptr});
  PyStructSequence_Desc description{full_name.c_str(), nullptr, fields.data(), static_cast<int>(entry.results.size())};
  type = PyStructSequence_NewType(&description);
  if (!type) throw PythonErrorSet();
  type->tp_repr = &printed_results;
  return type;
}

PyObject* wrap_results(const Entry& entry, const Op& op, client::Tensors results) {
  if (op.num_outputs == 1) return wrap(std::move(results[0]));
  if (op.num_outputs == 0) Py_RETURN_NONE;
  Owned tuple(wrap_tuple(results));
  return op.num_outputs < 0 ? tuple.release() : named_results(entry, tuple.get());
}

// Returns what a call with `out=` returns: the tensor, or the tensors by name.
PyObject* wrap_out(const Entry& entry, PyObject* out) {
  if (is_tensor(out) || static_cast<size_t>(PySequence_Fast_GET_SIZE(out)) != entry.results.size())
    return Py_NewRef(out);
  Owned tuple(throw_if_null(PyStructSequence_New(result_type(entry, true))));
  for (size_t i = 0; i < entry.results.size(); ++i) {
    const auto at = static_cast<Py_ssize_t>(i);
    PyStructSequence_SET_ITEM(tuple.get(), at, Py_NewRef(PySequence_Fast_GET_ITEM(out, at)));
  }
  return tuple.release();
}

// Returns the argument `out` or None, as a borrowed reference.
PyObject* given_out(const PythonCall& call) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call.keywords); ++k) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.keywords, k), "out") == 0) {
      return call.args[call.count + k];
    }
  }
  return Py_None;
}

// A call with `out=` that replaces the tensor of a traced function is for the sizes of the trace.
void require_sizes(client::ProgramTrace& trace, ParsedArgs* parsed) {
  const auto require = [&](const TensorMeta* tensor) {
    const auto* handle = static_cast<const client::Handle*>(tensor);
    if (client::ProgramTrace::of_tensor(*handle) != nullptr) trace.require_sizes(*handle);
  };
  for (auto& list : parsed->ints) {
    for (int64_t& number : list) number = trace.number_of(number).constant();
  }
  for (Arg& arg : parsed->args) {
    if (arg.kind == Arg::Kind::kInt && arg.size == 0) arg.integer = trace.number_of(arg.integer).constant();
    if (arg.kind == Arg::Kind::kTensor) require(arg.tensor);
    for (size_t i = 0; arg.kind == Arg::Kind::kTensors && i < arg.size; ++i) {
      if (arg.list()[i] != nullptr) require(arg.list()[i]);
    }
  }
  for (const client::Tensor& out : parsed->into) require(out.get());
}

// Checks `out=` before the call: rejects tensors that the operator's rule rejects. Returns whether the results have
// their sizes; false if the sizes depend on data and are not known yet.
bool fits_out(const Op& op, ParsedArgs* parsed) {
  const client::Tensors& out = parsed->into;
  for (size_t i = 0; op.out == OutRule::kTyped && i < op.params.size(); ++i) {
    if (op.params[i].name == "dtype" && parsed->args[i].is_none()) parsed->args[i] = Arg(out[0]->dtype);
  }
  const DefaultFloat default_float(client::default_dtype());
  thread_local Inference inferred;
  client::ProgramTrace* const trace = client::ProgramTrace::active();
  if (trace == nullptr) [[likely]] {
    infer(op, parsed->args, false, &inferred);
  } else {
    trace->infer_example(op, parsed->args, &inferred);
  }
  if (inferred.outputs.size() != out.size()) return !op.is_dynamic;  // a wrong number is rejected by the call
  bool same_sizes = !op.is_dynamic;
  for (size_t i = 0; i < out.size(); ++i) {
    check_out(op, inferred.outputs[i], *out[i]);
    for (size_t j = 0; j < i; ++j) {
      check(ErrorKind::kValue, out[i] != out[j], op.name, "(): the out= tensors must not overlap.");
    }
    same_sizes &= inferred.outputs[i].sizes == out[i]->sizes;
  }
  if (!same_sizes && trace != nullptr) require_sizes(*trace, parsed);
  return same_sizes;
}

// A tensor of as many elements receives the results of these operators, whatever its sizes are.
constexpr uint16_t kRanges[] = {op_id::kArange, op_id::kArangeFrom, op_id::kLinspace, op_id::kLogspace};

// Stores `result` in `out` if the sizes of `out` differ or the result's sizes were unknown before the call. If they
// differ, the object refers to the result, in the dtype of `out`, as if PyTorch had resized `out`.
void store_resized(PyObject* out, const Op& op, const client::Tensor& result, client::Session& session) {
  const client::Tensor& target = handle_of(out);
  if (absl::c_linear_search(kRanges, op.id) && result->sizes != target->sizes && result->numel() == target->numel()) {
    const Arg shaped[] = {Arg(static_cast<const TensorMeta*>(result.get())), Arg(SizesView(target->sizes))};
    return store_resized(out, op, call_op(op_id::kReshape, shaped, session)[0], session);
  }
  if (result->sizes == target->sizes) {  // the result's sizes were unknown before the call
    const Arg args[] = {Arg(static_cast<const TensorMeta*>(target.get())),
                        Arg(static_cast<const TensorMeta*>(result.get()))};
    call_op(op_id::kAssign, args, session, absl::MakeConstSpan(&target, 1));
    return;
  }
  check(can_cast(result->dtype, target->dtype), "[", op.name, "] result type ", result->dtype,
        " can't be cast to the desired output type ", target->dtype);
  const Arg args[] = {Arg(static_cast<const TensorMeta*>(result.get())), Arg(target->dtype)};
  client::Tensor converted = result->dtype == target->dtype ? result : call_op(op_id::kToDtype, args, session)[0];
  replace_handle(out, std::move(converted));
}

}  // namespace

client::Tensors call_op(uint16_t id, Args args, client::Session& session, absl::Span<const client::Tensor> into) {
  const Op& op = *find_op(id);
  client::CallOptions options = call_options(session);
  options.into = into;
  if (!op.is_dynamic && !is_custom(id)) return session.call(op, args, options);
  ReleaseGil released;  // the call waits
  return session.call(op, args, options);
}

namespace {

PyObject* other_spellings = nullptr;  // see set_other_spellings

// Calls the function of set_other_spellings. Returns a new reference, or null if it does not know the arguments either.
PyObject* call_other_spelling(const Entry& entry, const PythonCall& call, bool in_place) {
  if (!other_spellings) return nullptr;
  const Py_ssize_t first = call.self ? 1 : 0;
  Owned args(throw_if_null(PyTuple_New(call.count + first)));
  if (call.self) PyTuple_SET_ITEM(args.get(), 0, Py_NewRef(call.self));
  for (Py_ssize_t i = 0; i < call.count; ++i) PyTuple_SET_ITEM(args.get(), i + first, Py_NewRef(call.args[i]));
  Owned keywords(throw_if_null(PyDict_New()));
  for (Py_ssize_t k = 0; call.keywords && k < PyTuple_GET_SIZE(call.keywords); ++k) {
    PyObject* name = PyTuple_GET_ITEM(call.keywords, k);
    if (PyDict_SetItem(keywords.get(), name, call.args[call.count + k]) != 0) throw PythonErrorSet();
  }
  Owned result(throw_if_null(PyObject_CallFunction(other_spellings, "sOOOO", entry.name, call.self ? Py_True : Py_False,
                                                   in_place ? Py_True : Py_False, args.get(), keywords.get())));
  return result.get() == Py_NotImplemented ? nullptr : result.release();
}

// Makes the tensors of `out` require grad, for calls with `requires_grad=True`. Returns `out` as a new reference.
PyObject* require_grad(PyObject* out) {
  for (Py_ssize_t i = 0; i < (is_tensor(out) ? 1 : PyTuple_GET_SIZE(out)); ++i) {
    const client::Tensor& target = handle_of(is_tensor(out) ? out : PyTuple_GET_ITEM(out, i));
    client::set_requires_grad(target, true, current_site(*target->session));
  }
  return Py_NewRef(out);
}

// Turns autocast off in this thread for a block.
class WithoutAutocast {
 public:
  WithoutAutocast() : before_(client::autocast_settings()) {
    client::autocast_settings().cpu_enabled = client::autocast_settings().cuda_enabled = false;
  }
  ~WithoutAutocast() { client::autocast_settings() = before_; }
  WithoutAutocast(const WithoutAutocast&) = delete;
  WithoutAutocast& operator=(const WithoutAutocast&) = delete;

 private:
  const client::AutocastSettings before_;
};

bool fills_new = false;  // see set_fills_new

// Fills tensors that an operator has created without values, if set_fills_new() is on: with NaN, or the largest number
// of the dtype.
void fill_new(uint16_t id, const client::Tensors& created) {
  if (!fills_new || (id != op_id::kEmpty && id != op_id::kEmptyLike && id != op_id::kNewEmpty)) [[likely]]
    return;
  for (const client::Tensor& t : created) {
    Scalar value = std::numeric_limits<double>::quiet_NaN();
    if (t->dtype == DType::kBool) {
      value = true;
    } else if (is_integral(t->dtype)) {
      const size_t bits = 8 * item_size(t->dtype) - (is_unsigned(t->dtype) ? 0 : 1);
      value = Scalar::of_unsigned(~uint64_t{0} >> (64 - bits));
    }
    const Arg args[] = {Arg(static_cast<const TensorMeta*>(t.get())), Arg(value)};
    call_op(op_id::kFill, args, *t->session, absl::MakeConstSpan(&t, 1));
  }
}

// Whether the operator's result has the elements of its first argument, which can be copied to a format directly.
bool copies(uint16_t id) { return id == op_id::kClone || id == op_id::kContiguous; }

PyObject* call_resizing(const Op& op, uint16_t id, const ParsedArgs& parsed, const PythonCall& call,
                        client::Session& session) {
  PyObject* out = given_out(call);
  const WithoutAutocast as_for_out;  // autocast does not apply to calls with out=
  client::Tensors results = call_op(id, parsed.args, session);
  fill_new(id, results);
  check(ErrorKind::kType, results.size() == parsed.into.size(), op.name, "(): expected ", results.size(),
        " out tensors, got ", parsed.into.size());
  for (size_t i = 0; i < results.size(); ++i) {
    PyObject* target = out;  // a tensor, or a tuple or list of tensors, which other code may have changed
    if (!is_tensor(out)) {
      check(ErrorKind::kType, static_cast<size_t>(PySequence_Fast_GET_SIZE(out)) == results.size(), op.name,
            "(): expected ", results.size(), " out tensors");
      target = PySequence_Fast_GET_ITEM(out, static_cast<Py_ssize_t>(i));
      check(ErrorKind::kType, is_tensor(target), op.name, "(): expected out tensors");
    }
    store_resized(target, op, results[i], session);
  }
  return Py_NewRef(out);
}

}  // namespace

namespace {

PyObject* call_unlogged(const Entry& entry, PyObject* module, const PythonCall& call, bool in_place) noexcept {
  return guard([&]() -> PyObject* {
    CallInProgress call_in_progress;
    std::string reasons;
    // If there are several operators, first tries them without converting arguments: max(a, b) is not max(a, dim=b),
    // var(a, 1) is not var(a, unbiased=True).
    const size_t count = entry.ops.size(), tries = count > 1 ? 2 * count : 1;
    for (size_t i = 0; i < tries; ++i) {
      const bool strict = i + count < tries;
      const uint16_t id = entry.ops[i % count];
      const Op& op = *find_op(id);
      ParsedArgs parsed;
      std::string why;
      if (!parse(op, call, &parsed, &why, strict)) {
        if (strict) continue;
        absl::StrAppend(&reasons, reasons.empty() ? "" : "; or ", why);
        continue;
      }
      if (!parsed.session) [[unlikely]] {
        if (PyObject* result = call_handlers(module, entry, op, parsed, call, in_place)) return result;
        parsed.session = parsed.overridable_session ? parsed.overridable_session : &current_session();
      }
      client::Session& session = *parsed.session;
      if (in_place) parsed.into.assign(1, handle_of(call.self));
      if (!in_place && !parsed.into.empty() && !fits_out(op, &parsed)) {
        Owned out(call_resizing(op, id, parsed, call, session));
        return parsed.requires_grad ? require_grad(out.get()) : wrap_out(entry, out.get());
      }
      if (returns_input(op, parsed)) [[unlikely]]
        return given_input(call, parsed);
      const MemoryFormat format = parsed.memory_format;
      if (format != MemoryFormat::kNone && copies(id)) {
        const client::Tensor input = first_tensor(parsed);
        if (client::ProgramTrace* trace = client::ProgramTrace::of_tensor(*input)) [[unlikely]]
          require_format(*trace, *input, format);
        if (!has_format(*input, format)) return wrap(laid_out(in_format(input, format), format, true));
      }
      client::Tensors results = call_op(id, parsed.args, session, parsed.into);
      fill_new(id, results);
      if (format != MemoryFormat::kNone && !in_place && parsed.into.empty()) [[unlikely]] {
        const Arg& input = parsed.args[0];
        const uint64_t storage = input.kind == Arg::Kind::kTensor ? first_tensor(parsed)->storage_number() : 0;
        for (client::Tensor& t : results) t = laid_out(t, format, t->storage_number() != storage);
      }
      if (in_place) return Py_NewRef(call.self);
      if (!parsed.into.empty())
        return parsed.requires_grad ? require_grad(given_out(call)) : wrap_out(entry, given_out(call));
      if (parsed.requires_grad) {
        for (client::Tensor& t : results) client::set_requires_grad(t, true, current_site(session));
      }
      return wrap_results(entry, op, std::move(results));
    }
    if (PyObject* result = call_overridden(module, entry.name, call)) return result;
    if (PyObject* result = call_other_spelling(entry, call, in_place)) return result;
    fail(ErrorKind::kType, entry.name, "(): ", reasons);
  });
}

}  // namespace

PyObject* named_results(const Entry& entry, PyObject* results) {
  const auto count = static_cast<Py_ssize_t>(entry.results.size());
  if (count == 0 || !PyTuple_CheckExact(results) || PyTuple_GET_SIZE(results) != count) return Py_NewRef(results);
  Owned tuple(throw_if_null(PyStructSequence_New(result_type(entry, false))));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyStructSequence_SET_ITEM(tuple.get(), i, Py_NewRef(PyTuple_GET_ITEM(results, i)));
  }
  return tuple.release();
}

PyObject* call_entry(const Entry& entry, PyObject* module, const PythonCall& call, bool in_place) noexcept {
  if (!logs_functions || (!module && !call.self)) [[likely]]  // functions of _C.ops are not public
    return call_unlogged(entry, module, call, in_place);
  const LoggedCall logged(entry.name);
  return call_unlogged(entry, module, call, in_place);
}

void set_fills_new(bool enabled) { fills_new = enabled; }

void set_other_spellings(PyObject* function) { Py_XSETREF(other_spellings, Py_NewRef(function)); }

namespace {

// Names of the methods that a number slot is equivalent to; __torch_function__ receives these methods of Tensor.
struct SlotNames {
  uint16_t op;
  const char *forward, *reflected, *in_place;
};

// Returns the method's name for a slot's operands.
const char* slot_name(uint16_t op, bool is_reflected, bool in_place) {
  using namespace op_id;  // NOLINT: a table of the ids' names
  static constexpr SlotNames kNames[] = {
      {kAdd, "add", "add", "add_"},
      {kSub, "sub", "__rsub__", "sub_"},
      {kMul, "mul", "mul", "mul_"},
      {kDiv, "div", "__rdiv__", "div_"},
      {kFloorDivide, "__floordiv__", "__rfloordiv__", "floor_divide_"},
      {kRemainder, "remainder", "__rmod__", "remainder_"},
      {kMatmul, "matmul", "__rmatmul__", "matmul"},
      {kPow, "pow", "__rpow__", "pow_"},
      {kBitwiseAnd, "__and__", "bitwise_and", "__iand__"},
      {kBitwiseOr, "__or__", "bitwise_or", "__ior__"},
      {kBitwiseXor, "__xor__", "bitwise_xor", "__ixor__"},
      {kBitwiseLeftShift, "__lshift__", "__rlshift__", "__ilshift__"},
      {kBitwiseRightShift, "__rshift__", "__rrshift__", "__irshift__"},
      {kLt, "lt", "gt", ""},
      {kLe, "le", "ge", ""},
      {kEq, "eq", "eq", ""},
      {kNe, "ne", "ne", ""},
      {kGt, "gt", "lt", ""},
      {kGe, "ge", "le", ""},
      {kNeg, "neg", "", ""},
      {kAbs, "abs", "", ""},
      {kBitwiseNot, "__invert__", "", ""},
  };
  for (const SlotNames& names : kNames) {
    if (names.op == op) return in_place ? names.in_place : is_reflected ? names.reflected : names.forward;
  }
  return "";
}

// Converts an operand of a number slot, a tensor or a Python number. Returns false for other objects.
bool operand(PyObject* o, Arg* out) {
  if (is_tensor(o)) return *out = Arg(static_cast<const TensorMeta*>(handle_of(o).get())), true;
  return argument_number(o, out);
}

// Same, but also returns false for tensors that may override the slot.
bool plain_operand(PyObject* o, Arg* out) {
  if (is_plain_tensor(o)) [[likely]]
    return *out = Arg(static_cast<const TensorMeta*>(handle_of(o).get())), true;
  return !is_tensor(o) && argument_number(o, out);
}

// Computes a number slot with converted operands.
inline PyObject* compute(uint16_t op, PyObject* a, PyObject* b, const Arg (&operands)[2], bool in_place) {
  const client::Tensor& tensor = is_tensor(a) ? handle_of(a) : handle_of(b);
  // Trailing parameters (alpha, ...) keep their defaults.
  const Op& schema = *find_op(op);
  absl::InlinedVector<Arg, 4> all(operands, operands + 2);
  for (size_t i = 2; i < schema.params.size(); ++i) all.push_back(schema.params[i].default_value);
  // The operator multiplies its second operand by a number, which makes NaN of infinite parts of complex numbers.
  if (op == op_id::kAdd && all[0].is_number() && is_complex(tensor->dtype)) std::swap(all[0], all[1]);
  if (in_place) {
    call_op(op, all, *tensor->session, absl::MakeConstSpan(&handle_of(a), 1));
    return Py_NewRef(a);
  }
  return wrap(std::move(call_op(op, all, *tensor->session)[0]));
}

// A number slot with an operand that is neither a plain tensor nor a number.
[[gnu::cold, gnu::noinline]] PyObject* binary_slow(uint16_t op, PyObject* a, PyObject* b, bool in_place) {
  const char* name = slot_name(op, !is_tensor(a), in_place);
  if (PyObject* result = call_slot_handlers(name, *find_op(op), a, b, in_place)) return result;
  Arg operands[2];
  if (!operand(a, &operands[0]) || !operand(b, &operands[1])) Py_RETURN_NOTIMPLEMENTED;
  return compute(op, a, b, operands, in_place);
}

// Fast path of Python's operators such as `a + b`, which have no keywords and no overloads.
PyObject* binary_unlogged(uint16_t op, PyObject* a, PyObject* b, bool in_place) {
  return guard([&]() -> PyObject* {
    CallInProgress call_in_progress;
    Arg operands[2];
    if (!plain_operand(a, &operands[0]) || !plain_operand(b, &operands[1])) [[unlikely]] {
      return binary_slow(op, a, b, in_place);
    }
    return compute(op, a, b, operands, in_place);
  });
}
PyObject* binary(uint16_t op, PyObject* a, PyObject* b, bool in_place) {
  if (!logs_functions) [[likely]]
    return binary_unlogged(op, a, b, in_place);
  const LoggedCall logged(slot_name(op, !is_tensor(a), in_place));
  return binary_unlogged(op, a, b, in_place);
}
PyObject* unary(uint16_t op, PyObject* a) {
  return guard([&]() -> PyObject* {
    if (!is_plain_tensor(a)) [[unlikely]] {
      const char* name = slot_name(op, false, false);
      if (PyObject* result = call_slot_handlers(name, *find_op(op), a, nullptr, false)) return result;
    }
    const Arg args[] = {Arg(static_cast<const TensorMeta*>(handle_of(a).get()))};
    return wrap(std::move(call_op(op, args, *handle_of(a)->session)[0]));
  });
}

template <uint16_t Op>
PyObject* binary_slot(PyObject* a, PyObject* b) {
  return binary(Op, a, b, false);
}
template <uint16_t Op>
PyObject* in_place_slot(PyObject* a, PyObject* b) {
  return binary(Op, a, b, true);
}
template <uint16_t Op>
PyObject* unary_slot(PyObject* a) {
  return unary(Op, a);
}
// Like PyTorch, divides a NumPy array by a tensor (a product with the reciprocal). PyTorch rejects other arithmetic
// operators with an array on the left.
PyObject* divide(PyObject* a, PyObject* b) {
  PyObject* result = binary(op_id::kDiv, a, b, false);
  if (result != Py_NotImplemented || !is_array(a)) return result;
  Py_DECREF(result);
  Owned reciprocal(unary(op_id::kReciprocal, b));
  return reciprocal ? PyNumber_Multiply(reciprocal.get(), a) : nullptr;
}
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(op_id::kPow, a, b, false);
}
PyObject* power_in_place(PyObject* a, PyObject* b, PyObject*) { return binary(op_id::kPow, a, b, true); }
PyObject* positive(PyObject* a) {
  return guard([&]() -> PyObject* {
    if (!is_plain_tensor(a)) [[unlikely]] {
      if (PyObject* result = call_overridden_method("positive", {a})) return result;
    }
    check(ErrorKind::kNotImplemented, handle_of(a)->dtype != DType::kBool,
          "The `+` operator, on a bool tensor is not supported.");
    return Py_NewRef(a);
  });
}

int tensor_bool(PyObject* a) {
  return guard(
      [&] {
        if (!is_plain_tensor(a)) [[unlikely]] {
          if (Owned result(call_overridden_method("__bool__", {a})); result) return PyObject_IsTrue(result.get());
        }
        int64_t n = handle_of(a)->numel();
        check(n == 1, "Boolean value of Tensor with ", n == 0 ? "no values" : "more than one value", " is ambiguous");
        return read_scalar(handle_of(a)).to_bool() ? 1 : 0;
      },
      -1);
}
// Uses item(): uint64 values may exceed int64, and item() raises for values that are not ints.
PyObject* to_python_int(PyObject* a) {
  Owned value(throw_if_null(item(handle_of(a))));
  return throw_if_null(PyNumber_Long(value.get()));
}
PyObject* as_int(PyObject* a) {
  return guard([&] {
    PyObject* result = is_plain_tensor(a) ? nullptr : call_overridden_method("__int__", {a});
    return result ? result : to_python_int(a);
  });
}
PyObject* as_float(PyObject* a) {
  return guard([&]() -> PyObject* {
    if (!is_plain_tensor(a)) [[unlikely]] {
      if (PyObject* result = call_overridden_method("__float__", {a})) return result;
    }
    const Scalar value = read_scalar(handle_of(a));
    check(value.is_real() || value.to_complex().imag() == 0,
          "value cannot be converted to type double without overflow");
    return PyFloat_FromDouble(value.to_double());
  });
}
PyObject* as_index(PyObject* a) {
  return guard([&]() -> PyObject* {
    if (!is_plain_tensor(a)) [[unlikely]] {
      if (PyObject* result = call_overridden_method("__index__", {a})) return result;
    }
    check(ErrorKind::kType, is_integral(handle_of(a)->dtype) && handle_of(a)->numel() == 1,
          "only integer tensors of a single element can be converted to an index");
    return to_python_int(a);
  });
}

}  // namespace

PyNumberMethods tensor_as_number = [] {
  using namespace op_id;  // NOLINT: a table of the ids' names
  PyNumberMethods m{};
  m.nb_add = binary_slot<kAdd>;
  m.nb_subtract = binary_slot<kSub>;
  m.nb_multiply = binary_slot<kMul>;
  m.nb_true_divide = divide;
  m.nb_floor_divide = binary_slot<kFloorDivide>;
  m.nb_remainder = binary_slot<kRemainder>;
  m.nb_matrix_multiply = binary_slot<kMatmul>;
  m.nb_and = binary_slot<kBitwiseAnd>;
  m.nb_or = binary_slot<kBitwiseOr>;
  m.nb_xor = binary_slot<kBitwiseXor>;
  m.nb_lshift = binary_slot<kBitwiseLeftShift>;
  m.nb_rshift = binary_slot<kBitwiseRightShift>;
  m.nb_power = power;
  m.nb_inplace_add = in_place_slot<kAdd>;
  m.nb_inplace_subtract = in_place_slot<kSub>;
  m.nb_inplace_multiply = in_place_slot<kMul>;
  m.nb_inplace_true_divide = in_place_slot<kDiv>;
  m.nb_inplace_floor_divide = in_place_slot<kFloorDivide>;
  m.nb_inplace_remainder = in_place_slot<kRemainder>;
  m.nb_inplace_and = in_place_slot<kBitwiseAnd>;
  m.nb_inplace_or = in_place_slot<kBitwiseOr>;
  m.nb_inplace_xor = in_place_slot<kBitwiseXor>;
  m.nb_inplace_lshift = in_place_slot<kBitwiseLeftShift>;
  m.nb_inplace_rshift = in_place_slot<kBitwiseRightShift>;
  m.nb_inplace_power = power_in_place;
  m.nb_negative = unary_slot<kNeg>;
  m.nb_positive = positive;
  m.nb_absolute = unary_slot<kAbs>;
  m.nb_invert = unary_slot<kBitwiseNot>;
  m.nb_bool = tensor_bool;
  m.nb_int = as_int;
  m.nb_float = as_float;
  m.nb_index = as_index;
  return m;
}();

PyObject* tensor_compare(PyObject* a, PyObject* b, int what) {
  static constexpr uint16_t kOps[] = {op_id::kLt, op_id::kLe, op_id::kEq, op_id::kNe, op_id::kGt, op_id::kGe};
  if (b == Py_None) {  // `t == None` is a plain bool, as for other objects
    if (what == Py_EQ) Py_RETURN_FALSE;
    if (what == Py_NE) Py_RETURN_TRUE;
  }
  PyObject* result = binary(kOps[what], a, b, false);
  if (result != Py_NotImplemented || !is_array(b)) return result;
  // A NumPy array defers to the tensor (__array_priority__), so Python would otherwise compare identities.
  Py_DECREF(result);
  return guard([&]() -> PyObject* {
    const client::Tensor tensor = handle_of(a);
    const client::Tensor other = tensor_from(b, std::nullopt, tensor->device, *tensor->session);
    const Arg args[] = {Arg(static_cast<const TensorMeta*>(tensor.get())),
                        Arg(static_cast<const TensorMeta*>(other.get()))};
    return wrap(std::move(call_op(kOps[what], args, *tensor->session)[0]));
  });
}

}  // namespace tt::python
