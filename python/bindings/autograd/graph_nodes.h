// teletensor._C.GraphNode: a node of the client's graph, and access to what the engine's nodes have saved.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_graph_nodes(pybind11::module_& m);

}  // namespace tt::python
