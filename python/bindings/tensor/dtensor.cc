#include "python/bindings/tensor/dtensor.h"

#include <pybind11/stl.h>

#include <utility>
#include <vector>

#include "client/session/default_dtype.h"
#include "engine/schema/default_float.h"
#include "python/bindings/tensor/arguments.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"
#include "python/bindings/tensor/stand_in.h"
#include "python/bindings/tensor/types.h"

namespace py = pybind11;

namespace tt::python {

PyTypeObject* dtensor_type = nullptr;

namespace {

PyObject* handler = nullptr;  // the registered function

// The tensors of the ranks that this process drives, and the Python object that describes their placement.
class Shards final : public StandIn {
 public:
  Shards(std::vector<client::Tensor> locals, py::object spec) : locals(std::move(locals)), spec(spec.release().ptr()) {}
  ~Shards() override {
    if (!Py_IsInitialized()) return;
    HoldGil held;
    Py_DECREF(spec);
  }
  client::Tensors call(const Op& op, Args args, absl::Span<const client::Tensor> into) override;
  void check_has_values(std::string_view) const override {}
  PyObject* object() const override { return nullptr; }
  PyTypeObject* type() const override { return dtensor_type; }

  const std::vector<client::Tensor> locals;
  PyObject* const spec;
};

py::object steal(PyObject* o) { return py::reinterpret_steal<py::object>(throw_if_null(o)); }

const client::Tensor& dtensor_handle(py::handle o) {
  check(ErrorKind::kType, is_tensor(o.ptr()) && is_dtensor(handle_of(o.ptr())), "expected a DTensor, got ",
        Py_TYPE(o.ptr())->tp_name);
  return handle_of(o.ptr());
}

Shards& shards_of(py::handle o) { return static_cast<Shards&>(*dtensor_handle(o)->stands_for); }

// The sizes of the results, or None if they depend on data.
py::object result_sizes(const Op& op, Args args) {
  if (op.is_dynamic) return py::none();
  const DefaultFloat default_float(client::default_dtype());
  Inference inferred;
  infer(op, args, false, &inferred);
  py::list sizes;
  for (const TensorMeta& meta : inferred.outputs) sizes.append(steal(size_object(meta.sizes)));
  return sizes;
}

py::object make_dtensor(py::handle locals, py::object spec, const std::vector<int64_t>& size, bool requires_grad) {
  std::vector<client::Tensor> tensors;
  for (py::handle o : locals) {
    check(ErrorKind::kType, is_tensor(o.ptr()) && !is_dtensor(handle_of(o.ptr())), "expected local tensors, got ",
          Py_TYPE(o.ptr())->tp_name);
    tensors.push_back(handle_of(o.ptr()));
  }
  check(ErrorKind::kValue, !tensors.empty() && dtensor_type != nullptr, "expected at least one local tensor");
  TensorMeta meta;
  meta.dtype = tensors[0]->dtype;
  meta.device = tensors[0]->device;
  meta.sizes = Sizes(size.begin(), size.end());
  meta.strides = contiguous_strides(meta.sizes);
  meta.requires_grad = requires_grad;
  auto made = make_ref<client::Handle>(std::move(meta), tensors[0]->session, 0);
  made->stands_for = Ref<RefCounted>(new Shards(std::move(tensors), std::move(spec)));
  return steal(wrap(std::move(made)));
}

py::tuple locals_of(py::handle o) {
  const Shards& shards = shards_of(o);
  return py::reinterpret_steal<py::tuple>(throw_if_null(wrap_tuple(shards.locals)));
}

// Makes the object represent the tensors of another DTensor.
void replace_dtensor(py::handle o, py::handle other) {
  dtensor_handle(o);
  replace_handle(o.ptr(), dtensor_handle(other));
}

py::tuple parameters_of(const std::string& name) {
  const Op* op = find_op(name);
  check(ErrorKind::kValue, op != nullptr, "unknown operator \"", name, "\"");
  py::list list;
  for (const Param& p : op->params) {
    list.append(py::make_tuple(std::string(p.name), p.keyword_only, p.written));
  }
  return py::make_tuple(list, op->is_pointwise, op->is_view, op->is_random, op->num_outputs);
}

}  // namespace

bool is_dtensor(const client::Tensor& handle) {
  return dynamic_cast<const Shards*>(stand_in_of(handle.get())) != nullptr;
}

client::Tensors Shards::call(const Op& op, Args args, absl::Span<const client::Tensor> into) {
  op.check_args(args);
  py::list arguments;
  for (size_t i = 0; i < args.size(); ++i) arguments.append(to_python(op.params[i], args[i]));
  py::object targets = py::none();
  if (!into.empty()) {
    py::list list;
    for (const client::Tensor& t : into) list.append(tensor_object(t.get()));
    targets = list;
  }
  const py::str name(op.name.data(), op.name.size());
  const py::object sizes = result_sizes(op, args);
  const py::object results =
      steal(PyObject_CallFunctionObjArgs(handler, name.ptr(), arguments.ptr(), sizes.ptr(), targets.ptr(), nullptr));
  client::Tensors handles;
  for (py::handle o : results) {
    check(ErrorKind::kType, is_tensor(o.ptr()), "expected tensors as results, got ", Py_TYPE(o.ptr())->tp_name);
    handles.push_back(handle_of(o.ptr()));
  }
  return handles;
}

void bind_dtensor(py::module_& m) {
  m.def(
      "register_dtensor",
      [](py::handle type, py::object function) {
        check(ErrorKind::kType,
              PyType_Check(type.ptr()) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), tensor_type),
              "expected a subclass of Tensor");
        Py_INCREF(type.ptr());
        stand_ins_exist = true;
        dtensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
        Py_XSETREF(handler, function.release().ptr());
      },
      "Sets the type of DTensors and the function (operator, arguments, result sizes, out tensors) -> results.");
  m.def("make_dtensor", &make_dtensor, py::arg("locals"), py::arg("spec"), py::arg("size"), py::arg("requires_grad"),
        "A DTensor of this size that stands for the local tensors.");
  m.def("is_dtensor", [](py::handle o) { return is_tensor(o.ptr()) && is_dtensor(handle_of(o.ptr())); });
  m.def("dtensor_locals", &locals_of, "The tensors that a DTensor stands for.");
  m.def("dtensor_spec", [](py::handle o) { return py::reinterpret_borrow<py::object>(shards_of(o).spec); });
  m.def("replace_dtensor", &replace_dtensor);
  m.def("operator_parameters", &parameters_of,
        "([(name, keyword_only, written)], is_pointwise, is_view, is_random, number of results) of an operator.");
}

}  // namespace tt::python
