// FrameGuards: whether the Python state that a compiled function has read is unchanged.
//
// A list of nodes in order: each loads a value (an argument, an item, an attribute) or checks a value that an earlier
// node has loaded. After a check of all nodes has succeeded, the memory words that stay equal as long as the values
// reached through dicts do (versions of dicts and types, types of objects, handles of tensors) are compared instead of
// most nodes. All functions require the GIL and call no Python code.
#pragma once

#include <Python.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/session/size_checks.h"
#include "client/session/tensor.h"

namespace tt::python {

// The numbers are those of python/teletensor/_dynamo/guards.py.
enum class GuardKind : int {
  kSlot,      // b: index. Loads an element of the slots
  kConstant,  // object
  kDictItem,  // object: key
  kInstanceDict,
  kListItem,   // b: index
  kTupleItem,  // b: index
  kCell,       // the content of a cell
  kType,
  kTypeAttribute,  // object: name, found in the type's method resolution order
  kFunctionCode,
  kFunctionGlobals,
  kFunctionClosure,  // b: index of the cell
  kFunctionDefaults,
  kFunctionKeywordDefaults,
  kMethodSelf,
  kMethodFunction,
  kAttribute,         // object: name; only of builtin types, whose getters run no Python code
  kCall,              // the result of a call; only of functions in C without arguments that run no Python code
  kCheckIs = 32,      // object
  kCheckType,         // object: the type
  kCheckEqual,        // object: of a builtin immutable type
  kCheckLength,       // b: length of a list, tuple, dict or set
  kCheckKeys,         // object: tuple of the keys in order
  kCheckMissing,      // object: key that the dict lacks
  kCheckTypeMissing,  // object: name
  kCheckTensor,       // object: an example, of the same session
  kCheckSame,         // b: another node, of the same object
  kCheckDistinct,     // object: tuple of node numbers, of different objects; tensors also have different storages
  kCheckModes,        // grad mode, inference mode, autocast, default dtype, default device, function modes, session
  kCheckNoDict,       // the object has no instance dict
  kCheckEmptyCell,
  kCheckDynamicTensor,  // object: (an example, a tuple of the dimensions whose sizes may differ, if they are at least
                        // 2)
  kCheckDynamicInt,     // an int that may stand for a size
  kCheckSizes,          // object: (client::SizeChecks, a tuple of the nodes of its inputs: tensors and ints)
};

class FrameGuards {
 public:
  // `inputs`: nodes that load the inputs of the compiled code.
  FrameGuards(const pybind11::sequence& nodes, std::vector<int> inputs);
  // Guards of another process, whose objects are looked for in this one. `nodes`: four int32 per node: kind, parent,
  // number in `objects`, index. An object that is null there is found in the slots where a node requires its identity,
  // or as the type that a node requires; that of a kCheckTensor is a tuple of a class and describe() of an example.
  // Sets what was null in `objects`, whose contents the caller has to check. Returns null if something is missing or
  // differs. Throws Error (ValueError) if the nodes are malformed.
  static std::shared_ptr<FrameGuards> stored(std::string_view nodes, std::vector<pybind11::object>* objects,
                                             std::vector<int> inputs, PyObject* slots);
  // The metadata that a kCheckTensor compares, except the class. Equal in all processes with the same build.
  static std::string describe(PyObject* tensor);
  ~FrameGuards();
  FrameGuards(const FrameGuards&) = delete;
  FrameGuards& operator=(const FrameGuards&) = delete;

  bool check(PyObject* slots);  // a tuple
  int failed() const { return failed_; }
  // Why the check that failed last refused the sizes, if it is one of sizes.
  std::optional<std::string> sizes_failure() const;
  // The values of the nodes `inputs`, as the last check that succeeded has found them. Call it before any other code
  // runs.
  pybind11::tuple inputs() const;

 private:
  struct TensorMark {
    TensorMeta meta;
    PyTypeObject* type;
    const client::Session* session;  // compared, not used: the compiled code keeps that of its Programs
    bool is_leaf, is_inference;
    std::vector<bool> dynamic = {};  // by dimension; empty: none
    // The dimensions from the outermost in memory, if the tensor has no gaps: such a tensor of other sizes has none,
    // either. Otherwise the strides are compared.
    std::vector<size_t> order = {};
  };
  // Sizes that the code was made for.
  struct SizesMark {
    std::shared_ptr<client::SizeChecks> checks;
    std::vector<int> nodes;  // of the inputs; -1 for one that is the same for all calls
  };
  struct Modes {
    bool grad, inference, function_modes;
    std::vector<int> autocast;
    int default_dtype;
    std::optional<Device> chosen_device;
    Device tensor_type_device;
    const client::Session* session;  // which calls without a tensor argument use; null: none is open
    bool operator==(const Modes&) const;
  };
  struct Node {
    GuardKind kind;
    int parent;
    PyObject* object;  // owned
    int64_t index;
    int mark = -1;         // in tensors_ or sizes_
    bool skipped = false;  // while the words are unchanged
    // The node from which it is reached by dicts and types alone; kConstantAnchor: a constant; -1: there is none.
    int anchor = -1;
  };
  // Which tensor an object contains. The id tells a later handle at the same address.
  struct HandleMark {
    const client::Tensor* at;
    const client::Handle* handle;
    uint64_t id;
  };
  struct Words {
    const void* at;
    uint64_t expected;
  };

  FrameGuards() = default;
  static Modes current_modes();
  bool find_object(int number, pybind11::object* object, PyObject* slots);
  void add_tensor(int number, PyObject* example);
  void check_inputs() const;
  bool check_all(PyObject* slots);
  bool run(const Node& node, int number, PyObject* slots);
  bool check_tensor(const Node& node, PyObject* value) const;
  bool check_dynamic_tensor(const Node& node, PyObject* value) const;
  bool check_sizes(const Node& node) const;
  bool check_distinct(const Node& node) const;
  void plan();
  void remember();

  std::vector<Node> nodes_;
  std::vector<int> inputs_;
  std::vector<int> first_;         // nodes that are not skipped and depend on no dict or type: the anchors
  std::vector<int> last_;          // the other nodes that are not skipped
  std::vector<PyObject*> values_;  // by node; borrowed
  std::vector<PyObject*> owned_;   // values that attributes have returned
  std::vector<TensorMark> tensors_;
  std::vector<SizesMark> sizes_;
  Modes modes_;
  std::vector<std::pair<int, PyObject*>> anchors_;  // nodes whose value must be that of the last full check
  std::vector<Words> words_;
  std::vector<std::pair<const unsigned*, unsigned>> versions_;  // version tags of types
  std::vector<std::pair<const bool*, bool>> flags_;             // requires_grad of tensors
  std::vector<HandleMark> handles_;                             // compared if any object's handle was replaced since
  uint64_t replaced_handles_ = 0;
  bool remembered_ = false;
  int failed_ = -1;
};

}  // namespace tt::python
