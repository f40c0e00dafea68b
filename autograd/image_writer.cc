#include "autograd/image.h"

#include "autograd/nodes/client_function_node.h"
#include "autograd/nodes/history.h"
#include "autograd/nodes/hooked_call.h"
#include "autograd/nodes/operator_node.h"
#include "autograd/nodes/tape.h"
#include "autograd/nodes/view_node.h"
#include "autograd/tape_image.h"

namespace tt::autograd {
namespace {

void write_geometry(const Geometry& geometry, ImageOutput* out) {
  out->sizes(geometry.sizes);
  out->sizes(geometry.strides);
  out->signed_number(geometry.offset);
}

void write_region(const Region& region, ImageOutput* out) {
  write_geometry(region.base, out);
  write_geometry(region.view, out);
  out->number(static_cast<uint64_t>(region.dtype));
  out->signed_number(region.device.encode());
}

void write_metas(const std::vector<TensorMeta>& metas, ImageOutput* out) {
  out->number(metas.size());
  for (const TensorMeta& meta : metas) out->meta(meta);
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

}  // namespace

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
      for (const Node* node : call->nodes) out->number(node == nullptr ? 0 : node_numbers_.at(node));
      out->number(call->inputs.size());
      for (const HookedCall::Input& input : call->inputs) {
        out->number(input.node == nullptr ? 0 : node_numbers_.at(input.node));
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

void write_tape(ImageTensors* tensors, ImageOutput* out) { TapeImage::Writer(tensors).write(out); }

}  // namespace tt::autograd
