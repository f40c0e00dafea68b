// Tensor: a counted reference to a TensorImpl, which is a TensorMeta over a Storage.
//
// Null is a value ("undefined"): an absent optional, a gradient nobody computed. A TensorImpl
// belongs to one session's thread, except that it may be dropped from any.
#pragma once

#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/schema/arg.h"
#include "engine/schema/meta.h"
#include "engine/schema/recycled.h"
#include "engine/schema/ref.h"
#include "engine/tensor/storage.h"

namespace tt {

// What autograd/ hangs on a tensor: its place on the tape, its gradient, its hooks.
class AutogradMeta {
 public:
  virtual ~AutogradMeta() = default;
  // Whether the user made the tensor, as opposed to an operation on the tape.
  virtual bool is_leaf() const = 0;
};

class TensorImpl final : public RefCounted, public Recycled<TensorImpl>, public TensorMeta {
 public:
  TensorImpl(const TensorMeta& meta, Ref<Storage> storage) : TensorMeta(meta), storage(std::move(storage)) {}
  // A view of what requires grad has a history, though it may not have been asked for yet.
  bool is_leaf() const { return (!autograd || autograd->is_leaf()) && !(base && requires_grad && base->requires_grad); }

  Ref<Storage> storage;
  // Of a view made by a differentiable operator: what it views, which is no view itself. A write
  // into the view is a write into the base, and autograd has to see it so.
  Ref<TensorImpl> base;
  std::unique_ptr<AutogradMeta> autograd;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorImpl* impl) : impl_(impl) {}
  // From a rule's view of it; requires that `meta` is a TensorImpl (in the engine it always is,
  // a number's meta excepted). Null gives an undefined tensor.
  static Tensor from(const TensorMeta* meta) {
    return Tensor(const_cast<TensorImpl*>(static_cast<const TensorImpl*>(meta)));
  }

  explicit operator bool() const { return static_cast<bool>(impl_); }
  TensorImpl* get() const { return impl_.get(); }
  TensorImpl* operator->() const { return impl_.get(); }
  const TensorMeta& meta() const { return *impl_; }

  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->device; }
  const Sizes& sizes() const { return impl_->sizes; }
  const Sizes& strides() const { return impl_->strides; }
  int64_t size(int64_t d) const { return impl_->sizes[d < 0 ? d + dim() : d]; }
  int64_t stride(int64_t d) const { return impl_->strides[d < 0 ? d + dim() : d]; }
  int64_t dim() const { return impl_->dim(); }
  int64_t numel() const { return impl_->numel(); }
  bool is_contiguous() const { return impl_->is_contiguous(); }
  bool requires_grad() const { return impl_->requires_grad; }
  // The first element's address, offset included.
  void* data() const {
    // As integers: an empty tensor may have an offset in a storage without bytes, whose address is null.
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(impl_->storage->data()) +
                                   static_cast<uintptr_t>(impl_->offset) * item_size(impl_->dtype));
  }
  template <typename T>
  T* data_as() const {
    return static_cast<T*>(data());
  }
  uint32_t version() const { return impl_->storage->version(); }
  bool same(const Tensor& other) const { return impl_ == other.impl_; }

 private:
  Ref<TensorImpl> impl_;
};

using Tensors = absl::InlinedVector<Tensor, 2>;

// A fresh contiguous tensor of that dtype, shape and device; bytes not set.
Tensor empty(SizesView sizes, DType dtype, Device device);
// A fresh tensor with exactly `meta`'s sizes, dtype and device, contiguous; requires_grad as in
// `meta`.
Tensor allocate(const TensorMeta& meta);
// The same bytes, lying as `geometry` says. Throws Error where it leaves the storage.
Tensor view_of(const Tensor& base, const Geometry& geometry);
// The same, with all of `meta` (dtype and requires_grad too).
Tensor alias(const Tensor& base, const TensorMeta& meta);
// The same bytes and geometry without history.
Tensor detach(const Tensor& t);
// A zero-dim CPU tensor that holds the number.
Tensor scalar_tensor(const Scalar& value, DType dtype, Device device);

}  // namespace tt
