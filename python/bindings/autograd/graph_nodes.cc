#include "python/bindings/autograd/graph_nodes.h"

#include <pybind11/stl.h>

#include "client/autograd/graph_nodes.h"
#include "python/bindings/autograd/gradients.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"

namespace py = pybind11;

namespace tt::python {
namespace {

// Returns a node's name in PyTorch's spelling: add -> AddBackward0.
std::string node_name(const client::GraphNode& node) {
  if (node.is_leaf()) return "AccumulateGrad";
  if (!node.op()) {
    const client::GraphExtras* extras = node.extras();
    if (extras && !extras->name.empty()) return extras->name;
    return node.edges.size() == 1 ? "AsStridedBackward0" : "GraphBackward";
  }
  std::string name;
  bool upper = true;
  for (char c : node.op()->name) {
    if (c == '_' || c == ':') {
      upper = true;
    } else {
      name += upper ? static_cast<char>(std::toupper(c)) : c;
      upper = false;
    }
  }
  return name + "Backward0";
}

// A node of the client's graph: teletensor._C.GraphNode.
struct NodeReference {
  Ref<client::GraphNode> node;
};

py::object grad_node(py::handle o) {
  client::Tensor tensor = tensor_of(o, "tensor");
  if (!tensor->requires_grad) return py::none();
  const client::GraphEdge edge = client::edge_of(tensor);
  return py::make_tuple(NodeReference{edge.node}, edge.output);
}

py::list next_functions(const NodeReference& self) {
  py::list list;
  for (const client::GraphEdge& edge : self.node->edges) {
    list.append(py::make_tuple(edge.node ? py::cast(NodeReference{edge.node}) : py::none(), edge.output));
  }
  return list;
}

// Returns the dict that belongs to the node.
py::object attributes(const NodeReference& self) {
  std::shared_ptr<void>& found = self.node->mutable_extras().attributes;
  if (!found) found = share(throw_if_null(PyDict_New()));
  return py::reinterpret_borrow<py::object>(static_cast<PyObject*>(found.get()));
}

py::object leaf_of(const NodeReference& self) {
  client::Handle* leaf = self.node->leaf();
  return leaf ? steal(object_of(client::Tensor(leaf))) : py::none();
}

// Returns the leaf of each edge that has a node, or None if the edge's node is not a leaf that exists.
py::list edges_of(const client::GraphNode& node) {
  py::list list;
  for (const client::GraphEdge& edge : node.edges) {
    if (!edge.node) continue;
    client::Handle* leaf = edge.node->leaf();
    list.append(leaf ? steal(object_of(client::Tensor(leaf))) : py::none());
  }
  return list;
}

// Returns the tensors that saved_tensors_hooks have packed, as their unpack_hook returns them, for each node of the
// engine; None if the engine stores the tensors.
py::object packed_values(const NodeReference& self) {
  const client::GraphExtras* extras = self.node->extras();
  if (!extras || extras->packed.empty()) return py::none();
  const std::vector<client::PackedNode> packed = extras->packed;  // unpack() may change the graph
  py::list list;
  for (const client::PackedNode& node : packed) list.append(to_python(node.unpack(Mode::current().grad)));
  return list;
}

py::str describe(const NodeReference& self, py::handle root) {
  const client::Tensor tensor = tensor_of(root, "root");
  return client::describe_node(tensor, *self.node, site_of(tensor));
}

// Returns a saved tensor, with the history of the edge `edge` unless it is None.
py::object saved(const NodeReference& self, py::handle root, int64_t node, int64_t place, std::optional<int64_t> edge) {
  const client::Tensor tensor = tensor_of(root, "root");
  const client::Tensor value = client::saved_value(tensor, self.node, node, place, site_of(tensor));
  if (edge) client::set_saved_history(value, self.node, *edge);
  return steal(wrap(value));
}

int64_t add_node_hook(const NodeReference& self, py::handle root, int kind, py::object callable) {
  const client::Tensor tensor = tensor_of(root, "root");
  return client::add_node_hook(tensor, self.node, static_cast<client::HookKind>(kind),
                               backward_function(std::move(callable)), site_of(tensor));
}

void remove_node_hook(const NodeReference& self, py::handle root, int64_t number) {
  const client::Tensor tensor = root.is_none() ? client::Tensor() : tensor_of(root, "root");
  client::remove_node_hook(tensor, *self.node, number, tensor ? site_of(tensor) : 0);
}

}  // namespace

void bind_graph_nodes(py::module_& m) {
  py::class_<NodeReference>(m, "GraphNode")
      .def("name", [](const NodeReference& self) { return node_name(*self.node); })
      .def("next_functions", &next_functions)
      .def("attributes", &attributes)
      .def("leaf", &leaf_of)
      .def("edges", [](const NodeReference& self) { return edges_of(*self.node); })
      .def("operator",
           [](const NodeReference& self) {
             return self.node->op() ? py::cast(std::string(self.node->op()->name)) : py::none();
           })
      .def("is_composite", [](const NodeReference& self) { return self.node->op() && self.node->op()->is_composite; })
      .def("is_function",
           [](const NodeReference& self) { return self.node->extras() && self.node->extras()->stop != 0; })
      .def("stop", [](const NodeReference& self) { return self.node->extras() ? self.node->extras()->stop : 0; })
      .def("packed", &packed_values)
      .def("describe", &describe)
      .def("saved", &saved)
      .def("add_hook", &add_node_hook)
      .def("remove_hook", &remove_node_hook)
      .def("outputs", [](const NodeReference& self) { return self.node->op() ? self.node->op()->num_outputs : 1; })
      .def("sequence", [](const NodeReference& self) { return self.node->sequence(); })
      .def("key", [](const NodeReference& self) { return reinterpret_cast<uintptr_t>(self.node.get()); });
  m.def("grad_node", &grad_node, "The node and the output's number that receive the tensor's gradient, or None.");
  m.def(
      "at_present_edge",
      [](py::handle o) {
        const client::Tensor tensor = tensor_of(o, "tensor");
        const client::Tensor view = client::at_present_edge(tensor, site_of(tensor));
        return view == tensor ? py::reinterpret_borrow<py::object>(o) : steal(wrap(view));
      },
      "A view of a result at its present place in the graph, or the leaf itself.");
}

}  // namespace tt::python
