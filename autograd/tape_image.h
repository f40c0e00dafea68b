// TapeImage: the classes that write and read the tape's part of an image (autograd/image.h). They have access to the
// private state of the tape's classes.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/schema/error.h"
#include "engine/schema/meta.h"

namespace tt::autograd {

struct HookedCall;
class Node;
class OperatorNode;

class TapeImage {
 public:
  class Writer;  // image_writer.cc
  class Reader;  // image_reader.cc

 private:
  // ---- Checks of what was read, in image_checks.cc. All throw Error.

  static void require(bool ok, std::string_view what) { check(ok, "[image] expected ", what); }

  // The sizes of a node's results; nullopt if they do not follow from what the node has.
  using ResultSizes = std::optional<std::vector<Sizes>>;
  static ResultSizes result_sizes(const Node& node);

  // A node without its edges: the arguments and saved tensors are those that the operator's formulas read.
  static void check_operator(const OperatorNode& node);
  // The edges, and their places in the node.
  static void check_edges(const Node& node);
  // The call's nodes have its hook, and its inputs are destinations of their edges, so that all of them exist as long
  // as the call does.
  static void check_call(const std::shared_ptr<HookedCall>& call);
};

}  // namespace tt::autograd
