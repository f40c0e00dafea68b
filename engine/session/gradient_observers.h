// GradientObservers: receive the gradients of chosen leaf tensors while a backward pass runs, for example to reduce
// them over a group's ranks before the pass has ended.
//
// A service of the session, created when the first observer is added. Used on the session's thread.
#pragma once

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "engine/session/service.h"
#include "engine/tensor/tensor.h"

namespace tt {

class GradientObserver {
 public:
  virtual ~GradientObserver() = default;
  // A backward pass has added to the gradient of the observer's leaf number `index`. At most once per leaf and pass.
  virtual void accumulated(size_t index, const Tensor& gradient) = 0;
};

class GradientObservers final : public SessionService {
 public:
  // Keeps the leaf until the observer is removed or destroyed. A leaf has at most one observer: throws Error
  // (RuntimeError) if it has another one.
  void add(const Tensor& leaf, std::weak_ptr<GradientObserver> observer, size_t index) {
    Entry& entry = entries_[leaf.get()];
    check(entry.observer.expired(), "the gradient of this tensor is already reduced by another module");
    entry = {leaf, std::move(observer), index};
  }
  void remove(const Tensor& leaf) { entries_.erase(leaf.get()); }
  // The observers' owners are services too, and say whether they are part of an image.
  std::string unsaved() const override { return ""; }
  void accumulated(const TensorImpl* leaf, const Tensor& gradient) const {
    const auto found = entries_.find(leaf);
    if (found == entries_.end()) return;
    if (const auto observer = found->second.observer.lock()) observer->accumulated(found->second.index, gradient);
  }

 private:
  struct Entry {
    Tensor leaf;
    std::weak_ptr<GradientObserver> observer;
    size_t index = 0;
  };
  absl::flat_hash_map<const TensorImpl*, Entry> entries_;
};

}  // namespace tt
