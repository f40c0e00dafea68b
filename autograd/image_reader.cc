#include "autograd/image.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "autograd/nodes/client_function_node.h"
#include "autograd/nodes/history.h"
#include "autograd/nodes/hooked_call.h"
#include "autograd/nodes/leaf.h"
#include "autograd/nodes/operator_node.h"
#include "autograd/nodes/tape.h"
#include "autograd/nodes/view_node.h"
#include "autograd/tape_image.h"

namespace tt::autograd {
namespace {

// A tape counts from 1; the largest number of a tape that goes on counting.
constexpr uint64_t kMaxSequence = uint64_t{1} << 62;

Region read_region(ImageInput* in) {
  Region region;
  region.base = in->geometry();
  region.view = in->geometry();
  region.dtype = static_cast<DType>(in->number(kNumDTypes - 1));
  region.device = decode_device(in->signed_number());
  return region;
}

std::vector<TensorMeta> read_metas(ImageInput* in) {
  const size_t count = in->count();
  in->reserve(sizeof(TensorMeta), count);
  std::vector<TensorMeta> metas;
  metas.reserve(count);
  for (size_t i = 0; i < count; ++i) metas.push_back(in->meta());
  return metas;
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
      const size_t count = in->count();
      in->reserve(2 * sizeof(int64_t), count);  // the node copies it
      std::vector<int64_t>& list = lists->ints.emplace_back(count);
      for (int64_t& value : list) value = in->signed_number();
      return Arg(absl::MakeConstSpan(list));
    }
    case Arg::Kind::kFloats: {
      const size_t count = in->count();
      in->reserve(2 * sizeof(double), count);
      std::vector<double>& list = lists->floats.emplace_back(count);
      for (double& value : list) value = in->real();
      return Arg(absl::MakeConstSpan(list));
    }
    case Arg::Kind::kString: {
      const std::string_view text = in->view();
      in->reserve(text.size());
      return Arg(text);
    }
    default: fail(ErrorKind::kRuntime, "[image] expected an argument");
  }
  arg.size = static_cast<uint32_t>(in->number(1));
  return arg;
}

}  // namespace

class TapeImage::Reader {
 public:
  Reader(ImageInput* in, const ImageObjects& objects) : tape_(Tape::current()), in_(*in), objects_(objects) {}

  void read() {
    tape_.sequence_ = in_.number(kMaxSequence);
    for (size_t count = count_of(sizeof(SharedBytes)); count > 0; --count) read_shared();
    for (size_t count = count_of(sizeof(OperatorNode) + sizeof(Place)); count > 0; --count) read_node();
    for (size_t count = count_of(sizeof(HookedCall)); count > 0; --count) read_call();
    for (size_t i = 0; i < nodes_.size(); ++i) read_links(i);
    for (size_t i = 0; i < nodes_.size(); ++i) check_sizes(i);
    for (const std::shared_ptr<HookedCall>& call : calls_) check_call(call);
    for (size_t count = count_of(sizeof(History)); count > 0; --count) read_history();
    read_named();
  }

 private:
  // What a node's links need, which are read after all nodes.
  struct Place {
    uint64_t sequence = 0, first_result = 0;
    uint32_t site = 0;
    ResultSizes results = {};
  };

  // The number of elements of a list, each of which uses this many bytes.
  size_t count_of(size_t bytes) {
    const size_t count = in_.count();
    in_.reserve(bytes, count);
    return count;
  }

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
    const std::string_view message = in_.view();
    in_.reserve(sizeof(Error) + message.size());
    return std::make_unique<const Error>(static_cast<ErrorKind>(kind), std::string(message));
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
    if (const Tensor& base = bytes->base_) {
      require(base.is_contiguous() && base->offset == 0 && base.numel() == bytes->meta_.numel() &&
                  base.dtype() == bytes->meta_.dtype && base.device() == bytes->meta_.device,
              "the watched bytes of a tensor");
      bytes->base_version_ = base.version();
    }
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
        require(function->client_node_id_ != 0, "a function with a number");
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
    node->released_ = in_.flag();
    const size_t args = count_of(sizeof(Arg));
    require(args == op->params.size(), "an operator's arguments");
    ArgLists lists;
    bool has_lists = false;
    for (size_t i = 0; i < args; ++i) {
      const Arg arg = read_arg(&in_, &lists);
      has_lists |=
          arg.kind == Arg::Kind::kInts || arg.kind == Arg::Kind::kFloats || arg.kind == Arg::Kind::kString;
      node->args_.push_back(arg);
    }
    if (has_lists) node->copy_lists();
    const size_t shapes = in_.count();
    require(shapes <= args + outputs, "the sizes of arguments and results");
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
    if (in_.flag()) {
      node->list_sizes_ = std::make_unique<std::vector<Sizes>>();
      for (size_t count = count_of(sizeof(Sizes)); count > 0; --count) node->list_sizes_->push_back(in_.sizes());
    }
    for (size_t count = count_of(sizeof(Saved)); count > 0; --count) node->saved_.push_back(read_saved());
    check_operator(*node);
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
    if (saved.bytes) {
      require(saved.meta && !saved.tensor && saved.meta->device == saved.bytes->meta_.device,
              "the layout of watched bytes");
      check_extent(*saved.meta, static_cast<size_t>(saved.bytes->meta_.numel()) * item_size(saved.bytes->meta_.dtype));
    }
    require(!saved.tensor || !saved.meta || (saved.tensor.sizes() == saved.meta->sizes &&
                                             saved.tensor.dtype() == saved.meta->dtype),
            "a saved tensor like the one that it is a copy of");
    return saved;
  }

  void read_call() {
    auto call = std::make_shared<HookedCall>();
    for (size_t count = count_of(sizeof(int64_t)); count > 0; --count) call->stops.push_back(in_.signed_number());
    for (size_t count = count_of(sizeof(Node*)); count > 0; --count) call->nodes.push_back(node().get());
    for (size_t count = count_of(sizeof(HookedCall::Input)); count > 0; --count) {
      const Node* const input = node().get();
      call->inputs.push_back({input, small_number()});
    }
    call->by_edge = in_.flag();
    calls_.push_back(std::move(call));
  }

  void read_links(size_t index) {
    Node& node = *nodes_[index];
    const Place& place = places_[index];
    for (size_t count = count_of(sizeof(Edge)); count > 0; --count) {
      Edge edge;
      edge.node = this->node();
      edge.output = small_number();
      edge.dtype = static_cast<DType>(in_.number(kNumDTypes - 1));
      if (edge.node) {
        const size_t target = number_of(*edge.node);
        // Sequences grow along the tape, so edges form no cycles.
        require(edge.node->is_leaf() || places_[target].sequence < place.sequence, "an earlier node");
      }
      node.edges.push_back(std::move(edge));
    }
    check_edges(node);
    if (!node.is_leaf()) node.reenter_tape(place.sequence, place.first_result, place.site);
    if (node.is_operator()) static_cast<OperatorNode&>(node).count_host_bytes();
    for (size_t count = count_of(2 * sizeof(Hook)); count > 0; --count) {
      Hook hook;
      hook.stop = in_.signed_number();
      hook.output = small_number();
      hook.kind = static_cast<Hook::Kind>(in_.number(static_cast<uint64_t>(Hook::Kind::kAfter)));
      const uint64_t call = in_.number(calls_.size());
      require((call != 0) == (hook.kind == Hook::Kind::kAfter) && hook.output < node.outputs(), "a hook");
      require(call != 0 || hook.stop != 0, "a hook with a number");
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

  // The results of a node have the sizes of the arguments that are computed from them.
  void check_sizes(size_t index) {
    const Node& node = *nodes_[index];
    places_[index].results = result_sizes(node);
    if (places_[index].results) in_.reserve(sizeof(Sizes), places_[index].results->size());
  }

  // Whether the node's result may be a tensor of these sizes.
  bool is_result(const Node& node, uint32_t output, const Sizes& sizes) {
    const ResultSizes& results = places_[number_of(node)].results;
    return !results || output >= results->size() || (*results)[output] == sizes;
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
    if (!history.node) return;
    require(!history.node->is_leaf() && history.output < history.node->outputs() &&
                is_result(*history.node, history.output, tensor.sizes()),
            "a node's result");
  }

  void read_named() {
    for (size_t count = count_of(SavedBytes::kWatchedBytes); count > 0; --count) {
      const int64_t number = in_.signed_number();
      Ref<SharedBytes> bytes = shared();
      require(bytes && tape_.saved_bytes_.by_number_.emplace(number, bytes).second &&
                  tape_.saved_bytes_.by_number_.size() <= SavedBytes::kMaxWatched,
              "watched bytes");
      if (bytes->storage() == nullptr) continue;
      require(tape_.saved_bytes_.by_storage_.emplace(bytes->storage(), bytes).second, "a storage that is watched once");
    }
    for (size_t count = count_of(SavedNodes::kDescribedBytes); count > 0; --count) {
      const int64_t stop = in_.signed_number();
      require(stop > 0 && stop <= INT64_MAX - static_cast<int64_t>(SavedNodes::kMaxNodes) &&
                  !tape_.saved_.described_.contains(stop) &&
                  tape_.saved_.described_.size() < SavedNodes::kMaxDescribed,
              "a new stop");
      SavedNodes::Described& described = tape_.saved_.described_[stop];
      const size_t nodes = count_of(sizeof(Ref<Node>));
      require(nodes <= SavedNodes::kMaxNodes, "the nodes of an instruction");
      for (size_t i = 0; i < nodes; ++i) described.nodes.push_back(operator_node());
      for (size_t values = count_of(sizeof(Tensor)); values > 0; --values) {
        described.values.push_back(objects_.defined_tensor(&in_));
      }
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
void read_tape(ImageInput* in, const ImageObjects& objects) { TapeImage::Reader(in, objects).read(); }

}  // namespace tt::autograd
