#include "autograd/nodes/saved_nodes.h"

#include "engine/schema/error.h"

namespace tt::autograd {
namespace {

bool is_same_view(const Tensor& a, const Tensor& b) {
  return a->storage == b->storage && a->offset == b->offset && a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

// Returns the index of the tensor with the bytes of `saved`, or -1.
int64_t find(absl::Span<const Tensor> tensors, const Tensor& saved) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] && is_same_view(tensors[i], saved)) return static_cast<int64_t>(i);
  }
  return -1;
}

void describe_other(const Tensor& saved, std::vector<int64_t>* text) {
  text->push_back(static_cast<int64_t>(saved.dtype()));
  text->push_back(saved.device().encode());
  text->push_back(saved->offset);
  text->push_back(saved.dim());
  text->insert(text->end(), saved.sizes().begin(), saved.sizes().end());
  text->insert(text->end(), saved.strides().begin(), saved.strides().end());
}

}  // namespace

std::vector<int64_t> SavedNodes::end(int64_t stop, absl::Span<const Tensor> inputs, absl::Span<const Tensor> results) {
  check(stop > 0 && !described_.contains(stop), "expected a new stop, got ", stop);
  check(described_.size() < kMaxDescribed, "the tensors of ", described_.size(), " instructions were not released");
  Described described;
  std::vector<int64_t> text;
  for (Ref<OperatorNode>& node : watched_) {
    const std::vector<Tensor> saved = node->saved_tensors();
    if (saved.empty()) continue;
    text.push_back(static_cast<int64_t>(saved.size()));
    for (const Tensor& tensor : saved) {
      if (int64_t at = find(inputs, tensor); at >= 0) {
        text.insert(text.end(), {kInput, at});
      } else if (at = find(results, tensor); at >= 0) {
        text.insert(text.end(), {kResult, at});
      } else {
        text.push_back(kOther);
        describe_other(tensor, &text);
        described.values.push_back(tensor);
      }
    }
    described.nodes.push_back(std::move(node));
  }
  watched_.clear();
  check(described.nodes.size() <= kMaxNodes, "one instruction has ", described.nodes.size(), " nodes");
  if (!described.nodes.empty()) described_.emplace(stop, std::move(described));
  return text;
}

const std::vector<Tensor>& SavedNodes::values(int64_t stop) const {
  auto found = described_.find(stop);
  check(found != described_.end(), "no saved tensors are described under ", stop);
  return found->second.values;
}

void SavedNodes::release(int64_t stop) {
  auto found = described_.find(stop);
  if (found == described_.end()) return;
  for (const Ref<OperatorNode>& node : found->second.nodes) node->leave_saved_to_client(stop++);
  described_.erase(found);
}

}  // namespace tt::autograd
