#include "kernels/cpu/blas/packed_weights.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/mutex.h"
#include "engine/device/devices.h"
#include "engine/memory/alloc_scope.h"
#include "engine/memory/allocator.h"

namespace tt::cpu {
namespace {

// Maximum number of copies per storage. A storage that holds all weights of a model needs many copies; the storage of a
// single weight needs one or two.
constexpr size_t kMaxCopies = 32;
// Maximum size of a storage's copies, in storages, and a size that is always allowed: parts of a storage may overlap,
// and copies have padding.
constexpr size_t kMaxCopiedStorages = 2;
constexpr size_t kAllowedBytes = 1 << 20;
// Copies that are kept at first use take at most one part in this many of the memory that would be free without copies.
constexpr uint64_t kPartForCopies = 4;

using SharedTensor = std::shared_ptr<const Tensor>;

class OneDnnWeights;

// The weights of one tenant's sessions that may have copies. Thread-safe.
class TenantCopies {
 public:
  // Those of the current session's tenant, or of kNoTenant.
  static std::shared_ptr<TenantCopies> current() {
    const std::shared_ptr<Account>& account = AllocScope::current().account;
    const Tenant tenant = account ? account->tenant() : kNoTenant;
    Registry& registry = Registry::instance();
    MutexLock lock(registry.mutex);
    std::weak_ptr<TenantCopies>& found = registry.tenants[tenant];
    std::shared_ptr<TenantCopies> copies = found.lock();
    if (!copies) found = copies = std::make_shared<TenantCopies>(tenant);
    return copies;
  }
  // Null if the tenant has none.
  static std::shared_ptr<TenantCopies> find(Tenant tenant) {
    Registry& registry = Registry::instance();
    MutexLock lock(registry.mutex);
    const auto found = registry.tenants.find(tenant);
    return found == registry.tenants.end() ? nullptr : found->second.lock();
  }
  explicit TenantCopies(Tenant tenant) : tenant_(tenant) {}
  ~TenantCopies() {
    Registry& registry = Registry::instance();
    MutexLock lock(registry.mutex);
    const auto found = registry.tenants.find(tenant_);
    if (found != registry.tenants.end() && found->second.expired()) registry.tenants.erase(found);
  }
  TenantCopies(const TenantCopies&) = delete;
  TenantCopies& operator=(const TenantCopies&) = delete;

  void add(OneDnnWeights* weights) {
    MutexLock lock(mutex_);
    weights_.insert(weights);
  }
  void remove(OneDnnWeights* weights) {
    MutexLock lock(mutex_);
    weights_.erase(weights);
  }
  void count(int64_t bytes) {
    bytes_.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
    Registry::instance().bytes.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
  }
  // Whether a copy that is kept at first use leaves enough memory to tensors.
  bool has_room(uint64_t bytes, Device device) const {
    const uint64_t copies = bytes_.load(std::memory_order_relaxed);
    if (const std::shared_ptr<Account>& account = AllocScope::current().account) {
      if (!leaves_room(bytes, copies, account->held(), account->limit())) return false;
      if (const std::shared_ptr<Quota>& quota = account->quota()) {
        const QuotaLimits limits = quota->limits();
        if (!leaves_room(bytes, copies, quota->held(), limits.memory) ||
            !leaves_room(bytes, copies, quota->held(device), limits.host_memory))
          return false;
      }
    }
    const AllocatorStats stats = Devices::instance().allocator(device).stats();
    const uint64_t all = Registry::instance().bytes.load(std::memory_order_relaxed);
    return leaves_room(bytes, all, stats.all.allocated.now, stats.limit);
  }
  // Drops all copies.
  void drop();

 private:
  struct Registry {
    static Registry& instance() {
      static auto* const registry = new Registry;  // never destroyed: storages may outlive main
      return *registry;
    }
    Mutex mutex;
    absl::flat_hash_map<Tenant, std::weak_ptr<TenantCopies>> tenants ABSL_GUARDED_BY(mutex);
    std::atomic<uint64_t> bytes{0};  // of all copies
  };
  // `held` contains the bytes of the copies. 0: no limit.
  static bool leaves_room(uint64_t bytes, uint64_t copies, uint64_t held, uint64_t limit) {
    if (limit == 0) return true;
    const uint64_t others = held > copies ? held - copies : 0, room = limit > others ? limit - others : 0;
    return copies + bytes <= room / kPartForCopies;
  }

  const Tenant tenant_;
  std::atomic<uint64_t> bytes_{0};
  Mutex mutex_;  // acquired before that of an OneDnnWeights
  absl::flat_hash_set<OneDnnWeights*> weights_ ABSL_GUARDED_BY(mutex_);
};

// A copy that its tenant's copies include while it exists.
class KeptCopy {
 public:
  static SharedTensor make(Tensor bytes, std::shared_ptr<TenantCopies> tenant) {
    const auto kept = std::make_shared<const KeptCopy>(std::move(bytes), std::move(tenant));
    return {kept, &kept->bytes_};
  }
  KeptCopy(Tensor bytes, std::shared_ptr<TenantCopies> tenant) : bytes_(std::move(bytes)), tenant_(std::move(tenant)) {
    tenant_->count(static_cast<int64_t>(bytes_->storage->bytes()));
  }
  ~KeptCopy() { tenant_->count(-static_cast<int64_t>(bytes_->storage->bytes())); }
  KeptCopy(const KeptCopy&) = delete;
  KeptCopy& operator=(const KeptCopy&) = delete;

 private:
  const Tensor bytes_;
  const std::shared_ptr<TenantCopies> tenant_;
};

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
  OneDnnWeights() { tenant_->add(this); }
  ~OneDnnWeights() override { tenant_->remove(this); }
  OneDnnWeights(const OneDnnWeights&) = delete;
  OneDnnWeights& operator=(const OneDnnWeights&) = delete;

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
  const std::shared_ptr<TenantCopies>& tenant() const { return tenant_; }
  // Moves all copies to `dropped`.
  void drop_all(std::vector<SharedTensor>* dropped) {
    MutexLock lock(mutex_);
    for (Copy& copy : copies_) dropped->push_back(std::move(copy.bytes));
    copies_.clear();
    uses_.clear();
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
  const std::shared_ptr<TenantCopies> tenant_ = TenantCopies::current();
  Mutex mutex_;
  uint32_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Use> uses_ ABSL_GUARDED_BY(mutex_);
  std::vector<Copy> copies_ ABSL_GUARDED_BY(mutex_);
};

void TenantCopies::drop() {
  std::vector<SharedTensor> dropped;  // freed after the lock is released
  MutexLock lock(mutex_);
  for (OneDnnWeights* const weights : weights_) weights->drop_all(&dropped);
}

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
  OneDnnWeights& weights = OneDnnWeights::of(t);
  const SharedTensor kept = KeptCopy::make(bytes, weights.tenant());
  weights.keep(t, plain, wanted, kept);
  if (t->storage->is_read_only()) PublishedCopies::instance().add(t, plain, wanted, kept);
  return bytes;
}

Tensor find_packed(const Tensor& t, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted) {
  if (Tensor kept = OneDnnWeights::of(t).find(t, plain, wanted)) return kept;
  return t->storage->is_read_only() ? PublishedCopies::instance().find(t, plain, wanted) : Tensor();
}

bool has_room_for_copy(const Tensor& t, const dnnl::memory::desc& wanted) {
  return OneDnnWeights::of(t).tenant()->has_room(wanted.get_size(), t.device());
}

void forget_packed(uint64_t tenant) {
  if (tenant == kNoTenant) return;
  if (const std::shared_ptr<TenantCopies> copies = TenantCopies::find(tenant)) copies->drop();
}

void drop_packed(const Tensor& t, const dnnl::memory::desc& plain) { OneDnnWeights::of(t).drop(t, plain); }

}  // namespace tt::cpu
