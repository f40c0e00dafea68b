#include "client/api/indexing.h"

#include <algorithm>
#include <array>

#include "client/api/creation.h"
#include "client/api/dispatch.h"
#include "client/api/errors.h"
#include "client/api/operators.h"
#include "client/api/session.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/rules/outer_dims.h"

namespace teletensor {
namespace {

namespace op_id = tt::op_id;

bool is_mask(const Tensor& t) { return t.dtype() == kBool || t.dtype() == kByte; }

// Applies indices, by the rules of Python's binding (python/bindings/tensor/indexing.cc): what views can express, and
// the index tensors that remain.
class Indexer {
 public:
  explicit Indexer(Tensor self) : view_(std::move(self)) {}

  void run(ArrayRef<TensorIndex> indices) {
    prepare(indices);
    for (const TensorIndex& index : indices) apply(index);
  }
  const Tensor& view() const { return view_; }
  bool is_advanced() const { return !tensors_.empty(); }
  // The list argument of operator `index`. A mask of n dimensions is one entry, but n entries of tensors_.
  std::vector<Tensor> entries() const {
    std::vector<Tensor> list;
    int64_t skip = 0;
    for (const Tensor& t : tensors_) {
      if (skip > 0) {
        --skip;
        continue;
      }
      list.push_back(t);
      if (t.defined() && is_mask(t)) skip = t.dim() - 1;
    }
    return list;
  }

 private:
  using Kind = TensorIndex::Kind;

  void prepare(ArrayRef<TensorIndex> indices) {
    int64_t consumed = 0;
    for (const TensorIndex& index : indices) {
      if (index.kind() == Kind::kTensor) {
        consumed += is_mask(index.tensor()) ? index.tensor().dim() : 1;
      } else if (index.kind() == Kind::kInteger || index.kind() == Kind::kSlice) {
        ++consumed;
      }
    }
    if (consumed > view_.dim()) {
      throw IndexError("too many indices for tensor of dimension " + std::to_string(view_.dim()));
    }
    whole_ = view_.dim() - consumed;
  }

  void apply(const TensorIndex& index) {
    switch (index.kind()) {
      case Kind::kTensor: {
        const Tensor moved = index.tensor().device().is_cpu() ? index.tensor().to(view_.device()) : index.tensor();
        put(moved);
        dim_ += is_mask(moved) ? moved.dim() : 1;
        break;
      }
      case Kind::kEllipsis: dim_ += whole_; break;
      case Kind::kNone: view_ = view_.unsqueeze(dim_++); break;
      case Kind::kSlice: slice(index.slice()); break;
      case Kind::kBool: {  // a zero-dim mask: indexes a new dimension
        view_ = view_.unsqueeze(dim_);
        const SessionGuard session(view_.session());
        put(zeros({index.integer()}, TensorOptions(kLong).device(view_.device())));
        ++dim_;
        break;
      }
      case Kind::kInteger: select(index.integer()); break;
    }
  }

  void select(int64_t i) {
    if (view_.dim() == 0) {
      throw IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` to convert it to a number");
    }
    const int64_t size = view_.size(dim_);
    if (i < -size || i >= size) {
      throw IndexError("index " + std::to_string(i) + " is out of bounds for dimension " + std::to_string(dim_) +
                       " with size " + std::to_string(size));
    }
    view_ = view_.select(dim_, i);
  }

  void slice(const Slice& bounds) {
    const int64_t step = bounds.step.value_or(1), size = view_.size(dim_);
    if (step <= 0) throw ValueError("step must be greater than zero");
    const auto clip = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
    const int64_t start = clip(bounds.start.value_or(0)), stop = bounds.stop ? clip(*bounds.stop) : size;
    if (start != 0 || stop != size || step != 1) view_ = ops::slice(view_, dim_, start, stop, step);
    ++dim_;
  }

  void put(const Tensor& tensor) {
    tensors_.resize(static_cast<size_t>(dim_));
    tensors_.push_back(tensor);
  }

  Tensor view_;
  std::vector<Tensor> tensors_;  // one per dimension of the view; undefined: the whole dimension
  int64_t dim_ = 0, whole_ = 0;
};

}  // namespace

TensorIndex::TensorIndex(const char* text) : kind_(Kind::kEllipsis) {
  if (std::string_view(text) != "...") {
    throw ValueError("expected \"...\" as an index, got \"" + std::string(text) + "\"");
  }
}

Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  Indexer indexer(*this);
  indexer.run(indices);
  if (indexer.is_advanced()) {
    const std::vector<Tensor> list = indexer.entries();
    const bool masked =
        std::any_of(list.begin(), list.end(), [](const Tensor& t) { return t.defined() && is_mask(t); });
    return masked ? ops::index_masked(indexer.view(), list) : ops::index(indexer.view(), list);
  }
  return indexer.view().is_same(*this) ? ops::alias(*this) : indexer.view();
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return index(ArrayRef<TensorIndex>(indices.begin(), indices.size()));
}

Tensor Tensor::index_put_(ArrayRef<TensorIndex> indices, const Operand& value) const {
  Indexer indexer(*this);
  indexer.run(indices);
  const Tensor& view = indexer.view();
  if (!indexer.is_advanced()) {
    const tt::Arg args[] = {view.arg(), value.arg()};
    internal::call_into(op_id::kAssign, args, view.handle());
    return *this;
  }
  const std::vector<Tensor> list = indexer.entries();
  const internal::ListArg entries(list);
  // Operator index_put takes a tensor of the same dtype for the value.
  Tensor converted;
  if (value.arg().is_number()) {
    converted = view.new_full({}, value.arg().scalar());
  } else if (const tt::Sizes outer = tt::outer_dims(*view.arg().tensor, entries.arg().list(), *value.arg().tensor);
             !outer.empty()) {
    const tt::Arg args[] = {value.arg(), tt::Arg(tt::SizesView(outer))};
    converted = internal::call(op_id::kSqueezeDim, args);
  }
  const tt::Arg values = converted.defined() ? converted.arg() : value.arg();
  const tt::Arg args[] = {view.arg(), entries.arg(), values, tt::Arg(false)};
  internal::call_into(op_id::kIndexPut, args, view.handle());
  return *this;
}
Tensor Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Operand& value) const {
  return index_put_(ArrayRef<TensorIndex>(indices.begin(), indices.size()), value);
}
Tensor Tensor::index_put_(const std::vector<Tensor>& indices, const Operand& values, bool accumulate) const {
  const internal::ListArg list(indices);
  const tt::Arg args[] = {arg(), list.arg(), values.arg(), tt::Arg(accumulate)};
  return internal::call_into(op_id::kIndexPut, args, handle());
}

Tensor Tensor::operator[](const Tensor& index) const { return this->index({index}); }

Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) const {
  return ops::slice(*this, dim, start, end, step);
}

}  // namespace teletensor
