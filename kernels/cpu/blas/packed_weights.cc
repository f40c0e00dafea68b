#include "kernels/cpu/blas/packed_weights.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"

namespace tt::cpu {
namespace {

// Maximum number of copies per storage. A storage that holds all weights of a model needs many copies; the storage of a
// single weight needs one or two.
constexpr size_t kMaxCopies = 32;
// Maximum size of a storage's copies, in storages, and a size that is always allowed: parts of a storage may overlap,
// and copies have padding.
constexpr size_t kMaxCopiedStorages = 2;
constexpr size_t kAllowedBytes = 1 << 20;

using SharedTensor = std::shared_ptr<const Tensor>;

// The copies of read-only weights, which several sessions use. The session that makes a copy keeps it with its storage
// and is charged; the others find the copy here while that storage exists. No copy is found for other bytes at the
// same address: all storages over the earlier bytes have been destroyed then, and their copies with them. Thread-safe.
class PublishedCopies {
 public:
  static PublishedCopies& instance() {
    static PublishedCopies& copies = *new PublishedCopies;
    return copies;
  }

  // The lock is held for a comparison of some layouts, before a product that takes longer by orders of magnitude.
  Tensor find(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted) {
    MutexLock lock(mutex_);
    const auto found = by_address_.find(t->storage->data());
    if (found == by_address_.end()) return Tensor();
    for (const Copy& copy : found->second) {
      if (copy.offset != t->offset || copy.plain != plain || copy.wanted != wanted) continue;
      if (const SharedTensor bytes = copy.bytes.lock()) return *bytes;
    }
    return Tensor();
  }
  void add(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted,
           const SharedTensor& bytes) {
    MutexLock lock(mutex_);
    if (by_address_.size() >= sweep_at_) {
      absl::erase_if(by_address_, [](auto& entry) { return drop_expired(entry.second); });
      sweep_at_ = 2 * std::max<size_t>(by_address_.size(), kFirstSweep);
    }
    std::vector<Copy>& copies = by_address_[t->storage->data()];
    drop_expired(copies);
    copies.push_back({t->offset, plain, wanted, bytes});
  }

 private:
  static constexpr size_t kFirstSweep = 64;
  struct Copy {
    int64_t offset;
    dnnl::memory::desc plain, wanted;
    std::weak_ptr<const Tensor> bytes;
  };
  // Returns whether no copy is left.
  static bool drop_expired(std::vector<Copy>& copies) {
    std::erase_if(copies, [](const Copy& copy) { return copy.bytes.expired(); });
    return copies.empty();
  }
  Mutex mutex_;
  absl::flat_hash_map<const void*, std::vector<Copy>> by_address_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = kFirstSweep;
};

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
      if (copy.offset == t->offset && copy.plain == plain && copy.wanted == wanted) return *copy.bytes;
    }
    return Tensor();
  }
  void keep(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted, SharedTensor bytes) {
    MutexLock lock(mutex_);
    drop_outdated(t);
    const size_t most = std::max(kAllowedBytes, kMaxCopiedStorages * t->storage->bytes());
    size_t total = wanted.get_size();
    for (const Copy& copy : copies_) total += copy.wanted.get_size();
    while (!copies_.empty() && (copies_.size() == kMaxCopies || total > most)) {
      const Copy& oldest = copies_.front();
      total -= oldest.wanted.get_size();
      std::erase_if(uses_, [&](const Use& use) {
        return use.offset == oldest.offset && (use.layout == oldest.plain || use.layout == oldest.wanted);
      });
      copies_.erase(copies_.begin());
    }
    copies_.push_back({t->offset, plain, wanted, std::move(bytes)});
  }
  void drop(const Tensor& t, const dnnl::memory::desc& plain) {
    MutexLock lock(mutex_);
    std::erase_if(copies_, [&](const Copy& copy) { return copy.offset == t->offset && copy.plain == plain; });
  }

 private:
  struct Use {
    int64_t offset;
    dnnl::memory::desc layout;
  };
  struct Copy {
    int64_t offset;
    dnnl::memory::desc plain, wanted;
    SharedTensor bytes;
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
  const auto reorder = [&](const Tensor& copy) { onednn_reorder(threads, plain, t.data(), wanted, copy.data()); };
  return packed_by(t, plain, wanted, reorder, keep);
}

Tensor packed_by(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted,
                 absl::FunctionRef<void(const Tensor& copy)> make, bool keep) {
  if (Tensor kept = find_packed(t, plain, wanted)) return kept;
  const int64_t item = static_cast<int64_t>(item_size(t.dtype()));
  Tensor bytes = empty(Sizes{static_cast<int64_t>(wanted.get_size()) / item}, t.dtype(), t.device());
  make(bytes);
  if (!keep) return bytes;
  const auto kept = std::make_shared<const Tensor>(bytes);
  OneDnnWeights::of(t).keep(t, plain, wanted, kept);
  if (t->storage->is_read_only()) PublishedCopies::instance().add(t, plain, wanted, kept);
  return bytes;
}

Tensor find_packed(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted) {
  if (Tensor kept = OneDnnWeights::of(t).find(t, plain, wanted)) return kept;
  return t->storage->is_read_only() ? PublishedCopies::instance().find(t, plain, wanted) : Tensor();
}

void drop_packed(const Tensor& t, const dnnl::memory::desc& plain) { OneDnnWeights::of(t).drop(t, plain); }

}  // namespace tt::cpu
