#include "python/bindings/tensor/indexing.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/rules/outer_dims.h"
#include "python/bindings/tensor/convert.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/operators.h"
#include "python/bindings/tensor/read.h"
#include "python/bindings/tensor/symbolic_int.h"
#include "python/bindings/tensor/torch_dispatch.h"
#include "python/bindings/tensor/torch_function.h"

namespace tt::python {
namespace {

const TensorMeta* meta(const client::Tensor& t) { return t.get(); }

// The result of applying the parts of an index that views can express, and the index tensors that remain for operator
// `index`.
struct Indexed {
  client::Tensor view;
  std::vector<client::Tensor> tensors;  // one per dimension of `view`; null: the whole dimension
  bool advanced() const { return !tensors.empty(); }
};

void warn(const char* text) {
  if (PyErr_WarnEx(PyExc_UserWarning, text, 1) < 0) throw PythonErrorSet();
}

// Whether the object is an integer, including NumPy's; excludes arrays of integers, which have __index__ too.
bool is_integer_index(PyObject* o) { return PyLong_Check(o) || (PyIndex_Check(o) && !PySequence_Check(o)); }

// Whether a list or another sequence is read like a tuple of indices, one per dimension: PyTorch's rule, which was
// NumPy's. Calls Python code, which may raise an exception; it is cleared.
bool is_read_as_tuple(PyObject* index) {
  if (is_tensor(index) || is_array(index) || PyUnicode_Check(index) || !PySequence_Check(index)) return false;
  const Py_ssize_t count = PySequence_Size(index);
  if (count < 0) PyErr_Clear();
  if (count >= 32) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    Owned item(PySequence_GetItem(index, i));
    if (!item) return PyErr_Clear(), false;
    PyObject* o = item.get();
    if (is_tensor(o) || PySequence_Check(o) || PySlice_Check(o) || o == Py_Ellipsis || o == Py_None) return true;
  }
  return false;
}

bool is_mask(const TensorMeta& t) { return t.dtype == DType::kBool || t.dtype == DType::kUInt8; }

// Whether the tensor indexes like an int: its value selects an entry.
bool is_number(const client::Tensor& tensor) {
  return tensor && tensor->dim() == 0 && is_integral(tensor->dtype) && !is_mask(*tensor);
}

// Whether the value of such a tensor may be read, which waits for the engine, as in PyTorch. It may not in traces,
// whose Programs index by the tensors of each run.
bool has_value(const client::Handle& tensor) {
  return !tensor.stands_for && tensor.device.type != DeviceType::kMeta && !client::ProgramTrace::is_active();
}

// Calls an operator with one result, through the handlers if `method` is not null.
client::Tensor call_one(DispatchedMethod* method, uint16_t id, Args args, client::Session& session) {
  return method ? method->call(id, args, session) : std::move(call_op(id, args, session)[0]);
}

class Indexer {
 public:
  // `is_write`: whether the index is that of values to be replaced.
  Indexer(const client::Tensor& self, DispatchedMethod* method, bool is_write)
      : result_{self, {}}, method_(method), is_write_(is_write) {}

  Indexed run(PyObject* index) {
    Owned tuple;
    if (!PyTuple_Check(index) && is_read_as_tuple(index)) {
      warn(
          "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead of "
          "x[seq], or x[torch.tensor(seq)] to index the first dimension");
      tuple = Owned(throw_if_null(PySequence_Tuple(index)));
      index = tuple.get();
    }
    absl::InlinedVector<PyObject*, 6> items;
    if (PyTuple_Check(index)) {
      PyObject** first = PySequence_Fast_ITEMS(index);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i) items.push_back(decided(first[i]));
    } else {
      items.push_back(decided(index));
    }
    prepare(items);
    // Without other tensors, numbers select the same elements in `index`, and writes need not wait for them.
    numbers_alone_ = absl::c_none_of(items, [](PyObject* o) { return PyBool_Check(o); }) &&
                     absl::c_all_of(converted_, [](const client::Tensor& t) { return !t || is_number(t); });
    for (size_t i = 0; i < items.size(); ++i) apply(items[i], converted_[i]);
    return std::move(result_);
  }

 private:
  // Converts lists and arrays to tensors, and computes the number of dimensions of an ellipsis.
  void prepare(absl::Span<PyObject* const> items) {
    int64_t consumed = 0;
    for (PyObject* item : items) {
      client::Tensor& tensor = converted_.emplace_back();
      if (is_tensor(item)) {
        tensor = handle_of(item);
        if (tensor->dtype == DType::kUInt8) [[unlikely]]
          warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
      } else if (!PySlice_Check(item) && item != Py_None && item != Py_Ellipsis && !is_integer_index(item)) {
        check(PyUnicode_Check(item) ? ErrorKind::kType : ErrorKind::kIndex,
              PySequence_Check(item) && !PyUnicode_Check(item),
              "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices, got ",
              Py_TYPE(item)->tp_name);
        tensor = tensor_from(item, std::nullopt, result_.view->device, *result_.view->session);
        if (tensor->numel() == 0 && !is_integral(tensor->dtype)) {  // x[[]]
          const Arg args[] = {Arg(meta(tensor)), Arg(DType::kInt64)};
          tensor = call_one(method_, op_id::kToDtype, args, *tensor->session);
        }
      }
      if (tensor) {
        consumed += is_mask(*tensor) ? tensor->dim() : 1;
      } else if (item != Py_None && item != Py_Ellipsis && !PyBool_Check(item)) {
        ++consumed;
      }
    }
    ndim_ = result_.view->dim();
    check(ErrorKind::kIndex, consumed <= ndim_, "too many indices for tensor of dimension ", ndim_);
    whole_ = ndim_ - consumed;
  }

  void apply(PyObject* item, const client::Tensor& tensor) {
    if (is_number(tensor) && !(is_write_ && numbers_alone_) && !method_ && has_value(*tensor)) {
      select(read_scalar(tensor).to_int());
    } else if (is_number(tensor) && !numbers_alone_) {
      check(ErrorKind::kNotImplemented, !is_write_,
            "[setitem] integers in tensors beside other tensors in the index of a write; write `x[i][j] = y`");
      pick(tensor);
    } else if (tensor && tensor->dim() == 0 && is_mask(*tensor)) {  // indexes a new dimension
      view(op_id::kUnsqueeze, {Arg(dim_)});
      const Arg args[] = {Arg(meta(tensor)), Arg(int64_t{0})};
      put(call_one(method_, op_id::kUnsqueeze, args, *tensor->session));
      ++dim_;
    } else if (tensor) {
      put(tensor);
      dim_ += is_mask(*tensor) ? tensor->dim() : 1;
    } else if (item == Py_Ellipsis) {
      dim_ += whole_;
    } else if (item == Py_None) {
      view(op_id::kUnsqueeze, {Arg(dim_)});
      ++dim_;
    } else if (PySlice_Check(item)) {
      slice(item);
      ++dim_;
    } else if (PyBool_Check(item)) {  // a zero-dim mask: indexes a new dimension
      view(op_id::kUnsqueeze, {Arg(dim_)});
      const int64_t zero = 0;
      const int64_t count = item == Py_True ? 1 : 0;
      put(result_.view->session->upload({reinterpret_cast<const char*>(&zero), static_cast<size_t>(count) * 8},
                                        DType::kInt64, {&count, 1}, result_.view->device));
      ++dim_;
    } else if (is_symbolic(item) || is_recorded_size(item)) {
      view(op_id::kSelect, {Arg(dim_), Arg(argument_int(item))});
    } else {
      select(int_from(item));
    }
  }

  void select(int64_t i) {
    check(ErrorKind::kIndex, result_.view->dim() > 0,
          "invalid index of a 0-dim tensor. Use `tensor.item()` to convert it to a number");
    const int64_t size = size_here();
    check(ErrorKind::kIndex, i >= -size && i < size, "index ", i, " is out of bounds for dimension ",
          ndim_ - result_.view->dim() + dim_, " with size ", size);
    view(op_id::kSelect, {Arg(dim_), Arg(i)});
  }

  // The size of the dimension that the next item indexes. A second ellipsis may have passed the last one.
  int64_t size_here() const {
    check(ErrorKind::kIndex, dim_ < result_.view->dim(), "Dimension out of range (expected to be less than ",
          result_.view->dim(), ", but got ", dim_, ")");
    return result_.view->sizes[static_cast<size_t>(dim_)];
  }

  // A bound of a slice as an argument: of a traced tensor, or one that a Python class handles, it is not adjusted to
  // the size, which may differ between runs.
  static int64_t bound(PyObject* o, int64_t otherwise) {
    if (o == Py_None) return otherwise;
    if (is_symbolic(o) || is_recorded_size(o)) return argument_int(o);
    const Py_ssize_t number = PyNumber_AsSsize_t(o, nullptr);  // bounds beyond 64 bits are clipped
    if (number == -1 && PyErr_Occurred()) throw PythonErrorSet();
    return std::max<int64_t>(number, -(int64_t{1} << 62));  // before all elements
  }

  void traced_slice(const PySliceObject& slice) {
    const int64_t start = bound(slice.start, 0), stop = bound(slice.stop, INT64_MAX);
    const int64_t step = slice.step == Py_None ? 1 : argument_int(slice.step);
    check(ErrorKind::kValue, step > 0 || is_recorded_size(slice.step), "step must be greater than zero");
    if (start == 0 && stop == INT64_MAX && step == 1) return;
    view(op_id::kSlice, {Arg(dim_), Arg(start), Arg(stop), Arg(step)});
  }

  void slice(PyObject* item) {
    auto* bounds = reinterpret_cast<PySliceObject*>(item);
    const bool is_traced = client::ProgramTrace::of_tensor(*result_.view) != nullptr || is_wrapper(result_.view.get());
    if (is_traced || is_symbolic(bounds->start) || is_symbolic(bounds->stop)) [[unlikely]]
      return traced_slice(*bounds);
    Py_ssize_t start = 0, stop = 0, step = 0;
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) throw PythonErrorSet();
    check(ErrorKind::kValue, step > 0, "step must be greater than zero");
    const int64_t size = size_here();
    PySlice_AdjustIndices(size, &start, &stop, step);
    if (start == 0 && stop == size && step == 1) return;
    view(op_id::kSlice, {Arg(dim_), Arg(int64_t{start}), Arg(int64_t{stop}), Arg(int64_t{step})});
  }

  // Like select(), but a copy: of the entry that the tensor names.
  void pick(const client::Tensor& tensor) {
    const client::Tensor index = on_device(tensor);
    std::vector<const TensorMeta*> list(static_cast<size_t>(dim_));
    list.push_back(index.get());
    view(op_id::kIndex, {Arg(absl::Span<const TensorMeta* const>(list))});
  }

  client::Tensor on_device(const client::Tensor& tensor) {
    if (Device there = result_.view->device; tensor->device != there && tensor->device.type == DeviceType::kCPU) {
      const Arg args[] = {Arg(meta(tensor)), Arg(there)};  // moves indices to the device, as PyTorch does
      return call_one(method_, op_id::kToDevice, args, *tensor->session);
    }
    return tensor;
  }

  void put(const client::Tensor& tensor) {
    result_.tensors.resize(static_cast<size_t>(dim_));
    result_.tensors.push_back(on_device(tensor));
  }

  void view(uint16_t op, std::initializer_list<Arg> rest) {
    absl::InlinedVector<Arg, 6> args{Arg(meta(result_.view))};
    args.insert(args.end(), rest.begin(), rest.end());
    result_.view = call_one(method_, op, args, *result_.view->session);
  }

  Indexed result_;
  DispatchedMethod* const method_;
  const bool is_write_;
  bool numbers_alone_ = false;  // among the tensors
  std::vector<client::Tensor> converted_;
  int64_t dim_ = 0;
  int64_t ndim_ = 0;  // of the tensor
  int64_t whole_ = 0;
};

// Returns the list argument of operator `index`. A mask of n dimensions is one entry of the list, but n entries of
// `indexed.tensors`.
std::vector<const TensorMeta*> entries(const Indexed& indexed) {
  std::vector<const TensorMeta*> list;
  int64_t skip = 0;
  for (const client::Tensor& t : indexed.tensors) {
    if (skip > 0) {
      --skip;
      continue;
    }
    list.push_back(t.get());
    if (t && is_mask(*t)) skip = t->dim() - 1;
  }
  return list;
}

client::Tensor value_tensor(PyObject* value, const client::Tensor& view) {
  if (is_tensor(value)) return handle_of(value);
  if (PyLong_CheckExact(value) && view->dtype != DType::kUInt64) int_from(value);  // refuses those beyond 64 bits
  return tensor_from(value, view->dtype, view->device, *view->session);
}

bool is_plain_bound(PyObject* o) { return o == Py_None || PyLong_CheckExact(o); }

// Whether the index cannot override indexing; compares types only.
bool is_plain_index(PyObject* o) {
  if (PyLong_CheckExact(o) || o == Py_None || o == Py_Ellipsis || is_plain_tensor(o)) return true;
  if (PySlice_Check(o)) {
    auto* slice = reinterpret_cast<PySliceObject*>(o);
    return is_plain_bound(slice->start) && is_plain_bound(slice->stop) && is_plain_bound(slice->step);
  }
  if (!PyTuple_CheckExact(o)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    PyObject* item = PyTuple_GET_ITEM(o, i);
    if (PyTuple_CheckExact(item) || !is_plain_index(item)) return false;
  }
  return true;
}

}  // namespace

PyObject* get_item(PyObject* self, PyObject* index) noexcept {
  return guard([&]() -> PyObject* {
    std::optional<DispatchedMethod> dispatched;
    if (!is_plain_tensor(self) || !is_plain_index(index)) [[unlikely]] {
      if (PyObject* result = call_overridden_method("__getitem__", {self, index})) return result;
      PyObject* args[] = {self, index};
      if (is_dispatched({nullptr, args, 2, nullptr})) dispatched.emplace(std::initializer_list<PyObject*>{self, index});
    }
    DispatchedMethod* method = dispatched ? &*dispatched : nullptr;
    Indexed indexed = Indexer(handle_of(self), method, /*is_write=*/false).run(index);
    client::Session& session = *indexed.view->session;
    if (indexed.advanced()) {
      std::vector<const TensorMeta*> list = entries(indexed);
      const Arg args[] = {Arg(meta(indexed.view)), Arg(absl::Span<const TensorMeta* const>(list))};
      bool masked = std::any_of(list.begin(), list.end(), [](const TensorMeta* t) { return t && is_mask(*t); });
      indexed.view = call_one(method, masked ? op_id::kIndexMasked : op_id::kIndex, args, session);
    } else if (indexed.view == handle_of(self)) {  // x[...] also returns a view
      const Arg args[] = {Arg(meta(indexed.view))};
      indexed.view = call_one(method, op_id::kAlias, args, session);
    }
    return method ? method->object_of(indexed.view) : wrap(std::move(indexed.view));
  });
}

int set_item(PyObject* self, PyObject* index, PyObject* value) noexcept {
  return guard(
      [&] {
        check(ErrorKind::kType, value != nullptr, "Tensor does not support deleting items");
        std::optional<DispatchedMethod> dispatched;
        if (!is_plain_tensor(self) || !is_plain_index(index) ||
            !(is_plain_tensor(value) || PyFloat_CheckExact(value))) {
          if (Owned(call_overridden_method("__setitem__", {self, index, value}))) return 0;
          PyObject* args[] = {self, index, value};
          if (is_dispatched({nullptr, args, 3, nullptr}))
            dispatched.emplace(std::initializer_list<PyObject*>{self, index, value});
        }
        DispatchedMethod* method = dispatched ? &*dispatched : nullptr;
        Indexed indexed = Indexer(handle_of(self), method, /*is_write=*/true).run(index);
        client::Tensor& view = indexed.view;
        client::Tensor source = value_tensor(value, view);
        auto write = [&](uint16_t id, Args args) {
          const auto into = absl::MakeConstSpan(&view, 1);
          if (method) {
            method->call(id, args, *view->session, into);
          } else {
            call_op(id, args, *view->session, into);
          }
          return 0;
        };
        if (!indexed.advanced()) {
          // A zero-dim tensor of the CPU is a number for assign.
          if (source->device != view->device && source->dim() > 0) {
            const Arg args[] = {Arg(meta(source)), Arg(view->device)};
            source = call_one(method, op_id::kToDevice, args, *view->session);
          }
          const Arg args[] = {Arg(meta(view)), Arg(meta(source))};
          return write(op_id::kAssign, args);
        }
        if (source->dtype != view->dtype) {
          const auto& tensors = indexed.tensors;
          const auto count = absl::c_count_if(tensors, [](const client::Tensor& t) { return t != nullptr; });
          if (absl::c_all_of(tensors, [](const client::Tensor& t) { return !t || is_number(t); })) {  // as for a view
            const Arg args[] = {Arg(meta(source)), Arg(view->dtype)};
            source = call_one(method, op_id::kToDtype, args, *view->session);
          } else if (count == 1 && is_mask(*tensors.back()) && source->numel() == 1) {  // as masked_fill()
            const Arg args[] = {Arg(meta(source)), Arg(SizesView())};
            source = call_one(method, op_id::kReshape, args, *view->session);
          }
        }
        std::vector<const TensorMeta*> list = entries(indexed);
        if (const Sizes outer = outer_dims(*view, list, *source); !outer.empty()) {
          const Arg args[] = {Arg(meta(source)), Arg(SizesView(outer))};
          source = call_one(method, op_id::kSqueezeDim, args, *view->session);
        }
        const Arg args[] = {Arg(meta(view)), Arg(absl::Span<const TensorMeta* const>(list)), Arg(meta(source)),
                            Arg(false)};
        return write(op_id::kIndexPut, args);
      },
      -1);
}

}  // namespace tt::python
