// OperatorNode::to_json(): a JSON object for the client's access to saved values.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/nodes/operator_node.h"
#include "engine/schema/error.h"
#include "engine/schema/json_text.h"

namespace tt::autograd {
namespace {

bool is_tensor(const Param& param) { return param.type == ParamType::kTensor || param.type == ParamType::kTensors; }

// Whether the node keeps the data of an argument that no formula reads.
bool is_dropped(const Param& param) {
  return param.type == ParamType::kInts || param.type == ParamType::kFloats || param.type == ParamType::kString;
}

std::string place_name(const Op& op, int16_t at) {
  return at < 0 ? absl::StrCat("result", ~at) : std::string(op.params[static_cast<size_t>(at)].name);
}

}  // namespace

int64_t OperatorNode::input_number(int32_t edge) const {
  if (edge < 0 || !edges[static_cast<size_t>(edge)].node) return -1;
  int64_t number = 0;
  for (int32_t i = 0; i < edge; ++i) number += edges[static_cast<size_t>(i)].node ? 1 : 0;
  return number;
}

// "reads": the arguments and results whose values the gradient reads; "others": the arguments that it would read for
// inputs that need no gradient; "saved": of each saved tensor its name, the number of the edge that gives its history,
// whether it is stored here, and whether the client stores it; "sizes": by name.
std::string OperatorNode::describe_saved() const {
  uint32_t args = 0, other_args = 0;
  for (const GradientPart& part : gradient_->parts) (part.params & needed_ ? args : other_args) |= part.args;
  std::vector<std::string> reads, others, saved, sizes;
  for (size_t i = 0; i < args_.size(); ++i) {
    if (args_[i].is_number()) continue;
    if (args >> i & 1) reads.push_back(json_string(op_->params[i].name));
    if (other_args >> i & 1) others.push_back(json_string(op_->params[i].name));
  }
  for (int16_t i = 0; i < 32; ++i) {
    if (saved_results_ >> i & 1) reads.push_back(json_string(place_name(*op_, static_cast<int16_t>(~i))));
  }
  for (const Saved& one : saved_) {
    saved.push_back(absl::StrCat("[", json_string(place_name(*op_, one.at)), ",", input_number(one.edge), ",",
                                 one.is_stored() ? 1 : 0, ",", one.meta && !one.is_stored() ? 1 : 0, "]"));
    if (!one.tensor && !one.meta) continue;
    const TensorMeta& meta = one.meta ? *one.meta : one.tensor.meta();
    sizes.push_back(absl::StrCat(json_string(place_name(*op_, one.at)), ":", json_list(meta.sizes)));
  }
  for (const Shape* shape = shapes_.get(); shape; shape = shape->next.get()) {
    sizes.push_back(absl::StrCat(json_string(place_name(*op_, shape->at)), ":", json_list(shape->sizes)));
  }
  return absl::StrCat("\"reads\":[", absl::StrJoin(reads, ","), "],\"others\":[", absl::StrJoin(others, ","),
                      "],\"saved\":[", absl::StrJoin(saved, ","), "],\"sizes\":{", absl::StrJoin(sizes, ","), "}");
}

std::string OperatorNode::to_json() const {
  std::vector<std::string> args;
  for (size_t i = 0; i < args_.size(); ++i) {
    const Param& param = op_->params[i];
    const Arg& arg = args_[i];
    const bool is_read = (gradient_->plain >> i & 1) != 0;
    if (arg.kind == Arg::Kind::kTensors || (arg.is_none() && (is_tensor(param) || (is_dropped(param) && !is_read))))
      continue;
    args.push_back(absl::StrCat(json_string(param.name), ":", json_value(param, arg, gradient_->conjugates)));
  }
  return absl::StrCat("{\"op\":", json_string(op_->name), ",\"released\":", released_ ? "true" : "false", ",\"args\":{",
                      absl::StrJoin(args, ","), "},", describe_saved(), "}");
}

Tensor OperatorNode::saved_at(int64_t place) {
  check(place >= 0 && place < static_cast<int64_t>(saved_.size()), "[", std::string(op_->name),
        "] expected the place of one of ", saved_.size(), " saved tensors, got ", place);
  const Saved& saved = saved_[static_cast<size_t>(place)];
  check(saved.is_stored(), "[", std::string(op_->name), "] the tensor at place ", place,
        " is not stored in the engine");
  return restore(saved);
}

}  // namespace tt::autograd
