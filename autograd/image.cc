#include "autograd/image.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "autograd/nodes/client_function_node.h"
#include "autograd/nodes/history.h"
#include "autograd/nodes/hooked_call.h"
#include "autograd/nodes/leaf.h"
#include "autograd/nodes/operator_node.h"
#include "autograd/nodes/tape.h"
#include "autograd/nodes/view_node.h"

namespace tt::autograd {
namespace {

void require(bool ok, const char* what) { check(ok, "[image] expected ", what); }

void write_geometry(const Geometry& geometry, ImageOutput* out) {
  out->sizes(geometry.sizes);
  out->sizes(geometry.strides);
  out->signed_number(geometry.offset);
}

Geometry read_geometry(ImageInput* in) {
  Geometry geometry;
  geometry.sizes = in->sizes();
  geometry.strides = in->sizes();
  geometry.offset = in->signed_number();
  require(geometry.sizes.size() == geometry.strides.size() && geometry.offset >= 0, "a layout");
  return geometry;
}

void write_region(const Region& region, ImageOutput* out) {
  write_geometry(region.base, out);
  write_geometry(region.view, out);
  // The view's dtype follows in the next byte, plus 1, if it is another one.
  const uint64_t view_dtype = region.view_dtype == region.dtype ? 0 : static_cast<uint64_t>(region.view_dtype) + 1;
  out->number(static_cast<uint64_t>(region.dtype) | view_dtype << 8);
  out->signed_number(region.device.encode());
}

Region read_region(ImageInput* in) {
  Region region;
  region.base = read_geometry(in);
  region.view = read_geometry(in);
  const uint64_t dtypes = in->number((uint64_t{kNumDTypes} << 8) | (kNumDTypes - 1));
  require((dtypes & 0xff) < kNumDTypes, "a region's dtype");
  region.dtype = static_cast<DType>(dtypes & 0xff);
  region.view_dtype = dtypes >> 8 == 0 ? region.dtype : static_cast<DType>((dtypes >> 8) - 1);
  const bool has_parts =
      is_complex(region.dtype) != is_complex(region.view_dtype) && to_real(region.dtype) == to_real(region.view_dtype);
  require(region.view_dtype == region.dtype || has_parts, "the dtype of a view");
  region.device = decode_device(in->signed_number());
  return region;
}

void write_metas(const std::vector<TensorMeta>& metas, ImageOutput* out) {
  out->number(metas.size());
  for (const TensorMeta& meta : metas) out->meta(meta);
}

std::vector<TensorMeta> read_metas(ImageInput* in) {
  std::vector<TensorMeta> metas;
  const size_t count = in->count();
  metas.reserve(std::min<size_t>(count, 64));  // the count may be damaged
  for (size_t i = 0; i < count; ++i) metas.push_back(in->meta());
  return metas;
}

// An argument of an OperatorNode: by value, or for a tensor list only its length.
void write_arg(const Arg& arg, ImageOutput* out) {
  out->number(static_cast<uint64_t>(arg.kind));
  switch (arg.kind) {
    case Arg::Kind::kTensors: out->number(arg.size); break;
    case Arg::Kind::kBool:
    case Arg::Kind::kInt:
      out->signed_number(arg.integer);
      out->number(arg.size);
      break;
    case Arg::Kind::kFloat: out->real(arg.real); break;
    case Arg::Kind::kComplex:
      out->real(arg.real);
      out->real(arg.imaginary);
      break;
    case Arg::Kind::kInts:
      out->number(arg.size);
      for (int64_t value : arg.ints()) out->signed_number(value);
      break;
    case Arg::Kind::kFloats:
      out->number(arg.size);
      for (double value : arg.floats()) out->real(value);
      break;
    case Arg::Kind::kString: out->text(arg.string()); break;
    default: check(arg.is_none(), "[image] got an argument of kind ", static_cast<int>(arg.kind));
  }
}

// The lists of arguments that were read, until the node has copied them.
struct ArgLists {
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<double>> floats;
};

Arg read_arg(ImageInput* in, ArgLists* lists) {
  Arg arg;
  switch (static_cast<Arg::Kind>(in->number(static_cast<uint64_t>(Arg::Kind::kString)))) {
    case Arg::Kind::kNone: return arg;
    case Arg::Kind::kTensors:
      arg = Arg(absl::Span<const TensorMeta* const>());
      arg.size = static_cast<uint32_t>(in->number(UINT32_MAX));
      return arg;
    case Arg::Kind::kBool: arg = Arg(in->signed_number() != 0); break;
    case Arg::Kind::kInt: arg = Arg(in->signed_number()); break;
    case Arg::Kind::kFloat: return Arg(in->real());
    case Arg::Kind::kComplex:
      arg = Arg(in->real());
      arg.kind = Arg::Kind::kComplex;
      arg.imaginary = in->real();
      return arg;
    case Arg::Kind::kInts: {
      std::vector<int64_t>& list = lists->ints.emplace_back(in->count());
      for (int64_t& value : list) value = in->signed_number();
      return Arg(absl::MakeConstSpan(list));
    }
    case Arg::Kind::kFloats: {
      std::vector<double>& list = lists->floats.emplace_back(in->count());
      for (double& value : list) value = in->real();
      return Arg(absl::MakeConstSpan(list));
    }
    case Arg::Kind::kString: return Arg(in->view());
    default: fail(ErrorKind::kRuntime, "[image] expected an argument");
  }
  arg.size = static_cast<uint32_t>(in->number(1));
  return arg;
}

}  // namespace

// Has access to the private state of the tape's classes.
class TapeImage {
 public:
  class Writer;
  class Reader;
};

class TapeImage::Writer {
 public:
  explicit Writer(ImageTensors* tensors) : tape_(Tape::current()), tensors_(*tensors) {}

  void write(ImageOutput* out) {
    ImageOutput named;
    named.number(tape_.saved_bytes_.by_number_.size());
    for (const auto& [number, bytes] : tape_.saved_bytes_.by_number_) {
      named.signed_number(number);
      named.number(number_of(bytes));
    }
    write_described(&named);
    for (size_t tensor = 0, node = 0; tensor < tensors_.tensors().size() || node < nodes_.size();) {
      if (tensor < tensors_.tensors().size()) {
        write_history(Tensor(tensors_.tensors()[tensor++]));
      } else {
        write_node(*nodes_[node++]);
      }
    }
    out->number(tape_.sequence_);
    out->number(shared_.size());
    out->append(shared_out_);
    out->number(nodes_.size());
    out->append(nodes_out_);
    write_calls(out);
    out->append(links_out_);
    out->number(histories_);
    out->append(histories_out_);
    out->append(named);
  }

 private:
  // Return the object's number, counted from 1; 0 for null.
  uint64_t number_of(const Node* node) {
    if (node == nullptr) return 0;
    const auto [at, is_new] = node_numbers_.try_emplace(node, nodes_.size() + 1);
    if (is_new) nodes_.push_back(node);
    return at->second;
  }
  uint64_t number_of(const Ref<SharedBytes>& bytes) {
    if (!bytes) return 0;
    const auto [at, is_new] = shared_.try_emplace(bytes.get(), shared_.size() + 1);
    const uint64_t number = at->second;
    if (!is_new) return number;
    shared_out_.number(tensors_.number(bytes->base_));
    shared_out_.meta(bytes->meta_);
    shared_out_.number(bytes->version());
    write_error(bytes->error_.get(), &shared_out_);
    return number;
  }
  uint64_t number_of(const std::shared_ptr<HookedCall>& call) {
    if (!call) return 0;
    const auto [at, is_new] = call_numbers_.try_emplace(call.get(), calls_.size() + 1);
    if (!is_new) return at->second;
    calls_.push_back(call.get());
    for (const Node* node : call->nodes) number_of(node);
    for (const HookedCall::Input& input : call->inputs) number_of(input.node);
    return call_numbers_.at(call.get());
  }

  static void write_error(const Error* error, ImageOutput* out) {
    out->flag(error != nullptr);
    if (error == nullptr) return;
    out->number(static_cast<uint64_t>(error->kind()));
    out->text(error->message());
  }

  void write_history(const Tensor& tensor) {
    const History* const history = find_history(*tensor.get());
    if (history == nullptr) return;
    ++histories_;
    histories_out_.number(tensors_.number(tensor));
    histories_out_.number(number_of(history->node.get()));
    histories_out_.number(history->output);
    histories_out_.number(history->base_sequence);
    histories_out_.number(number_of(history->leaf.get()));
    histories_out_.number(tensors_.number(history->grad));
    write_error(history->grad_error.get(), &histories_out_);
  }

  void write_node(const Node& node) {
    nodes_out_.number(static_cast<uint64_t>(node.type()));
    nodes_out_.number(node.outputs());
    nodes_out_.number(node.sequence());
    nodes_out_.number(node.first_result());
    nodes_out_.number(node.site());
    switch (node.type()) {
      case Node::Type::kLeaf: break;
      case Node::Type::kOperator: write_operator(static_cast<const OperatorNode&>(node)); break;
      case Node::Type::kClientFunction: {
        const auto& function = static_cast<const ClientFunctionNode&>(node);
        nodes_out_.signed_number(function.client_node_id_);
        write_metas(function.inputs_, &nodes_out_);
        write_metas(function.outputs_, &nodes_out_);
        break;
      }
      case Node::Type::kView: write_region(static_cast<const ViewNode&>(node).region(), &nodes_out_); break;
      case Node::Type::kWrite: write_region(static_cast<const WriteNode&>(node).region(), &nodes_out_); break;
    }
    links_out_.number(node.edges.size());
    for (const Edge& edge : node.edges) {
      links_out_.number(number_of(edge.node.get()));
      links_out_.number(edge.output);
      links_out_.number(static_cast<uint64_t>(edge.dtype));
    }
    links_out_.number(node.hooks ? node.hooks->size() : 0);
    if (!node.hooks) return;
    for (const Hook& hook : *node.hooks) {
      links_out_.signed_number(hook.stop);
      links_out_.number(hook.output);
      links_out_.number(static_cast<uint64_t>(hook.kind));
      links_out_.number(number_of(hook.call));
    }
  }

  void write_operator(const OperatorNode& node) {
    ImageOutput& out = nodes_out_;
    out.number(node.op_->id);
    out.number(node.needed_);
    out.number(node.saved_results_);
    out.signed_number(node.saved_stop_);
    out.signed_number(node.recomputed_at_);
    out.flag(node.released_);
    out.number(node.args_.size());
    for (const Arg& arg : node.args_) write_arg(arg, &out);
    size_t shapes = 0;
    for (const Shape* shape = node.shapes_.get(); shape; shape = shape->next.get()) ++shapes;
    out.number(shapes);
    for (const Shape* shape = node.shapes_.get(); shape; shape = shape->next.get()) {
      out.signed_number(shape->at);
      out.number(static_cast<uint64_t>(shape->dtype));
      out.signed_number(shape->device.encode());
      out.sizes(shape->sizes);
    }
    write_metas(node.many_results_, &out);
    out.flag(node.list_sizes_ != nullptr);
    if (node.list_sizes_) {
      out.number(node.list_sizes_->size());
      for (const Sizes& sizes : *node.list_sizes_) out.sizes(sizes);
    }
    out.number(node.saved_.size());
    for (const Saved& saved : node.saved_) write_saved(saved);
  }

  void write_saved(const Saved& saved) {
    ImageOutput& out = nodes_out_;
    out.number(tensors_.number(saved.tensor));
    out.number(number_of(saved.bytes));
    // The reader counts the versions of a tensor's storage from another start, but not those of watched bytes.
    out.number(saved.tensor ? tape_.tracked_version(saved.tensor) - saved.version : saved.version);
    out.signed_number(saved.at);
    out.signed_number(saved.edge);
    out.flag(saved.meta != nullptr);
    if (saved.meta) out.meta(*saved.meta);
  }

  void write_calls(ImageOutput* out) const {
    out->number(calls_.size());
    for (const HookedCall* call : calls_) {
      out->number(call->stops.size());
      for (int64_t stop : call->stops) out->signed_number(stop);
      out->number(call->nodes.size());
      for (const Node* node : call->nodes) out->number(node_numbers_.at(node));
      out->number(call->inputs.size());
      for (const HookedCall::Input& input : call->inputs) {
        out->number(node_numbers_.at(input.node));
        out->number(input.output);
      }
      out->flag(call->by_edge);
    }
  }

  void write_described(ImageOutput* out) {
    out->number(tape_.saved_.described_.size());
    for (const auto& [stop, described] : tape_.saved_.described_) {
      out->signed_number(stop);
      out->number(described.nodes.size());
      for (const Ref<OperatorNode>& node : described.nodes) out->number(number_of(node.get()));
      out->number(described.values.size());
      for (const Tensor& value : described.values) out->number(tensors_.number(value));
    }
  }

  Tape& tape_;
  ImageTensors& tensors_;
  std::vector<const Node*> nodes_;
  std::vector<const HookedCall*> calls_;
  absl::flat_hash_map<const Node*, uint64_t> node_numbers_;
  absl::flat_hash_map<const HookedCall*, uint64_t> call_numbers_;
  absl::flat_hash_map<const SharedBytes*, uint64_t> shared_;
  size_t histories_ = 0;
  // Parts of the image, in the order of their reading: the nodes without links to each other, then the links.
  ImageOutput shared_out_, nodes_out_, links_out_, histories_out_;
};

class TapeImage::Reader {
 public:
  Reader(ImageInput* in, const ImageObjects& objects) : tape_(Tape::current()), in_(*in), objects_(objects) {}

  void read() {
    tape_.sequence_ = in_.number();
    for (size_t count = in_.count(); count > 0; --count) read_shared();
    for (size_t count = in_.count(); count > 0; --count) read_node();
    for (size_t count = in_.count(); count > 0; --count) read_call();
    for (size_t i = 0; i < nodes_.size(); ++i) read_links(i);
    for (size_t count = in_.count(); count > 0; --count) read_history();
    for (const Ref<Node>& node : nodes_) check_owned(*node);
    read_named();
  }

 private:
  // What a node's links need, which are read after all nodes.
  struct Place {
    uint64_t sequence = 0, first_result = 0;
    uint32_t site = 0;
  };

  Ref<Node> node() {
    const uint64_t number = in_.number(nodes_.size());
    return number == 0 ? Ref<Node>() : nodes_[number - 1];
  }
  Ref<Node> defined_node() {
    Ref<Node> found = node();
    require(static_cast<bool>(found), "a node");
    return found;
  }
  Ref<OperatorNode> operator_node() {
    const Ref<Node> found = defined_node();
    require(found->is_operator(), "an operator's node");
    return Ref<OperatorNode>(static_cast<OperatorNode*>(found.get()));
  }
  Ref<SharedBytes> shared() {
    const uint64_t number = in_.number(shared_.size());
    return number == 0 ? Ref<SharedBytes>() : shared_[number - 1];
  }
  std::unique_ptr<const Error> read_error() {
    if (!in_.flag()) return nullptr;
    const uint64_t kind = in_.number(static_cast<uint64_t>(ErrorKind::kPermission));
    return std::make_unique<const Error>(static_cast<ErrorKind>(kind), in_.text());
  }
  uint32_t small_number() { return static_cast<uint32_t>(in_.number(UINT32_MAX)); }
  int16_t parameter() {
    const int64_t at = in_.signed_number();
    require(at >= INT16_MIN && at <= INT16_MAX, "a parameter");
    return static_cast<int16_t>(at);
  }

  void read_shared() {
    Ref<SharedBytes> bytes(new SharedBytes);
    bytes->base_ = objects_.tensor(&in_);
    bytes->meta_ = in_.meta();
    bytes->version_ = small_number();
    if (bytes->base_) bytes->base_version_ = bytes->base_.version();
    bytes->error_ = read_error();
    shared_.push_back(std::move(bytes));
  }

  void read_node() {
    const auto type = static_cast<Node::Type>(in_.number(static_cast<uint64_t>(Node::Type::kWrite)));
    const uint32_t outputs = small_number();
    Place place;
    place.sequence = in_.number();
    place.first_result = in_.number();
    place.site = small_number();
    require(type == Node::Type::kLeaf || place.sequence <= tape_.sequence_, "a node of the tape");
    places_.push_back(place);
    switch (type) {
      case Node::Type::kLeaf: nodes_.push_back(Ref<Node>(new LeafNode(nullptr))); break;
      case Node::Type::kOperator: nodes_.push_back(read_operator(outputs)); break;
      case Node::Type::kClientFunction: {
        auto function = Ref<ClientFunctionNode>(new ClientFunctionNode(outputs));
        function->client_node_id_ = in_.signed_number();
        function->inputs_ = read_metas(&in_);
        function->outputs_ = read_metas(&in_);
        require(function->outputs_.size() == outputs, "a function's results");
        nodes_.push_back(function);
        break;
      }
      case Node::Type::kView: nodes_.push_back(Ref<Node>(new ViewNode(read_region(&in_)))); break;
      case Node::Type::kWrite: nodes_.push_back(Ref<Node>(new WriteNode(read_region(&in_)))); break;
    }
    require(nodes_.back()->outputs() == outputs, "a node's results");
  }

  Ref<Node> read_operator(uint32_t outputs) {
    const Op* const op = find_op(static_cast<uint16_t>(in_.number(UINT16_MAX)));
    const Gradient* const gradient = op == nullptr ? nullptr : find_gradient(op->id);
    require(gradient != nullptr, "an operator with a gradient");
    Ref<OperatorNode> node(new OperatorNode(*op, *gradient, outputs));
    node->needed_ = small_number();
    node->saved_results_ = small_number();
    node->saved_stop_ = in_.signed_number();
    node->recomputed_at_ = in_.signed_number();
    node->released_ = in_.flag();
    const size_t args = in_.count();
    require(args == op->params.size(), "an operator's arguments");
    ArgLists lists;
    bool has_lists = false;
    for (size_t i = 0; i < args; ++i) {
      const Arg arg = read_arg(&in_, &lists);
      has_lists |= arg.kind == Arg::Kind::kInts || arg.kind == Arg::Kind::kFloats || arg.kind == Arg::Kind::kString;
      node->args_.push_back(arg);
    }
    if (has_lists) node->copy_lists();
    const size_t shapes = in_.count();
    std::unique_ptr<Shape>* last = &node->shapes_;
    for (size_t i = 0; i < shapes; ++i) {
      *last = std::make_unique<Shape>();
      (*last)->at = parameter();
      (*last)->dtype = static_cast<DType>(in_.number(kNumDTypes - 1));
      (*last)->device = decode_device(in_.signed_number());
      (*last)->sizes = in_.sizes();
      last = &(*last)->next;
    }
    node->many_results_ = read_metas(&in_);
    require(node->many_results_.empty() || node->many_results_.size() == outputs, "an operator's results");
    if (in_.flag()) {
      node->list_sizes_ = std::make_unique<std::vector<Sizes>>();
      for (size_t count = in_.count(); count > 0; --count) node->list_sizes_->push_back(in_.sizes());
    }
    for (size_t count = in_.count(); count > 0; --count) node->saved_.push_back(read_saved());
    return node;
  }

  Saved read_saved() {
    Saved saved;
    saved.tensor = objects_.tensor(&in_);
    saved.bytes = shared();
    const uint32_t version = small_number();
    saved.version = saved.tensor ? tape_.tracked_version(saved.tensor) - version : version;
    saved.at = parameter();
    const int64_t edge = in_.signed_number();
    require(edge >= -1 && edge <= INT32_MAX, "an edge");
    saved.edge = static_cast<int32_t>(edge);
    if (in_.flag()) saved.meta = std::make_unique<const TensorMeta>(in_.meta());
    require(!saved.bytes || saved.meta, "the layout of watched bytes");
    return saved;
  }

  void read_call() {
    auto call = std::make_shared<HookedCall>();
    for (size_t count = in_.count(); count > 0; --count) call->stops.push_back(in_.signed_number());
    for (size_t count = in_.count(); count > 0; --count) call->nodes.push_back(defined_node().get());
    for (size_t count = in_.count(); count > 0; --count) {
      const Node* const input = defined_node().get();
      call->inputs.push_back({input, small_number()});
    }
    call->by_edge = in_.flag();
    require(!call->nodes.empty(), "the nodes of a call");
    calls_.push_back(std::move(call));
  }

  void read_links(size_t index) {
    Node& node = *nodes_[index];
    const Place& place = places_[index];
    size_t edges = in_.count();
    // Before they are read: other nodes may refer to any leaf, so that a leaf with an edge could own itself.
    require(!node.is_leaf() || edges == 0, "a leaf without edges");
    for (; edges > 0; --edges) {
      Edge edge;
      edge.node = this->node();
      edge.output = small_number();
      edge.dtype = static_cast<DType>(in_.number(kNumDTypes - 1));
      if (edge.node) {
        const size_t target = number_of(*edge.node);
        // Sequences grow along the tape, so edges form no cycles.
        require(edge.node->is_leaf() || places_[target].sequence < place.sequence, "an earlier node");
        require(edge.output < edge.node->outputs(), "a node's result");
      }
      node.edges.push_back(std::move(edge));
    }
    check_edges(node);
    if (!node.is_leaf()) node.reenter_tape(place.sequence, place.first_result, place.site);
    if (node.is_operator()) static_cast<OperatorNode&>(node).count_host_bytes();
    for (size_t count = in_.count(); count > 0; --count) {
      Hook hook;
      hook.stop = in_.signed_number();
      hook.output = small_number();
      hook.kind = static_cast<Hook::Kind>(in_.number(static_cast<uint64_t>(Hook::Kind::kAfter)));
      const uint64_t call = in_.number(calls_.size());
      require((call != 0) == (hook.kind == Hook::Kind::kAfter) && hook.output < node.outputs(), "a hook");
      if (call != 0) hook.call = calls_[call - 1];
      node.add_hook(std::move(hook));
    }
  }

  size_t number_of(const Node& node) {
    if (numbers_.empty()) {
      for (size_t i = 0; i < nodes_.size(); ++i) numbers_.emplace(nodes_[i].get(), i);
    }
    return numbers_.at(&node);
  }

  static void check_edges(const Node& node) {
    const size_t edges = node.edges.size();
    switch (node.type()) {
      case Node::Type::kLeaf: return;
      case Node::Type::kView: return require(edges == 1 && node.edges[0].node, "a view's edge");
      case Node::Type::kWrite: return require(edges == 2, "the edges of a write");
      case Node::Type::kClientFunction:
        return require(edges == static_cast<const ClientFunctionNode&>(node).inputs_.size(), "a function's edges");
      case Node::Type::kOperator: break;
    }
    const auto& op = static_cast<const OperatorNode&>(node);
    require(edges == op.first_edge(op.args_.size()), "an operator's edges");
    for (const Saved& saved : op.saved_) {
      require(saved.edge < static_cast<int64_t>(edges), "a saved tensor's edge");
      require(saved.at < static_cast<int64_t>(op.args_.size()) && ~saved.at < static_cast<int64_t>(op.outputs()),
              "a saved tensor's place");
    }
    check_args(op);
    if (!op.released_) check_saved(op);
  }

  // Requires the arguments' kinds: formulas read them without a check.
  static void check_args(const OperatorNode& node) {
    for (size_t i = 0; i < node.args_.size(); ++i) {
      const Param& param = node.op_->params[i];
      const Arg& arg = node.args_[i];
      const bool is_list = param.type == ParamType::kTensors;
      require(is_list == (arg.kind == Arg::Kind::kTensors) || (is_list && param.optional && arg.is_none()),
              "a list of tensors where the operator has one");
      if (is_list || param.type == ParamType::kTensor) {
        require(is_list || arg.is_none() || (param.accepts_number && arg.is_number()), "a tensor or a number");
      } else if (arg.is_none()) {
        require(param.optional || (node.gradient_->plain >> i & 1) == 0, "an argument that a formula reads");
      } else {
        require(param.accepts(arg), "an argument of the parameter's type");
        if (param.type == ParamType::kDevice) decode_device(arg.integer);
      }
    }
  }

  // Requires the tensors and sizes that the formulas read, as a call saves them.
  static void check_saved(const OperatorNode& node) {
    const GradientPart read = node.read_parts();
    require(node.saved_results_ == read.results, "the saved results of the operator's gradient");
    for (const Saved& saved : node.saved_) {
      const bool is_list = saved.at >= 0 && node.op_->params[static_cast<size_t>(saved.at)].type == ParamType::kTensors;
      require(saved.is_stored() || saved.meta || is_list, "a saved tensor");
    }
    for (size_t i = 0; i < node.args_.size(); ++i) {
      const Param& param = node.op_->params[i];
      const Arg& arg = node.args_[i];
      const auto at = static_cast<int16_t>(i);
      const bool is_read = (read.args >> i & 1) != 0, is_described = (read.metas >> i & 1) != 0;
      if (arg.kind == Arg::Kind::kTensors) {
        const auto entries =
            std::count_if(node.saved_.begin(), node.saved_.end(), [&](const Saved& saved) { return saved.at == at; });
        require(!is_read || static_cast<size_t>(entries) == arg.size, "the entries of a list of tensors");
        require(!is_described || (node.list_sizes_ && node.list_sizes_->size() == arg.size), "the sizes of a list");
      } else if (param.type == ParamType::kTensor && arg.is_none()) {
        const bool is_saved = node.find_saved(at) != nullptr;
        const bool may_lack = param.optional && (node.needed_ >> i & 1) == 0;
        require(!is_read || is_saved || may_lack, "the tensors that a gradient's formula reads");
        require(!is_described || is_saved || node.find_shape(at) != nullptr || may_lack,
                "the sizes that a gradient's formula reads");
      }
    }
    const uint32_t few = node.many_results_.empty() ? node.outputs() : 0;
    for (uint32_t i = 0; i < few && i < 32; ++i) {
      require((read.results >> i & 1) == 0 || node.find_saved(static_cast<int16_t>(~i)) != nullptr, "a saved result");
    }
  }

  // A saved tensor has no history and no base, so that a node does not own itself.
  static void check_owned(const Node& node) {
    if (!node.is_operator()) return;
    for (const Saved& saved : static_cast<const OperatorNode&>(node).saved_) {
      require(!saved.tensor || (find_history(*saved.tensor.get()) == nullptr && !saved.tensor->base),
              "a saved tensor without a history");
    }
  }

  void read_history() {
    const Tensor tensor = objects_.defined_tensor(&in_);
    require(find_history(*tensor.get()) == nullptr, "one history per tensor");
    History& history = history_of(tensor);
    history.node = node();
    history.output = small_number();
    history.base_sequence = in_.number();
    if (Ref<Node> leaf = node()) {
      require(leaf->is_leaf(), "a leaf's node");
      history.leaf = Ref<LeafNode>(static_cast<LeafNode*>(leaf.get()));
      history.leaf->move_to(tensor.get());
    }
    history.grad = objects_.tensor(&in_);
    history.grad_error = read_error();
    require(!history.node || history.output < history.node->outputs(), "a node's result");
  }

  void read_named() {
    for (size_t count = in_.count(); count > 0; --count) {
      const int64_t number = in_.signed_number();
      Ref<SharedBytes> bytes = shared();
      require(static_cast<bool>(bytes), "watched bytes");
      if (bytes->storage() != nullptr) tape_.saved_bytes_.by_storage_.emplace(bytes->storage(), bytes);
      tape_.saved_bytes_.by_number_.emplace(number, std::move(bytes));
    }
    for (size_t count = in_.count(); count > 0; --count) {
      SavedNodes::Described& described = tape_.saved_.described_[in_.signed_number()];
      for (size_t nodes = in_.count(); nodes > 0; --nodes) described.nodes.push_back(operator_node());
      for (size_t values = in_.count(); values > 0; --values) described.values.push_back(objects_.defined_tensor(&in_));
    }
  }

  Tape& tape_;
  ImageInput& in_;
  const ImageObjects& objects_;
  std::vector<Ref<SharedBytes>> shared_;
  std::vector<Ref<Node>> nodes_;
  std::vector<Place> places_;
  std::vector<std::shared_ptr<HookedCall>> calls_;
  absl::flat_hash_map<const Node*, size_t> numbers_;
};

void write_tape(ImageTensors* tensors, ImageOutput* out) { TapeImage::Writer(tensors).write(out); }

void read_tape(ImageInput* in, const ImageObjects& objects) { TapeImage::Reader(in, objects).read(); }

}  // namespace tt::autograd
