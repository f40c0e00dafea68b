#include "python/bindings/autograd/autograd.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/autograd/backward.h"
#include "client/autograd/backward_pass.h"
#include "client/session/graph.h"
#include "client/session/recomputation.h"
#include "engine/schema/op_ids.h"
#include "python/bindings/autograd/gradients.h"
#include "python/bindings/autograd/graph_nodes.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/operators.h"
#include "python/bindings/tensor/torch_dispatch.h"

namespace py = pybind11;

namespace tt::python {
namespace {

// Returns the handles of a sequence of Tensors.
Handles handles_of(py::handle list, const char* what) {
  Handles result;
  for (py::handle o : list) result.push_back(tensor_of(o, what));
  return result;
}
// Like gradients_of(list), but throws Error unless there are `count` gradients.
Handles gradients_of(py::handle list, size_t count) {
  Handles result = python::gradients_of(list);
  check(result.size() == count, "expected one gradient per tensor, got ", count, " tensors and ", result.size(),
        " gradients");
  return result;
}

void run_backward(py::handle roots, py::handle gradients, bool retain_graph, bool create_graph, py::handle inputs) {
  Handles from = handles_of(roots, "a root"), into = handles_of(inputs, "an input");
  if (from.empty()) return;
  client::backward(from, gradients_of(gradients, from.size()), retain_graph, create_graph, site_of(from[0]), into);
}

py::list run_grad(py::handle roots, py::handle gradients, py::handle inputs, bool retain_graph, bool create_graph,
                  bool allow_unused) {
  Handles from = handles_of(roots, "a root");
  check(!from.empty(), "grad requires non-empty outputs.");
  return to_python(client::grad(from, gradients_of(gradients, from.size()), handles_of(inputs, "an input"),
                                retain_graph, create_graph, allow_unused, site_of(from[0])));
}

py::list reached_leaves(py::handle roots) { return to_python(client::reached_leaves(handles_of(roots, "a root"))); }

// Makes the Python object refer to a tensor without history that shares the storage of `value`: `x.detach_()`.
void replace(py::handle o, py::handle value) {
  client::Tensor target = tensor_of(o, "tensor");
  const Arg args[] = {Arg(static_cast<const TensorMeta*>(tensor_of(value, "data").get()))};
  client::Tensor fresh = call_op(op_id::kDetach, args, *target->session)[0];
  replace_handle(o.ptr(), fresh);
}

// `x.data = y`: makes the Python object refer to a leaf that shares y's storage. Its gradient, hooks and graphs are
// kept if sizes, dtype and device are equal.
void replace_data(py::handle o, py::handle value) {
  const client::Tensor old = tensor_of(o, "tensor"), data = tensor_of(value, "data");
  check(ErrorKind::kNotImplemented, old->is_leaf(),
        "[data] expected a leaf tensor, got a tensor with a history: use copy_() or detach()");
  check(!old->requires_grad || has_gradients(data->dtype),
        "data set to a tensor that requires gradients must be floating point or complex dtype, got ",
        name(data->dtype));
  replace(o, value);
  const client::Tensor& fresh = handle_of(o.ptr());
  if (old->sizes == data->sizes && old->dtype == data->dtype && old->device == data->device) {
    client::move_leaf(old, fresh, site_of(fresh));
  } else if (old->requires_grad) {
    client::set_requires_grad(fresh, true, site_of(fresh));
  }
}

// Makes `o` refer to the tensor of `value`, including its history, as in-place views (`x.unsqueeze_(0)`) require.
void become(py::handle o, py::handle value) {
  tensor_of(o, "tensor");
  replace_handle(o.ptr(), tensor_of(value, "value"));
}

// Hooks of Python: pack(tensor) returns any object, from which unpack(object, create_graph) makes a tensor.
class PythonSavedTensorHooks final : public client::SavedTensorHooks {
 public:
  PythonSavedTensorHooks(Mode mode, py::object pack, py::object unpack)
      : SavedTensorHooks(mode), pack_(share(pack.release().ptr())), unpack_(share(unpack.release().ptr())) {}

  std::shared_ptr<void> pack(const client::Tensor& tensor) override {
    const bool grad = std::exchange(python::Mode::current().grad, false);
    PyObject* packed = PyObject_CallFunctionObjArgs(pack_.get(), steal(object_of(tensor)).ptr(), nullptr);
    python::Mode::current().grad = grad;
    return share(throw_if_null(packed));
  }
  client::Tensor unpack(const std::shared_ptr<void>& packed, bool create_graph) override {
    const bool grad = std::exchange(python::Mode::current().grad, create_graph);
    PyObject* result = PyObject_CallFunctionObjArgs(unpack_.get(), static_cast<PyObject*>(packed.get()), nullptr);
    python::Mode::current().grad = grad;
    const py::object tensor = steal(result);
    check(ErrorKind::kType, is_tensor(tensor.ptr()),
          "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
          Py_TYPE(tensor.ptr())->tp_name);
    return tensor_of(tensor, "the result of unpack_hook");
  }

 private:
  const std::shared_ptr<PyObject> pack_, unpack_;
};

// A function in Python, by methods of the object `call`: run(recomputation) runs it again and
// returns what it keeps, end() follows, and fail(message) raises the error for calls that differ.
class PythonRecomputation final : public client::Recomputation {
 public:
  PythonRecomputation(py::object call, bool checks_calls, bool lists_calls)
      : Recomputation(checks_calls, lists_calls), call_(share(call.release().ptr())) {}

  std::shared_ptr<void> run_again() override {
    const py::object self = py::cast(std::static_pointer_cast<PythonRecomputation>(shared_from_this()));
    return share(throw_if_null(PyObject_CallMethod(call_.get(), "run", "O", self.ptr())));
  }
  void end_run() override {
    const py::error_scope error;  // of the pass
    PyObject* const result = PyObject_CallMethod(call_.get(), "end", nullptr);
    if (result == nullptr) PyErr_WriteUnraisable(call_.get());
    Py_XDECREF(result);
  }

 private:
  void throw_error(const std::string& message) override {
    steal(PyObject_CallMethod(call_.get(), "fail", "s", message.c_str()));
    fail(ErrorKind::kRuntime, message);
  }

  const std::shared_ptr<PyObject> call_;
};

py::object recompute(PythonRecomputation& function, bool in_pass) {
  const std::shared_ptr<void> kept = client::BackwardPass::recompute(function, in_pass);
  return py::reinterpret_borrow<py::object>(static_cast<PyObject*>(kept.get()));
}

}  // namespace

void bind_autograd(py::module_& m) {
  m.def("backward", &run_backward);
  m.def("grad", &run_grad);
  m.def("reached_leaves", &reached_leaves, "The leaves into which a backward pass from the roots would accumulate.");
  bind_graph_nodes(m);
  m.def("replace_data", &replace_data);
  m.def("become", &become);
  m.def(
      "is_leaf_in_use",
      [](py::handle o) {
        const client::Tensor tensor = tensor_of(o, "tensor");
        const auto& node = tensor->leaf_node;
        return node && (node->ref_count() > 1 || (node->extras() != nullptr && !node->extras()->hooks.empty()));
      },
      "Whether a graph has the leaf, or it has hooks.");
  m.def(
      "mark_data",
      [](py::handle o) {
        auto& tensor = const_cast<client::Handle&>(*tensor_of(o, "tensor"));
        tensor.is_data = true;
        tensor.own_version();
      },
      "Marks the result of detach() as `.data`: backward accepts writes to it.");
  m.def(
      "mark_function_view",
      [](py::handle o) {
        auto& tensor = const_cast<client::Handle&>(*tensor_of(o, "tensor"));
        tensor.is_function_view = true;
        tensor.function_view_version = tensor.version();
      },
      "Marks a result of a Function that shares memory with another tensor: recorded writes to either are errors.");
  m.def("detach_in_place", [](py::handle o) { replace(o, o); });
  m.def("set_grads", [](py::handle leaves, py::handle grads) {
    Handles targets = handles_of(leaves, "a leaf");
    if (targets.empty()) return;
    client::set_grads(targets, gradients_of(grads, targets.size()), site_of(targets[0]));
    for (py::handle leaf : leaves) forget_grad(leaf.ptr());
  });
  m.def("push_saved_hooks", [](int mode, py::object pack, py::object unpack) {
    Mode::current().saved_hooks.push_back(std::make_shared<PythonSavedTensorHooks>(
        static_cast<client::SavedTensorHooks::Mode>(mode), std::move(pack), std::move(unpack)));
  });
  m.def("pop_saved_hooks", [] {
    auto& hooks = Mode::current().saved_hooks;
    check(!hooks.empty(), "there are no hooks of saved tensors to remove");
    const auto last = std::move(hooks.back());  // destroyed after the entry: its destructor may call Python
    hooks.pop_back();
  });
  m.def("push_own_tensors", [](py::handle first, py::handle arguments) {
    client::push_own_tensors(tensor_of(first, "a tensor"), handles_of(arguments, "an argument"));
  });
  m.def("pop_own_tensors", &client::pop_own_tensors);
  m.def("num_saved_hooks", [] { return Mode::current().saved_hooks.size(); });
  // Sets whether the run of a checkpoint keeps results that is entry `depth` of the hooks; returns the former value.
  // Has no effect if there is none.
  m.def("keep_results", [](size_t depth, bool keeps) {
    const auto& hooks = Mode::current().saved_hooks;
    auto* const run = depth < hooks.size() ? dynamic_cast<client::RecomputationRun*>(hooks[depth].get()) : nullptr;
    const bool former = run != nullptr && run->keeps_results();
    if (run != nullptr) run->keep_results(keeps);
    return former;
  });
  py::class_<client::RecomputationRun, std::shared_ptr<client::RecomputationRun>>(m, "RecomputationRun")
      .def("push", [](std::shared_ptr<client::RecomputationRun> run) { Mode::current().saved_hooks.push_back(run); })
      .def("is_complete", &client::RecomputationRun::is_complete)
      .def("check_complete", &client::RecomputationRun::check_complete);
  py::class_<PythonRecomputation, std::shared_ptr<PythonRecomputation>>(m, "Recomputation")
      .def(py::init<py::object, bool, bool>())
      .def("first_run", &PythonRecomputation::first_run)
      .def("next_run",
           [](PythonRecomputation& function, py::object on_complete) {
             const std::shared_ptr<PyObject> callable = share(on_complete.release().ptr());
             return function.next_run([callable] { steal(PyObject_CallNoArgs(callable.get())); });
           })
      .def("recompute", &recompute);
  m.def("history_in_pass", [](int64_t stop, int64_t place, py::handle o) {
    const client::Tensor tensor = tensor_of(o, "a saved tensor");
    const client::Tensor view = client::BackwardPass::history_in_pass(stop, place, tensor);
    return view == tensor ? py::reinterpret_borrow<py::object>(o) : steal(wrap(view));
  });
  m.def("retain_grad", [](py::handle o) { client::retain_grad(tensor_of(o, "tensor")); });
  m.def(
      "custom_function",
      [](py::handle inputs, py::handle outputs, py::object callable, std::string name, bool wants_undefined) {
        Handles of = handles_of(inputs, "an input");
        check(ErrorKind::kValue, !of.empty(), "a custom function expects at least one tensor, got none");
        return client::custom_function(of, handles_of(outputs, "an output"), backward_function(std::move(callable)),
                                       site_of(of[0]), std::move(name), wants_undefined);
      },
      py::arg(), py::arg(), py::arg(), py::arg("name") = "FunctionBackward", py::arg("wants_undefined") = false);
  m.def("add_hook", [](py::handle o, py::object callable) {
    client::Tensor tensor = tensor_of(o, "tensor");
    return client::add_hook(tensor, backward_function(std::move(callable)), site_of(tensor));
  });
  m.def("remove_hook", [](py::handle o, int64_t number) {
    client::Tensor tensor = tensor_of(o, "tensor");
    client::remove_hook(tensor, number, site_of(tensor));
  });
}

}  // namespace tt::python
