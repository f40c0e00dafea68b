#include "kernels/cpu/blas/packed_weights.h"

#include <vector>

#include "base/mutex.h"

namespace tt::cpu {
namespace {

// Maximum number of copies per storage. A storage that holds all weights of a model needs many copies; the storage of a
// single weight needs one or two.
constexpr size_t kMaxCopies = 32;

class OneDnnWeights final : public PackedWeights {
 public:
  static OneDnnWeights& of(const Tensor& t) {
    return static_cast<OneDnnWeights&>(t->storage->packed_weights([] { return std::make_unique<OneDnnWeights>(); }));
  }

  bool used_before(const Tensor& t, const dnnl::memory::desc& layout) {
    MutexLock lock(mutex_);
    drop_outdated(t);
    for (const Use& use : uses_) {
      if (use.offset == t->offset && use.layout == layout) return true;
    }
    if (uses_.size() == kMaxCopies) uses_.erase(uses_.begin());
    uses_.push_back({t->offset, layout});
    return false;
  }
  // Returns the copy of `t` in the layout `wanted`, or an undefined tensor if there is none.
  Tensor find(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted) {
    MutexLock lock(mutex_);
    drop_outdated(t);
    for (const Copy& copy : copies_) {
      if (copy.offset == t->offset && copy.plain == plain && copy.wanted == wanted) return copy.bytes;
    }
    return Tensor();
  }
  void keep(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted, Tensor bytes) {
    MutexLock lock(mutex_);
    drop_outdated(t);
    if (copies_.size() == kMaxCopies) copies_.erase(copies_.begin());
    copies_.push_back({t->offset, plain, wanted, std::move(bytes)});
  }

 private:
  struct Use {
    int64_t offset;
    dnnl::memory::desc layout;
  };
  struct Copy {
    int64_t offset;
    dnnl::memory::desc plain, wanted;
    Tensor bytes;
  };
  void drop_outdated(const Tensor& t) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (version_ == t.version() && !t->storage->is_shared()) return;
    version_ = t.version();
    uses_.clear();
    copies_.clear();
  }
  Mutex mutex_;
  uint32_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Use> uses_ ABSL_GUARDED_BY(mutex_);
  std::vector<Copy> copies_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

bool used_before(const Tensor& t, const dnnl::memory::desc& layout) {
  return OneDnnWeights::of(t).used_before(t, layout);
}

Tensor packed(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted, int threads,
              bool keep) {
  OneDnnWeights& copies = OneDnnWeights::of(t);
  if (Tensor kept = copies.find(t, plain, wanted)) return kept;
  const int64_t item = static_cast<int64_t>(item_size(t.dtype()));
  Tensor bytes = empty(Sizes{static_cast<int64_t>(wanted.get_size()) / item}, t.dtype(), t.device());
  onednn_reorder(threads, plain, t.data(), wanted, bytes.data());
  if (keep) copies.keep(t, plain, wanted, bytes);
  return bytes;
}

}  // namespace tt::cpu
