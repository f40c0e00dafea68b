// Tensor: a reference-counted pointer to a TensorImpl, which is a TensorMeta with a Storage.
//
// Null is a value ("undefined"): an absent optional, a gradient that was not computed. A TensorImpl belongs to one
// session's thread, but any thread may release it.
#pragma once

#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/schema/arg.h"
#include "engine/schema/meta.h"
#include "engine/schema/ref.h"
#include "engine/schema/thread_cached.h"
#include "engine/tensor/storage.h"

namespace tt {

// Autograd's data for a tensor: its tape node, its gradient, its hooks.
class AutogradMeta {
 public:
  virtual ~AutogradMeta() = default;
  // Whether the user created the tensor, as opposed to a recorded operation.
  virtual bool is_leaf() const = 0;
};

class TensorImpl final : public RefCounted, public ThreadCached<TensorImpl>, public TensorMeta {
 public:
  TensorImpl(const TensorMeta& meta, Ref<Storage> storage) : TensorMeta(meta), storage(std::move(storage)) {}
  // A view of a tensor that requires grad has a history, even if its node is not created yet.
  bool is_leaf() const { return (!autograd || autograd->is_leaf()) && !(base && requires_grad && base->requires_grad); }

  Ref<Storage> storage;
  // The viewed tensor, which is not itself a view, if a differentiable operator created this view; else null. Autograd
  // treats a write to the view as a write to the base.
  Ref<TensorImpl> base;
  // Whether `base` did not require grad when the view was made. The view requires grad when a recorded write, of the
  // base or another view, has changed that.
  bool follows_base = false;
  void set_base(Ref<TensorImpl> viewed) {
    follows_base = !viewed->requires_grad;
    base = std::move(viewed);
  }
  void follow_base() {
    if (!follows_base || requires_grad || !base->requires_grad || base->is_leaf()) [[likely]]
      return;
    requires_grad = has_gradients(dtype);
  }
  std::unique_ptr<AutogradMeta> autograd;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorImpl* impl) : impl_(impl) {}
  // Converts a rule's pointer; requires that `meta` is a TensorImpl (always true in the engine, except for a number's
  // meta). Null returns an undefined tensor.
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
  // The address of the first element, including the offset.
  void* data() const {
    // Integer arithmetic: an empty tensor may have an offset in a storage with a null address.
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

// Returns a new contiguous tensor with that dtype, shape and device; uninitialised.
Tensor empty(SizesView sizes, DType dtype, Device device);
// Returns a new contiguous tensor with `meta`'s sizes, dtype, device and requires_grad; uninitialised.
Tensor allocate(const TensorMeta& meta);
// Returns a tensor over the same bytes with the given geometry. Throws Error if the geometry exceeds the storage.
Tensor view_of(const Tensor& base, const Geometry& geometry);
// Returns a tensor over the same bytes with all of `meta` (including dtype and requires_grad).
Tensor alias(const Tensor& base, const TensorMeta& meta);
// Returns a tensor over the same bytes with the same geometry, without history.
Tensor detach(const Tensor& t);
// Returns a zero-dim tensor that holds the number, on the CPU unless `device` is meta.
Tensor scalar_tensor(const Scalar& value, DType dtype, Device device);

}  // namespace tt
