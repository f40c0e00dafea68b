#include "client/session/saved_tensors.h"

#include "client/session/graph.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

enum Place : int64_t { kInput, kResult, kOther };

// Reads the engine's description number by number.
class Reader {
 public:
  explicit Reader(absl::Span<const int64_t> numbers) : numbers_(numbers) {}
  bool at_end() const { return numbers_.empty(); }
  int64_t next() {
    check(!numbers_.empty(), "the engine's description of saved tensors is too short");
    const int64_t number = numbers_.front();
    numbers_.remove_prefix(1);
    return number;
  }
  Sizes sizes(int64_t count) {
    check(count >= 0 && count <= static_cast<int64_t>(numbers_.size()),
          "the engine's description of saved tensors is too short");
    Sizes sizes(numbers_.begin(), numbers_.begin() + count);
    numbers_.remove_prefix(static_cast<size_t>(count));
    return sizes;
  }
  TensorMeta other() {
    TensorMeta meta;
    const int64_t dtype = next();
    check(is_valid(dtype), "the engine has described a saved tensor of an unknown dtype");
    meta.dtype = static_cast<DType>(dtype);
    meta.device = decode_device(next());
    meta.offset = next();
    const int64_t rank = next();
    meta.sizes = sizes(rank);
    meta.strides = sizes(rank);
    return meta;
  }

 private:
  absl::Span<const int64_t> numbers_;
};

const Tensor& entry(absl::Span<const Tensor> tensors, int64_t index) {
  check(index >= 0 && index < static_cast<int64_t>(tensors.size()) && tensors[static_cast<size_t>(index)],
        "the engine has described a saved tensor that does not exist");
  return tensors[static_cast<size_t>(index)];
}

PackedNode::Value pack(SavedTensorHooks& hooks, const Tensor& tensor) {
  const uint32_t version = tensor->version();
  std::shared_ptr<void> packed = hooks.pack(tensor);
  check(tensor->version() == version,
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
        "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need "
        "to perform in-place operations on the input to a pack hook.");
  return {std::move(packed), tensor->storage_number(), version};
}

}  // namespace

std::vector<Tensor> PackedNode::unpack(bool create_graph) const {
  std::vector<Tensor> tensors;
  for (const Value& value : values) {
    Tensor tensor = hooks->unpack(value.packed, create_graph);
    check(tensor->storage_number() != value.storage || tensor->version() == value.version,
          "one of the variables needed for gradient computation has been modified by an inplace operation: the tensor "
          "that unpack_hook returned is at version ",
          tensor->version(), "; expected version ", value.version, " instead");
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<PackedNode> pack_saved(const std::shared_ptr<SavedTensorHooks>& hooks, int64_t stop,
                                   absl::Span<const int64_t> description, absl::Span<const Tensor> inputs,
                                   absl::Span<const Tensor> results, absl::Span<const Tensor> others) {
  std::vector<PackedNode> nodes;
  size_t other = 0;
  for (Reader reader(description); !reader.at_end();) {
    PackedNode node{stop++, hooks, {}};
    for (int64_t left = reader.next(); left > 0; --left) {
      const int64_t place = reader.next();
      if (place == kOther) reader.other();
      const Tensor& tensor = place == kOther   ? entry(others, static_cast<int64_t>(other++))
                             : place == kInput ? entry(inputs, reader.next())
                                               : entry(results, reader.next());
      node.values.push_back(pack(*hooks, tensor));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<TensorMeta> described_others(absl::Span<const int64_t> description) {
  std::vector<TensorMeta> metas;
  for (Reader reader(description); !reader.at_end();) {
    for (int64_t left = reader.next(); left > 0; --left) {
      if (reader.next() == kOther)
        metas.push_back(reader.other());
      else
        reader.next();
    }
  }
  return metas;
}

}  // namespace tt::client
