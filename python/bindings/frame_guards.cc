#include "python/bindings/frame_guards.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_set.h"
#include "client/session/autocast.h"
#include "client/session/default_dtype.h"
#include "client/session/session.h"
#include "engine/schema/error.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/open_session.h"
#include "python/bindings/tensor/parse.h"
#include "python/bindings/tensor/torch_function.h"
#include "python/bindings/tensor/types.h"

namespace py = pybind11;

namespace tt::python {
namespace {

constexpr int kConstantAnchor = 1 << 30;

bool is_check(GuardKind kind) { return kind >= GuardKind::kCheckIs; }

// Finds a name in the type's method resolution order; borrowed, null if there is none.
PyObject* type_attribute(PyTypeObject* type, PyObject* name) {
  PyObject* found = _PyType_Lookup(type, name);
  if (!found) PyErr_Clear();
  return found;
}

PyObject* instance_dict(PyObject* object) {
  PyObject** dict = _PyObject_GetDictPtr(object);
  if (!dict) return nullptr;
  if (!*dict) {  // created at its first use
    PyObject* made = PyObject_GenericGetDict(object, nullptr);
    if (!made) {
      PyErr_Clear();
      return nullptr;
    }
    Py_DECREF(made);
  }
  return *dict;
}

bool has_same_elements(PyObject* a, PyObject* b);

bool is_equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_Check(a)) {  // -0.0 and 0.0 differ; NaN equals itself
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyComplex_Check(a)) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  if (equal == 1 && PyAnySet_Check(a)) return has_same_elements(a, b);
  return equal == 1;
}

// Of equal sets: whether their elements also have the same types and signs of zero.
bool has_same_elements(PyObject* a, PyObject* b) {
  Owned first(PySequence_Fast(a, "")), second(PySequence_Fast(b, ""));
  if (!first || !second) {
    PyErr_Clear();
    return false;
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(second.get());
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(first.get()); ++i) {
    PyObject* element = PySequence_Fast_GET_ITEM(first.get(), i);
    bool found = false;
    for (Py_ssize_t k = 0; k < n && !found; ++k) {  // equal sets mostly have one order
      found = is_equal(element, PySequence_Fast_GET_ITEM(second.get(), (i + k) % n));
    }
    if (!found) return false;
  }
  return true;
}

int64_t length_of(PyObject* o) {
  if (PyTuple_Check(o)) return PyTuple_GET_SIZE(o);
  if (PyList_Check(o)) return PyList_GET_SIZE(o);
  if (PyDict_Check(o)) return PyDict_GET_SIZE(o);
  if (PyAnySet_Check(o)) return PySet_GET_SIZE(o);
  return -1;
}

bool has_keys(PyObject* dict, PyObject* keys) {
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  Py_ssize_t at = 0, i = 0;
  PyObject *key, *value;
  if (PyODict_Check(dict)) {  // its order is not the order of its entries
    Owned iterator(PyObject_GetIter(dict));
    for (; iterator && i < PyTuple_GET_SIZE(keys); ++i) {
      Owned next(PyIter_Next(iterator.get()));
      if (!next || !is_equal(next.get(), PyTuple_GET_ITEM(keys, i))) break;
    }
    PyErr_Clear();
    return i == PyTuple_GET_SIZE(keys);
  }
  while (PyDict_Next(dict, &at, &key, &value)) {
    if (!is_equal(key, PyTuple_GET_ITEM(keys, i++))) return false;
  }
  return true;
}

// An int that may stand for a size, and is small enough for arithmetic.
bool is_dynamic_int(PyObject* o) {
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  return overflow == 0 && value >= 0 && value < (1LL << 31);
}

// The dimensions from the outermost in memory; empty if the tensor has gaps.
std::vector<size_t> order_without_gaps(const TensorMeta& meta) {
  std::vector<size_t> order(meta.sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return meta.strides[a] > meta.strides[b]; });
  int64_t stride = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    if (meta.strides[*dim] != stride) return {};
    stride *= meta.sizes[*dim];
  }
  return order;
}

// Lists of a few numbers, for which a call of memcmp() takes longer than a loop.
template <typename Numbers>
bool has_same_numbers(const Numbers& a, const Numbers& b) {
  const size_t n = a.size();
  if (n != b.size()) return false;
  const int64_t *x = a.data(), *y = b.data();
  for (size_t i = 0; i < n; ++i) {
    if (x[i] != y[i]) return false;
  }
  return true;
}

uint64_t word_at(const void* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

bool FrameGuards::Modes::operator==(const Modes& o) const {
  return grad == o.grad && inference == o.inference && function_modes == o.function_modes && autocast == o.autocast &&
         default_dtype == o.default_dtype && chosen_device == o.chosen_device &&
         tensor_type_device == o.tensor_type_device && session == o.session;
}

FrameGuards::Modes FrameGuards::current_modes() {
  const Mode& mode = Mode::current();
  const bool has_hooks = !mode.saved_hooks.empty() && mode.saved_hooks.back()->recomputation() == nullptr;
  Modes modes{
      mode.grad, mode.inference, threads_with_function_modes != 0 || dispatch_mode_count() != 0 || has_hooks, {}, 0, {},
      {},        open_session()};
  const client::AutocastSettings& cast = client::autocast_settings();
  if (cast.cpu_enabled || cast.cuda_enabled) {
    modes.autocast = {cast.cpu_enabled, cast.cuda_enabled, static_cast<int>(cast.cpu_dtype),
                      static_cast<int>(cast.cuda_dtype), cast.cache_enabled};
  }
  modes.default_dtype = static_cast<int>(client::default_dtype());
  modes.chosen_device = chosen_device();
  modes.tensor_type_device = tensor_type_device();
  return modes;
}

FrameGuards::FrameGuards(const py::sequence& nodes, std::vector<int> inputs) : inputs_(std::move(inputs)) {
  for (py::handle entry : nodes) {
    const py::tuple fields = py::cast<py::tuple>(entry);
    Node node{static_cast<GuardKind>(py::cast<int>(fields[0])), py::cast<int>(fields[1]),
              py::object(fields[2]).release().ptr(), py::cast<int64_t>(fields[3])};
    const int number = static_cast<int>(nodes_.size());
    nodes_.push_back(node);
    tt::check(ErrorKind::kValue, node.parent < number, "[FrameGuards] expected nodes after their parents");
    if (node.kind == GuardKind::kCheckTensor) {
      add_tensor(number, node.object);
      Py_DECREF(node.object);  // the tensor is not kept
    } else if (node.kind == GuardKind::kCheckDynamicTensor) {
      const py::tuple mark = py::reinterpret_steal<py::tuple>(node.object);
      const py::object example = mark[0];
      const client::Handle& handle = *tensor_argument(example.ptr(), "FrameGuards");
      TensorMark& made = tensors_.emplace_back(
          TensorMark{handle, Py_TYPE(example.ptr()), handle.session.get(), handle.is_leaf(), handle.is_inference});
      made.dynamic.resize(handle.sizes.size());
      for (size_t dim : py::cast<std::vector<size_t>>(mark[1])) made.dynamic.at(dim) = true;
      made.order = order_without_gaps(handle);
      nodes_.back().mark = static_cast<int>(tensors_.size() - 1);
      nodes_.back().object = Py_NewRef(reinterpret_cast<PyObject*>(made.type));
    } else if (node.kind == GuardKind::kCheckSizes) {
      const py::tuple mark = py::reinterpret_borrow<py::tuple>(node.object);
      nodes_.back().mark = static_cast<int>(sizes_.size());
      sizes_.push_back({py::cast<std::shared_ptr<client::SizeChecks>>(mark[0]), py::cast<std::vector<int>>(mark[1])});
      for (int of : sizes_.back().nodes) {
        tt::check(ErrorKind::kValue, of >= -1 && of < number, "[FrameGuards] expected nodes after their parents");
      }
    } else if (node.kind == GuardKind::kCheckModes) {
      modes_ = current_modes();
    }
  }
  check_inputs();
  values_.resize(nodes_.size());
  plan();
}

void FrameGuards::add_tensor(int number, PyObject* example) {
  const client::Tensor& handle = tensor_argument(example, "FrameGuards");
  nodes_[number].mark = static_cast<int>(tensors_.size());
  nodes_[number].object = Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(example)));
  tensors_.push_back({*handle, Py_TYPE(example), handle->session.get(), handle->is_leaf(), handle->is_inference});
}

void FrameGuards::check_inputs() const {
  for (int input : inputs_) {
    tt::check(ErrorKind::kValue, input >= 0 && input < static_cast<int>(nodes_.size()) && !is_check(nodes_[input].kind),
              "[FrameGuards] expected numbers of nodes as inputs");
  }
}

std::string FrameGuards::describe(PyObject* tensor) {
  const client::Handle& handle = *tensor_argument(tensor, "FrameGuards");
  std::vector<int64_t> numbers = {handle.id != 0,
                                  static_cast<int64_t>(handle.dtype),
                                  static_cast<int64_t>(handle.device.encode()),
                                  handle.requires_grad,
                                  handle.is_leaf(),
                                  handle.is_inference,
                                  static_cast<int64_t>(handle.sizes.size())};
  numbers.insert(numbers.end(), handle.sizes.begin(), handle.sizes.end());
  numbers.insert(numbers.end(), handle.strides.begin(), handle.strides.end());
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t));
}

// Loads the value of a node, or finds out what its object is here, as far as that is possible before objects are
// checked: attributes of unknown objects could run Python code.
bool FrameGuards::find_object(int number, py::object* object, PyObject* slots) {
  Node& node = nodes_[number];
  PyObject* const from = node.parent < 0 ? nullptr : values_[node.parent];
  PyObject* found = nullptr;
  switch (node.kind) {
    case GuardKind::kCheckIs: found = from; break;
    case GuardKind::kCheckType: found = from ? reinterpret_cast<PyObject*>(Py_TYPE(from)) : nullptr; break;
    case GuardKind::kCheckTensor: {
      if (!from || !is_tensor(from) || !PyTuple_Check(object->ptr()) || PyTuple_GET_SIZE(object->ptr()) != 2)
        return false;
      const py::handle description = PyTuple_GET_ITEM(object->ptr(), 1);
      if (reinterpret_cast<PyObject*>(Py_TYPE(from)) != PyTuple_GET_ITEM(object->ptr(), 0) ||
          !PyBytes_Check(description.ptr()) || py::cast<std::string>(description) != describe(from)) {
        return false;
      }
      add_tensor(number, from);
      return true;
    }
    case GuardKind::kCheckModes:
    case GuardKind::kCheckSame:
    case GuardKind::kCheckDistinct: node.object = object->inc_ref().ptr(); return true;  // check() compares them
    case GuardKind::kCall:
    case GuardKind::kAttribute:
    case GuardKind::kCheckDynamicTensor:
    case GuardKind::kCheckDynamicInt:
    case GuardKind::kCheckSizes: return false;
    case GuardKind::kTypeAttribute:
    case GuardKind::kCheckTypeMissing:
      if (!object->ptr() || !PyUnicode_CheckExact(object->ptr())) return false;
      break;
    default: break;
  }
  if (!object->ptr()) {
    if (!found) return false;
    *object = py::reinterpret_borrow<py::object>(found);
  }
  node.object = object->inc_ref().ptr();
  return run(node, number, slots);
}

std::shared_ptr<FrameGuards> FrameGuards::stored(std::string_view nodes, std::vector<py::object>* objects,
                                                 std::vector<int> inputs, PyObject* slots) {
  struct Row {
    int32_t kind, parent, object, index;
  };
  std::shared_ptr<FrameGuards> guards(new FrameGuards);
  const size_t count = nodes.size() / sizeof(Row);
  guards->nodes_.reserve(count);
  guards->values_.resize(count);
  guards->inputs_ = std::move(inputs);
  guards->modes_ = current_modes();
  for (size_t i = 0; i < count; ++i) {
    Row row;
    std::memcpy(&row, nodes.data() + i * sizeof row, sizeof row);
    const int number = static_cast<int>(i);
    const bool is_known =
        (row.kind >= 0 && row.kind <= static_cast<int>(GuardKind::kCall)) ||
        (row.kind >= static_cast<int>(GuardKind::kCheckIs) && row.kind <= static_cast<int>(GuardKind::kCheckSizes));
    const auto kind = static_cast<GuardKind>(row.kind);
    const bool has_parent = kind != GuardKind::kSlot && kind != GuardKind::kConstant &&
                            kind != GuardKind::kCheckModes && kind != GuardKind::kCheckDistinct;
    tt::check(ErrorKind::kValue, is_known && row.parent >= -1 && row.parent < number && (row.parent >= 0) == has_parent,
              "[FrameGuards] expected nodes after their parents");
    tt::check(ErrorKind::kValue, row.index >= 0 && row.object >= 0 && static_cast<size_t>(row.object) < objects->size(),
              "[FrameGuards] expected numbers of objects, and indices");
    tt::check(ErrorKind::kValue, !has_parent || !is_check(guards->nodes_[row.parent].kind),
              "[FrameGuards] expected parents that load values");
    tt::check(ErrorKind::kValue,
              kind != GuardKind::kCheckSame || (row.index < number && !is_check(guards->nodes_[row.index].kind)),
              "[FrameGuards] expected nodes after their parents");
    guards->nodes_.push_back({kind, row.parent, nullptr, row.index});
    py::object& object = (*objects)[row.object];
    if (kind == GuardKind::kCheckDistinct) {
      tt::check(ErrorKind::kValue, object.ptr() && PyTuple_Check(object.ptr()),
                "[FrameGuards] expected numbers of nodes");
      for (py::handle of : py::reinterpret_borrow<py::tuple>(object)) {
        const bool is_number = PyLong_CheckExact(of.ptr()) != 0;
        const int64_t at = is_number ? py::cast<int64_t>(of) : -1;
        tt::check(ErrorKind::kValue, at >= 0 && at < number && !is_check(guards->nodes_[at].kind),
                  "[FrameGuards] expected numbers of nodes");
      }
    }
    if (kind == GuardKind::kCheckKeys && !(object.ptr() && PyTuple_Check(object.ptr()))) return nullptr;
    if (!guards->find_object(number, &object, slots)) {
      guards->failed_ = number;
      return nullptr;
    }
  }
  guards->check_inputs();
  guards->plan();
  return guards;
}

py::tuple FrameGuards::inputs() const {
  py::tuple values(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) PyTuple_SET_ITEM(values.ptr(), i, Py_XNewRef(values_[inputs_[i]]));
  return values;
}

FrameGuards::~FrameGuards() {
  for (Node& node : nodes_) Py_XDECREF(node.object);
  for (PyObject* value : owned_) Py_DECREF(value);
}

// Determines which nodes depend on nothing but anchors and the words.
void FrameGuards::plan() {
  std::vector<bool> is_first(nodes_.size());
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    Node& node = nodes_[i];
    const Node* parent = node.parent < 0 ? nullptr : &nodes_[node.parent];
    const bool under_first = !parent || is_first[node.parent];
    if (is_check(node.kind)) {
      const bool refers = node.kind == GuardKind::kCheckSame || node.kind == GuardKind::kCheckDistinct ||
                          node.kind == GuardKind::kCheckSizes;
      is_first[i] = under_first && !refers;
    } else if (node.kind == GuardKind::kConstant) {
      node.anchor = kConstantAnchor;
    } else if (parent && parent->anchor >= 0) {
      const bool versioned = node.kind == GuardKind::kDictItem || node.kind == GuardKind::kInstanceDict ||
                             node.kind == GuardKind::kType || node.kind == GuardKind::kTypeAttribute ||
                             node.kind == GuardKind::kFunctionGlobals;
      if (versioned) node.anchor = parent->anchor;
    } else if (under_first) {
      // Only an instance dict is worth an anchor: other arguments, such as tensors and numbers, differ from call to
      // call.
      if (node.kind == GuardKind::kInstanceDict) {
        node.anchor = node.parent;
      } else {
        is_first[i] = true;
      }
    }
  }
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    Node& node = nodes_[i];
    if (!is_check(node.kind)) {
      node.skipped = node.anchor >= 0;
    } else if (node.parent >= 0 && nodes_[node.parent].anchor >= 0) {
      const GuardKind from = nodes_[node.parent].kind;
      switch (node.kind) {
        case GuardKind::kCheckIs:
        case GuardKind::kCheckType:
        case GuardKind::kCheckEqual:
        case GuardKind::kCheckTensor:
        case GuardKind::kCheckTypeMissing:
        case GuardKind::kCheckNoDict: node.skipped = true; break;
        case GuardKind::kCheckMissing:
        case GuardKind::kCheckKeys:
          node.skipped = from == GuardKind::kInstanceDict || from == GuardKind::kDictItem ||
                         from == GuardKind::kConstant || from == GuardKind::kFunctionGlobals;
          break;
        default: break;
      }
    }
    if (!node.skipped) (is_first[i] ? first_ : last_).push_back(i);
  }
}

bool FrameGuards::check_tensor(const Node& node, PyObject* value) const {
  const TensorMark& mark = tensors_[node.mark];
  if (Py_TYPE(value) != mark.type) return false;
  const client::Handle& handle = *handle_of(value);
  return handle.id != 0 && handle.session.get() == mark.session && handle.dtype == mark.meta.dtype &&
         handle.device == mark.meta.device && handle.requires_grad == mark.meta.requires_grad &&
         has_same_numbers(handle.sizes, mark.meta.sizes) && has_same_numbers(handle.strides, mark.meta.strides) &&
         handle.is_leaf() == mark.is_leaf && handle.is_inference == mark.is_inference;
}

bool FrameGuards::check_dynamic_tensor(const Node& node, PyObject* value) const {
  const TensorMark& mark = tensors_[node.mark];
  if (Py_TYPE(value) != mark.type) return false;
  const client::Handle& handle = *handle_of(value);
  if (handle.id == 0 || handle.session.get() != mark.session || handle.dtype != mark.meta.dtype ||
      handle.device != mark.meta.device || handle.requires_grad != mark.meta.requires_grad ||
      handle.is_leaf() != mark.is_leaf || handle.is_inference != mark.is_inference ||
      handle.sizes.size() != mark.dynamic.size()) {
    return false;
  }
  for (size_t dim = 0; dim < mark.dynamic.size(); ++dim) {
    // Sizes of 0 and 1 decide which dimensions are broadcast and which results are empty.
    if (mark.dynamic[dim] ? handle.sizes[dim] < 2 : handle.sizes[dim] != mark.meta.sizes[dim]) return false;
  }
  if (mark.order.size() != mark.dynamic.size()) return handle.strides == mark.meta.strides;
  int64_t stride = 1;
  for (auto dim = mark.order.rbegin(); dim != mark.order.rend(); ++dim) {
    if (handle.strides[*dim] != stride) return false;
    stride *= handle.sizes[*dim];
  }
  return true;
}

bool FrameGuards::check_sizes(const Node& node) const {
  const SizesMark& mark = sizes_[node.mark];
  if (mark.nodes.size() != mark.checks->inputs()) return false;
  std::vector<const TensorMeta*> inputs;
  std::vector<TensorMeta> numbers;
  numbers.reserve(mark.nodes.size());  // pointers to it must stay valid
  for (size_t i = 0; i < mark.nodes.size(); ++i) {
    if (mark.nodes[i] < 0) {
      inputs.push_back(&mark.checks->input(i));
      continue;
    }
    PyObject* value = values_[mark.nodes[i]];
    if (is_tensor(value)) {
      inputs.push_back(handle_of(value).get());
      continue;
    }
    TensorMeta& number = numbers.emplace_back(mark.checks->input(i));
    number.sizes[0] = PyLong_AsLongLong(value);
    number.strides = contiguous_strides(number.sizes);
    inputs.push_back(&number);
  }
  return mark.checks->hold(inputs);
}

std::optional<std::string> FrameGuards::sizes_failure() const {
  if (failed_ < 0 || nodes_[failed_].kind != GuardKind::kCheckSizes) return std::nullopt;
  return sizes_[nodes_[failed_].mark].checks->failure();
}

bool FrameGuards::check_distinct(const Node& node) const {
  std::vector<PyObject*> objects;
  std::vector<uint64_t> storages;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(node.object); ++i) {
    PyObject* value = values_[PyLong_AsSsize_t(PyTuple_GET_ITEM(node.object, i))];
    objects.push_back(value);
    if (is_tensor(value)) storages.push_back(handle_of(value)->storage_number());
  }
  std::sort(objects.begin(), objects.end());
  std::sort(storages.begin(), storages.end());
  return std::adjacent_find(objects.begin(), objects.end()) == objects.end() &&
         std::adjacent_find(storages.begin(), storages.end()) == storages.end();
}

bool FrameGuards::run(const Node& node, int number, PyObject* slots) {
  PyObject* from = node.parent < 0 ? nullptr : values_[node.parent];
  PyObject*& value = values_[number];
  switch (node.kind) {
    case GuardKind::kSlot:
      if (node.index >= PyTuple_GET_SIZE(slots)) return false;
      value = PyTuple_GET_ITEM(slots, node.index);
      return true;
    case GuardKind::kConstant: value = node.object; return true;
    case GuardKind::kDictItem:
      if (!PyDict_Check(from)) return false;
      value = PyDict_GetItemWithError(from, node.object);
      if (!value) PyErr_Clear();
      return value != nullptr;
    case GuardKind::kInstanceDict: return (value = instance_dict(from)) != nullptr;
    case GuardKind::kListItem:
      if (!PyList_Check(from) || node.index >= PyList_GET_SIZE(from)) return false;
      value = PyList_GET_ITEM(from, node.index);
      return true;
    case GuardKind::kTupleItem:
      if (!PyTuple_Check(from) || node.index >= PyTuple_GET_SIZE(from)) return false;
      value = PyTuple_GET_ITEM(from, node.index);
      return true;
    case GuardKind::kCell: return PyCell_Check(from) && (value = PyCell_GET(from)) != nullptr;
    case GuardKind::kType: value = reinterpret_cast<PyObject*>(Py_TYPE(from)); return true;
    case GuardKind::kTypeAttribute:
      return PyType_Check(from) && (value = type_attribute(reinterpret_cast<PyTypeObject*>(from), node.object));
    case GuardKind::kFunctionCode: return PyFunction_Check(from) && (value = PyFunction_GET_CODE(from));
    case GuardKind::kFunctionGlobals: return PyFunction_Check(from) && (value = PyFunction_GET_GLOBALS(from));
    case GuardKind::kFunctionClosure: {
      PyObject* cells = PyFunction_Check(from) ? PyFunction_GET_CLOSURE(from) : nullptr;
      if (!cells || node.index >= PyTuple_GET_SIZE(cells)) return false;
      value = PyTuple_GET_ITEM(cells, node.index);
      return true;
    }
    case GuardKind::kFunctionDefaults:
      if (!PyFunction_Check(from)) return false;
      value = PyFunction_GET_DEFAULTS(from) ? PyFunction_GET_DEFAULTS(from) : Py_None;
      return true;
    case GuardKind::kFunctionKeywordDefaults:
      if (!PyFunction_Check(from)) return false;
      value = PyFunction_GET_KW_DEFAULTS(from) ? PyFunction_GET_KW_DEFAULTS(from) : Py_None;
      return true;
    case GuardKind::kMethodSelf: return PyMethod_Check(from) && (value = PyMethod_GET_SELF(from));
    case GuardKind::kMethodFunction: return PyMethod_Check(from) && (value = PyMethod_GET_FUNCTION(from));
    case GuardKind::kCall:
      value = PyObject_CallNoArgs(from);
      if (!value) {
        PyErr_Clear();
        return false;
      }
      owned_.push_back(value);
      return true;
    case GuardKind::kAttribute:
      value = PyObject_GetAttr(from, node.object);
      if (!value) {
        PyErr_Clear();
        return false;
      }
      owned_.push_back(value);
      return true;
    case GuardKind::kCheckIs: return from == node.object;
    case GuardKind::kCheckType: return reinterpret_cast<PyObject*>(Py_TYPE(from)) == node.object;
    case GuardKind::kCheckEqual: return is_equal(from, node.object);
    case GuardKind::kCheckLength: return length_of(from) == node.index;
    case GuardKind::kCheckKeys: return has_keys(from, node.object);
    case GuardKind::kCheckMissing: {
      if (!PyDict_Check(from)) return false;
      PyObject* found = PyDict_GetItemWithError(from, node.object);
      if (!found) PyErr_Clear();
      return found == nullptr;
    }
    case GuardKind::kCheckTypeMissing:
      return PyType_Check(from) && !type_attribute(reinterpret_cast<PyTypeObject*>(from), node.object);
    case GuardKind::kCheckTensor: return check_tensor(node, from);
    case GuardKind::kCheckDynamicTensor: return check_dynamic_tensor(node, from);
    case GuardKind::kCheckDynamicInt: return is_dynamic_int(from);
    case GuardKind::kCheckSizes: return check_sizes(node);
    case GuardKind::kCheckSame: return from == values_[node.index];
    case GuardKind::kCheckDistinct: return check_distinct(node);
    case GuardKind::kCheckModes:
      return !modes_.function_modes && current_modes() == modes_;  // a mode of functions sees every call
    case GuardKind::kCheckNoDict: return _PyObject_GetDictPtr(from) == nullptr;
    case GuardKind::kCheckEmptyCell: return PyCell_Check(from) && PyCell_GET(from) == nullptr;
  }
  return false;
}

// Notes the words on which the skipped nodes depend. Parents come first, so that a word is read only if its object is
// still alive: what refers to it is unchanged.
void FrameGuards::remember() {
  replaced_handles_ = replaced_handles();
  handles_.clear(), words_.clear(), versions_.clear(), flags_.clear(), anchors_.clear();
  absl::flat_hash_set<const void*> known;
  const auto is_new = [&](const void* at) { return known.insert(at).second; };
  const auto word = [&](const void* at) {
    if (is_new(at)) words_.push_back({at, word_at(at)});
  };
  // The type of an object can be assigned only if it is a class in Python, or one that is made like them.
  const auto type_word = [&](PyObject* object) {
    if (PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE)) word(&object->ob_type);
  };
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& node = nodes_[i];
    if (!node.skipped) continue;
    PyObject* from = node.parent < 0 ? nullptr : values_[node.parent];
    switch (node.kind) {
      case GuardKind::kDictItem:
      case GuardKind::kCheckMissing:
      case GuardKind::kCheckKeys: word(&reinterpret_cast<PyDictObject*>(from)->ma_version_tag); break;
      case GuardKind::kInstanceDict:
        if (node.anchor == node.parent) anchors_.emplace_back(node.parent, from);
        word(_PyObject_GetDictPtr(from));
        break;
      case GuardKind::kType:
      case GuardKind::kCheckType:
      case GuardKind::kCheckNoDict: type_word(from); break;
      case GuardKind::kTypeAttribute:
      case GuardKind::kCheckTypeMissing: {
        const auto* type = reinterpret_cast<PyTypeObject*>(from);
        if (!PyType_HasFeature(reinterpret_cast<PyTypeObject*>(from), Py_TPFLAGS_VALID_VERSION_TAG)) {
          remembered_ = false;
          return;
        }
        if (is_new(&type->tp_version_tag)) versions_.emplace_back(&type->tp_version_tag, type->tp_version_tag);
        break;
      }
      case GuardKind::kCheckTensor: {
        const client::Tensor& handle = handle_of(from);
        static_assert(sizeof(client::Tensor) == sizeof(void*));
        type_word(from);
        if (is_new(&handle)) handles_.push_back({&handle, handle.get(), handle->id});
        if (is_new(&handle->requires_grad)) flags_.emplace_back(&handle->requires_grad, handle->requires_grad);
        break;
      }
      default: break;
    }
  }
  remembered_ = true;
}

bool FrameGuards::check_all(PyObject* slots) {
  remembered_ = false;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    if (!run(nodes_[i], i, slots)) {
      failed_ = i;
      return false;
    }
  }
  remember();
  return true;
}

bool FrameGuards::check(PyObject* slots) {
  if (!owned_.empty()) [[unlikely]] {
    std::vector<PyObject*> before;
    before.swap(owned_);
    for (PyObject* value : before) Py_DECREF(value);
  }
  if (!remembered_) return check_all(slots);
  for (int i : first_) {
    if (!run(nodes_[i], i, slots)) {
      failed_ = i;
      return false;
    }
  }
  for (const auto& [node, object] : anchors_) {
    if (values_[node] != object) return check_all(slots);
  }
  for (const Words& word : words_) {
    if (word_at(word.at) != word.expected) return check_all(slots);
  }
  for (const auto& [at, expected] : versions_) {
    if (*at != expected) return check_all(slots);
  }
  if (replaced_handles_ != replaced_handles()) {
    for (const HandleMark& mark : handles_) {
      if (mark.at->get() != mark.handle || mark.handle->id != mark.id) return check_all(slots);
    }
    replaced_handles_ = replaced_handles();
  }
  for (const auto& [at, expected] : flags_) {
    if (*at != expected) return check_all(slots);
  }
  for (int i : last_) {
    if (!run(nodes_[i], i, slots)) {
      failed_ = i;
      return false;
    }
  }
  return true;
}

}  // namespace tt::python
