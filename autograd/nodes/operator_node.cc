#include "autograd/nodes/operator_node.h"

#include <algorithm>
#include <cstring>

#include "autograd/formulas/formulas.h"
#include "autograd/nodes/history.h"
#include "autograd/nodes/tape.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/default_float.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"

namespace tt::autograd {
namespace {

bool is_list(const Arg& arg) { return arg.kind == Arg::Kind::kTensors; }

bool needs_gradient(const TensorMeta* t) { return t && t->requires_grad; }

// "log_softmax" -> "LogSoftmaxBackward0".
std::string node_name(std::string_view op) {
  std::string name;
  bool upper = true;
  for (char c : op) {
    if (c == '_' || c == ':') {
      upper = true;
    } else {
      name += upper ? static_cast<char>(std::toupper(c)) : c;
      upper = false;
    }
  }
  return name + "Backward0";
}

bool is_overwritten(const Call& call, const Tensor& t) {
  if (!call.into) return false;
  for (const Tensor& target : call.outputs) {
    if (target->storage == t->storage) return true;
  }
  return false;
}

size_t bytes_of(const Arg& arg) {
  switch (arg.kind) {
    case Arg::Kind::kInts: return arg.size * sizeof(int64_t);
    case Arg::Kind::kFloats: return arg.size * sizeof(double);
    case Arg::Kind::kString: return arg.size;
    default: return 0;
  }
}

// Maximum number of results whose shapes are saved one by one. An operator with more results returns a list, and the
// tape keeps only the results' metadata.
constexpr size_t kFewResults = 8;

size_t padded(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

}  // namespace

OperatorNode::OperatorNode(const Call& call, const Gradient& gradient)
    : Node(static_cast<uint32_t>(std::max<size_t>(call.inferred.outputs.size(), 1))),
      op_(call.op),
      gradient_(&gradient) {
  add_edges(call);
  enter_tape();
  save_arguments(call);
  count_host_bytes();
}

void OperatorNode::count_host_bytes() {
  // kSavedBytes includes the size of a Storage object, because a saved tensor may own the last reference to its
  // storage.
  constexpr size_t kOwnBytes = 512, kSavedBytes = 768, kShapeBytes = sizeof(Shape) + 16;
  size_t bytes = kOwnBytes + edges.size() * sizeof(Edge) + args_.size() * sizeof(Arg) + saved_.size() * kSavedBytes;
  for (const Shape* shape = shapes_.get(); shape; shape = shape->next.get()) bytes += kShapeBytes;
  bytes += many_results_.capacity() * sizeof(TensorMeta);
  if (list_sizes_) bytes += list_sizes_->size() * sizeof(Sizes);
  if (kept_) bytes += kept_->tensors.size() * kSavedBytes;
  for (const Arg& arg : args_) bytes += bytes_ ? bytes_of(arg) : 0;
  set_host_bytes(bytes);
}

void OperatorNode::add_edges(const Call& call) {
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Param& param = call.op->params[i];
    const Arg& arg = call.args[i];
    if (is_list(arg)) {
      for (const TensorMeta* t : arg.list()) {
        bool needs_grad = param.differentiable && needs_gradient(t);
        edges.push_back(needs_grad ? edge_of(Tensor::from(t)) : Edge{});
        needed_ |= static_cast<uint32_t>(needs_grad) << i;
      }
    } else if (param.differentiable) {
      bool needs_grad = arg.kind == Arg::Kind::kTensor && needs_gradient(arg.tensor);
      edges.push_back(needs_grad ? edge_of(Tensor::from(arg.tensor)) : Edge{});
      needed_ |= static_cast<uint32_t>(needs_grad) << i;
    }
  }
}

GradientPart OperatorNode::read_parts() const {
  GradientPart all{needed_, 0, 0, 0};
  for (const GradientPart& part : gradient_->parts) {
    if ((part.params & needed_) == 0) continue;
    all.args |= part.args;
    all.metas |= part.metas;
    all.results |= part.results;
  }
  return all;
}

void OperatorNode::save_arguments(const Call& call) {
  const GradientPart part = read_parts();
  saved_results_ = part.results;
  bool has_bytes = false;
  int32_t edge = 0;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Arg& arg = call.args[i];
    auto at = static_cast<int16_t>(i);
    bool read = (part.args >> i & 1) != 0;
    args_.push_back(arg);
    if (arg.kind == Arg::Kind::kComplex && gradient_->conjugates) args_.back().imaginary = -arg.imaginary;
    if (is_list(arg)) {
      args_.back().tensors = nullptr;
      if (part.metas >> i & 1) list_sizes_ = std::make_unique<std::vector<Sizes>>();
      for (const TensorMeta* t : arg.list()) {
        if (read) save(call, at, edge, t);
        if (part.metas >> i & 1) list_sizes_->push_back(t ? t->sizes : Sizes());
        ++edge;
      }
      continue;
    }
    if (arg.kind == Arg::Kind::kTensor) {
      args_.back() = Arg();
      if (read)
        save(call, at, call.op->params[i].differentiable ? edge : -1, arg.tensor);
      else if (part.metas >> i & 1)
        save_shape(at, *arg.tensor);
    } else if (bytes_of(arg) > 0) {
      if (gradient_->plain >> i & 1)
        has_bytes = true;
      else
        args_.back() = Arg();  // no formula reads this argument, and it is invalid after the call
    }
    if (call.op->params[i].differentiable) ++edge;
  }
  if (has_bytes) copy_lists();
}

// Copies lists and strings, which belong to the caller, into one block.
void OperatorNode::copy_lists() {
  size_t bytes = 0;
  for (const Arg& arg : args_) bytes += padded(bytes_of(arg));
  bytes_ = std::make_unique<char[]>(bytes);
  char* to = bytes_.get();
  for (Arg& arg : args_) {
    size_t size = bytes_of(arg);
    if (size == 0) continue;
    std::memcpy(to, arg.characters, size);
    arg.characters = to;
    to += padded(size);
  }
}

void OperatorNode::save(const Call& call, int16_t param, int32_t edge, const TensorMeta* t) {
  if (!t) {
    saved_.push_back({Tensor(), 0, param, -1});
    return;
  }
  Tensor tensor = Tensor::from(t);
  if (is_overwritten(call, tensor) && Context::current().saved_tensors != SavedTensors::kNowhere) {
    GradMode off(false);
    tensor = ops::clone(tensor);
  }
  store(std::move(tensor), param, edge);
}

// Saves the tensor where the client has selected (saved_begin).
void OperatorNode::store(Tensor tensor, int16_t at, int32_t edge) {
  const SavedTensors where = Context::current().saved_tensors;
  if (where == SavedTensors::kNowhere) {
    saved_.push_back({Tensor(), 0, at, edge, std::make_unique<const TensorMeta>(tensor.meta())});
    return;
  }
  const bool is_shared = where == SavedTensors::kShared || where == SavedTensors::kTwice;
  if (is_shared) {
    if (Ref<SharedBytes> bytes = Tape::current().saved_bytes().find(*tensor->storage)) [[unlikely]] {
      auto meta = std::make_unique<TensorMeta>(tensor.meta());
      meta->requires_grad = false;
      const uint32_t version = bytes->version();
      saved_.push_back({Tensor(), version, at, edge, std::move(meta), std::move(bytes)});
      return;
    }
  }
  if (is_shared || where == SavedTensors::kClient) [[likely]] {
    tensor = detach(tensor);
    uint32_t version = Tape::current().tracked_version(tensor);
    saved_.push_back({std::move(tensor), version, at, edge});
    return;
  }
  GradMode off(false);
  auto meta = std::make_unique<const TensorMeta>(tensor.meta());
  const bool moves = where == SavedTensors::kOnCpu && is_accelerator(tensor.device().type);
  Tensor copy = moves ? ops::to_device(tensor, Device{}) : ops::clone(tensor);
  uint32_t version = Tape::current().tracked_version(copy);
  saved_.push_back({std::move(copy), version, at, edge, std::move(meta)});
}

void OperatorNode::save_results(const Call& call) {
  if (call.outputs.size() > kFewResults) {
    many_results_.reserve(call.outputs.size());
    for (const Tensor& result : call.outputs) many_results_.push_back(result.meta());
  }
  for (size_t i = 0; i < std::min(call.outputs.size(), kFewResults); ++i) {
    const Tensor& result = call.outputs[i];
    auto at = static_cast<int16_t>(~i);
    if (saved_results_ >> i & 1) store(result, at, -1);
    if (call.outputs.size() > 1 && many_results_.empty()) save_shape(at, result.meta());
  }
  if (op_->is_pointwise) save_broadcast_sizes(call);
  count_host_bytes();
}

// Saves the sizes of broadcast arguments, to which Backward::fit() sums their gradients.
void OperatorNode::save_broadcast_sizes(const Call& call) {
  const TensorMeta& result = call.outputs[0].meta();
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Arg& arg = call.args[i];
    if ((needed_ >> i & 1) && arg.tensor->sizes != result.sizes) save_shape(static_cast<int16_t>(i), *arg.tensor);
  }
}

void OperatorNode::save_shape(int16_t at, const TensorMeta& meta) {
  if (find_shape(at)) return;
  auto shape = std::make_unique<Shape>();
  shape->dtype = meta.dtype;
  shape->device = meta.device;
  shape->sizes = meta.sizes;
  shape->at = at;
  shape->next = std::move(shapes_);
  shapes_ = std::move(shape);
}

const Shape* OperatorNode::find_shape(int16_t at) const {
  for (const Shape* shape = shapes_.get(); shape; shape = shape->next.get()) {
    if (shape->at == at) return shape;
  }
  return nullptr;
}

const Saved* OperatorNode::find_saved(int16_t at) const {
  for (const Saved& saved : saved_) {
    if (saved.at == at) return &saved;
  }
  return nullptr;
}

Tensor OperatorNode::restore(const Saved& saved) {
  if (!saved.is_stored()) {
    check(saved.meta == nullptr, "the saved tensors of ", name(), " were neither stored nor supplied by the client");
    return {};
  }
  Tensor tensor = saved.bytes ? saved.bytes->view(*saved.meta, name()) : saved.tensor;
  const uint32_t version = saved.bytes ? saved.bytes->version() : Tape::current().tracked_version(tensor);
  if (version != saved.version) {
    fail(ErrorKind::kRuntime,
         "one of the variables needed for gradient computation has been modified by an inplace operation: [",
         describe(tensor.meta()), "], ", saved.at < 0 ? "a result of " : "an argument of ", name(), ", is at version ",
         version, "; expected version ", saved.version,
         " instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
         "torch.autograd.set_detect_anomaly(True).");
  }
  if (saved.meta && tensor.device() != saved.meta->device) {
    GradMode off(false);
    tensor = ops::to_device(tensor, saved.meta->device);
  }
  if (!Context::current().grad_enabled) return tensor;
  if (saved.at < 0) {
    Tensor result = detach(tensor);
    set_history(result, Ref<Node>(this), static_cast<uint32_t>(~saved.at));
    return result;
  }
  if (saved.edge < 0 || !edges[static_cast<size_t>(saved.edge)].node) return tensor;
  const Edge& edge = edges[static_cast<size_t>(saved.edge)];
  Tensor argument = detach(tensor);
  set_history(argument, edge.node, edge.output);
  return argument;
}

// Edges are ordered by parameter: one edge per entry of a tensor list, one per other differentiable parameter.
size_t OperatorNode::first_edge(size_t param) const {
  size_t edge = 0;
  for (size_t i = 0; i < param; ++i) {
    if (is_list(args_[i]))
      edge += args_[i].size;
    else
      edge += op_->params[i].differentiable ? 1 : 0;
  }
  return edge;
}

// The default dtype for a formula, in which it computes functions of integers and numbers, such as log(2) for 2^x: at
// least the gradients' precision.
static DType formula_float(const Gradients& gradients) {
  DType t = default_float();
  for (const Tensor& gradient : gradients) {
    if (gradient && has_gradients(gradient.dtype()) && !is_float8(gradient.dtype())) {
      t = promote(t, to_real(gradient.dtype()));
    }
  }
  return t;
}

std::string OperatorNode::name() const { return node_name(op_->name); }

const TensorMeta* OperatorNode::find_meta(int16_t at) const {
  if (const Shape* shape = find_shape(at)) return shape;
  const Saved* saved = find_saved(at);
  if (saved == nullptr || is_list(args_[static_cast<size_t>(at)])) return nullptr;
  return saved->meta ? saved->meta.get() : saved->tensor.get();
}

std::string OperatorNode::form() const {
  std::string text = std::string(op_->name) + ":";
  for (size_t i = 0; i < args_.size(); ++i) {
    const TensorMeta* meta = find_meta(static_cast<int16_t>(i));
    const bool needs = (needed_ >> i & 1) != 0;
    text += meta != nullptr      ? static_cast<char>('0' + std::min<size_t>(meta->sizes.size(), 9))
            : needs              ? 'g'
            : args_[i].is_none() ? '-'
                                 : 'v';
  }
  return text;
}

void OperatorNode::run(Gradients& gradients, Gradients& results) {
  check(!released_,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.");
  const DefaultFloat default_float(formula_float(gradients));
  Backward backward(*this, gradients, results);
  gradient_->run(backward);
}

void OperatorNode::release() {
  if (kept_) {
    kept_ = nullptr;
    count_host_bytes();
  }
  if (saved_.empty()) return;  // nothing was saved, so the node can run again
  released_ = true;
  saved_.clear();
  count_host_bytes();
}

std::vector<Tensor> OperatorNode::saved_tensors() const {
  std::vector<Tensor> tensors;
  for (const Saved& saved : saved_) {
    if (saved.is_stored()) tensors.push_back(saved.bytes ? saved.bytes->view(*saved.meta, name()) : saved.tensor);
  }
  return tensors;
}

void OperatorNode::leave_saved_to_client(int64_t stop) {
  for (Saved& saved : saved_) {
    if (saved.tensor) saved.meta = std::make_unique<const TensorMeta>(saved.tensor.meta());
    saved.bytes = {};
  }
  saved_stop_ = stop;
  withdraw();
}

bool OperatorNode::has_saved() const {
  return std::any_of(saved_.begin(), saved_.end(),
                     [](const Saved& saved) { return saved.is_stored() || saved.meta != nullptr; });
}

void OperatorNode::recompute_saved(int64_t stop, int64_t at) {
  saved_stop_ = stop;
  recomputed_at_ = at;
}

void OperatorNode::keep_results(std::shared_ptr<const KeptResults> results) {
  kept_ = std::move(results);
  count_host_bytes();
}

std::vector<SuppliedTensor> OperatorNode::share_saved() const {
  std::vector<SuppliedTensor> tensors;
  for (const Saved& saved : saved_) {
    if (!saved.is_stored()) continue;
    tensors.push_back({saved.tensor, saved.version, saved.bytes, saved.bytes ? *saved.meta : TensorMeta()});
  }
  return tensors;
}

void OperatorNode::withdraw() {
  for (Saved& saved : saved_) {
    saved.tensor = Tensor();
    saved.bytes = {};
  }
}

void OperatorNode::supply(absl::Span<const SuppliedTensor> tensors) {
  const std::string_view expected = is_recomputed() ? "[checkpoint] expected the function to compute the same tensors "
                                                      "when it runs again in backward, "
                                                    : "[saved_tensors_hooks] expected unpack_hook to return a tensor "
                                                      "like the one that pack_hook received, ";
  size_t next = 0;
  for (Saved& saved : saved_) {
    if (!saved.meta) continue;
    check(next < tensors.size() && (tensors[next].tensor || tensors[next].bytes), expected, "a tensor for each of the ",
          "saved tensors of ", name(), ", got ", tensors.size());
    const SuppliedTensor& supplied = tensors[next++];
    const TensorMeta& meta = supplied.bytes ? supplied.meta : supplied.tensor.meta();
    check(meta.sizes == saved.meta->sizes && meta.dtype == saved.meta->dtype && meta.device == saved.meta->device,
          expected, describe(*saved.meta), ", got ", describe(meta));
    if (supplied.bytes) {
      saved.meta = std::make_unique<const TensorMeta>(meta);
      saved.bytes = supplied.bytes;
    } else {
      saved.tensor = detach(supplied.tensor);
    }
    saved.version = supplied.version;
  }
  check(released_ || next == tensors.size(), "expected ", next, " saved tensors of ", name(), ", got ", tensors.size());
}

Tensor OperatorNode::zeros(uint32_t output) const {
  const TensorMeta* shape = many_results_.empty() ? find_shape(static_cast<int16_t>(~output)) : &many_results_[output];
  check(shape != nullptr, "[", std::string(op_->name), "] received no gradient for its only result");
  return ops::zeros(shape->sizes, shape->dtype, shape->device);
}

Tensor Backward::gradient(uint32_t output) {
  if (!gradients_[output]) gradients_[output] = node_.zeros(output);
  return gradients_[output];
}

Tensors Backward::gradients() { return Tensors(gradients_.begin(), gradients_.end()); }

Tensor Backward::restore(const Saved& saved) const {
  Tensor t = node_.restore(saved);
  return t && is_complex(t.dtype()) && node_.gradient_->conjugates ? ops::conj_physical(t) : t;
}

Tensor Backward::tensor(int16_t param) {
  const Saved* saved = node_.find_saved(param);
  return saved ? restore(*saved) : Tensor();
}

Operand Backward::operand(int16_t param) {
  const Saved* saved = node_.find_saved(param);
  if (!saved) return Operand(node_.args_[static_cast<size_t>(param)]);
  held_.push_back(restore(*saved));
  return Operand(held_.back());
}

Tensors Backward::list(int16_t param) {
  Tensors list;
  for (const Saved& saved : node_.saved_) {
    if (saved.at == param) list.push_back(restore(saved));
  }
  return list;
}

const std::vector<Sizes>& Backward::shapes() { return *node_.list_sizes_; }

const TensorMeta& Backward::meta(int16_t param) {
  static const TensorMeta kNumber;
  if (const Saved* saved = node_.find_saved(param)) return saved->meta ? *saved->meta : saved->tensor.meta();
  const Shape* shape = node_.find_shape(param);
  return shape ? *shape : kNumber;
}

Tensor Backward::result(int16_t output) {
  const Saved* saved = node_.find_saved(static_cast<int16_t>(~output));
  check(saved != nullptr, "result ", output, " of ", node_.name(), " was not saved");
  return restore(*saved);
}

// Reduces a gradient to the shape and dtype of its argument.
Tensor Backward::fit(size_t param, const Edge& edge, Tensor gradient) const {
  if (!gradient) return gradient;
  if (node_.op_->is_pointwise) {
    if (const Shape* shape = node_.find_shape(static_cast<int16_t>(param))) {
      gradient = formulas::sum_to(gradient, shape->sizes);
    }
  }
  return gradient.dtype() == edge.dtype ? gradient : formulas::cast(gradient, edge.dtype);
}

void Backward::set_gradient(size_t param, Tensor gradient) {
  size_t at = node_.first_edge(param);
  if (at < results_.size() && node_.edges[at].node) results_[at] = fit(param, node_.edges[at], std::move(gradient));
}

void Backward::set_gradient_list(size_t param, Tensors gradients) {
  size_t first = node_.first_edge(param);
  check(gradients.size() == node_.args_[param].size, "[", std::string(node_.op_->name), "] got ", gradients.size(),
        " gradients for a list of ", node_.args_[param].size, " tensors");
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Edge& edge = node_.edges[first + i];
    if (edge.node) results_[first + i] = fit(param, edge, std::move(gradients[i]));
  }
}

void Backward::set_gradients(std::initializer_list<size_t> params, Tensors gradients) {
  check(gradients.size() == params.size(), "[", std::string(node_.op_->name), "] a gradient formula returned ",
        gradients.size(), " gradients for ", params.size(), " parameters");
  size_t i = 0;
  for (size_t param : params) {
    if (needs(param)) set_gradient(param, std::move(gradients[i]));
    ++i;
  }
}

}  // namespace tt::autograd
