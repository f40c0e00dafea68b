#include "kernels/cpu/blas/onednn.h"

#include <algorithm>
#include <list>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "engine/memory/alloc_scope.h"
#include "engine/memory/allocator.h"
#include "engine/schema/error.h"
#include "engine/tensor/storage.h"

namespace tt::cpu {

namespace {

// Bounds of the cache. A network has a few hundred different shapes of 50 to 300 KB each. A tenant keeps at most half,
// so that it does not displace all primitives of the others.
constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr size_t kMaxTenantBytes = size_t{32} << 20;
constexpr size_t kIdleBytes = size_t{8} << 20;  // what remains after a session whose tenant has others
constexpr size_t kReorderBytes = size_t{16} << 10;

dnnl::stream& thread_stream() {
  thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

// A larger scratchpad is allocated in the calling session's memory for the duration of the call.
constexpr size_t kThreadScratchpad = size_t{1} << 20;

// Returns this thread's scratchpad. The buffer grows and never shrinks, because it is small and needed in every call.
void* thread_scratchpad(size_t bytes) {
  struct Free {
    void operator()(void* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  thread_local std::unique_ptr<void, Free> buffer;
  thread_local size_t size = 0;
  if (bytes > size) {
    buffer.reset();
    size = 0;
    buffer.reset(::operator new (bytes, std::align_val_t{64}));
    size = bytes;
  }
  return buffer.get();
}

[[noreturn]] void rethrow(const dnnl::error& e) {
  ErrorKind kind = e.status == dnnl_out_of_memory   ? ErrorKind::kOutOfMemory
                   : e.status == dnnl_unimplemented ? ErrorKind::kNotImplemented
                                                    : ErrorKind::kRuntime;
  fail(kind, "oneDNN: ", e.what());
}

}  // namespace

// The memory objects of one execution, reused because creating a memory object costs more than finding the primitive.
struct PrimitiveUse::Arguments {
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> list;
};

struct CachedPrimitive {
  PreparedPrimitive prepared;
  Mutex mutex;
  std::vector<std::unique_ptr<PrimitiveUse::Arguments>> idle ABSL_GUARDED_BY(mutex);

  std::unique_ptr<PrimitiveUse::Arguments> take() {
    {
      MutexLock lock(mutex);
      if (!idle.empty()) {
        auto arguments = std::move(idle.back());
        idle.pop_back();
        return arguments;
      }
    }
    auto arguments = std::make_unique<PrimitiveUse::Arguments>();
    for (const auto& [argument, desc] : prepared.arguments) {
      arguments->memories.push_back(dnnl::memory(desc, onednn_engine(), nullptr));
      arguments->list.push_back({argument, arguments->memories.back().get()});
    }
    return arguments;
  }
  void release(std::unique_ptr<PrimitiveUse::Arguments> arguments) {
    MutexLock lock(mutex);
    idle.push_back(std::move(arguments));
  }
};

namespace {

class PrimitiveCache {
 public:
  static PrimitiveCache& instance() {
    static auto* cache = new PrimitiveCache;  // never destroyed: threads may still use it at exit
    return *cache;
  }

  std::shared_ptr<CachedPrimitive> find(const PrimitiveKey& key) {
    MutexLock lock(mutex_);
    auto it = places_.find(key);
    if (it == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, it->second);
    return it->second->primitive;
  }

  // Charges `account` for a primitive that it is about to create; drops older ones of its tenant if they leave no room.
  HostCharge charge(const std::shared_ptr<Account>& account, size_t bytes) {
    if (!account) return {};
    Entries dropped;
    if (!account->has_host_room(bytes)) {
      MutexLock lock(mutex_);
      drop(0, account->tenant(), &dropped);
    }
    dropped.clear();  // refunds
    check(ErrorKind::kOutOfMemory, account->has_host_room(bytes), "out of memory: requested ", bytes,
          " bytes for compiled code of a kernel; ", account->bookkeeping_refusal(bytes));
    return {account, bytes};
  }

  // If two threads create the same primitive, the first one inserted is kept.
  std::shared_ptr<CachedPrimitive> insert(const PrimitiveKey& key, size_t bytes, Tenant tenant, HostCharge charge,
                                          PreparedPrimitive prepared) {
    auto made = std::make_shared<CachedPrimitive>();
    made->prepared = std::move(prepared);
    Entries dropped;  // destroyed after the lock is released: freeing compiled code takes a while
    MutexLock lock(mutex_);
    if (auto it = places_.find(key); it != places_.end()) return it->second->primitive;
    if (bytes > kMaxTenantBytes) return made;  // used once
    drop(kMaxTenantBytes - bytes, tenant, &dropped);
    drop(kMaxBytes - bytes, std::nullopt, &dropped);
    entries_.push_front({key, made, bytes, tenant, std::move(charge)});
    places_.emplace(key, entries_.begin());
    return made;
  }

  void forget(Tenant tenant) {
    Entries dropped;
    MutexLock lock(mutex_);
    tenant == kNoTenant ? drop(kIdleBytes, std::nullopt, &dropped) : drop(0, tenant, &dropped);
  }

 private:
  struct Entry {
    PrimitiveKey key;
    std::shared_ptr<CachedPrimitive> primitive;
    size_t bytes;
    Tenant tenant;  // of the session that created it; kNoTenant: none
    HostCharge charge;
  };
  using Entries = std::list<Entry>;

  // Disables oneDNN's own cache: ours is searched without building a descriptor.
  PrimitiveCache() { dnnl::set_primitive_cache_capacity(0); }

  // Moves entries of a tenant, by default of all, to `dropped`, the least recently used first, until the others have at
  // most `most` bytes.
  void drop(size_t most, std::optional<Tenant> tenant, Entries* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t total = 0;
    for (const Entry& entry : entries_) total += !tenant || entry.tenant == *tenant ? entry.bytes : 0;
    for (auto it = entries_.end(); total > most && it != entries_.begin();) {
      --it;
      if (tenant && it->tenant != *tenant) continue;
      total -= it->bytes;
      places_.erase(it->key);
      const auto next = std::next(it);
      dropped->splice(dropped->begin(), entries_, it);
      it = next;
    }
  }

  Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  absl::flat_hash_map<PrimitiveKey, Entries::iterator> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

PrimitiveKey& PrimitiveKey::add(const dnnl::memory::desc& desc) {
  const dnnl_memory_desc_t& d = desc.data;
  const dnnl_blocking_desc_t& blocking = d.format_desc.blocking;
  add(SizesView(d.dims, d.ndims)).add(SizesView(d.padded_dims, d.ndims)).add(SizesView(blocking.strides, d.ndims));
  add(SizesView(blocking.inner_blks, blocking.inner_nblks)).add(SizesView(blocking.inner_idxs, blocking.inner_nblks));
  return add(d.data_type).add(d.format_kind).add(d.extra.flags);
}

void forget_primitives(Tenant tenant) { PrimitiveCache::instance().forget(tenant); }

PrimitiveUse::PrimitiveUse(const PrimitiveKey& key, size_t bytes, absl::FunctionRef<PreparedPrimitive()> make) try {
  PrimitiveCache& cache = PrimitiveCache::instance();
  cached_ = cache.find(key);
  if (!cached_) {
    const std::shared_ptr<Account> account = AllocScope::current().account;
    HostCharge charge = cache.charge(account, bytes);
    cached_ = cache.insert(key, bytes, account ? account->tenant() : kNoTenant, std::move(charge), make());
  }
  arguments_ = cached_->take();
} catch (const dnnl::error& e) {
  rethrow(e);
}

PrimitiveUse::~PrimitiveUse() {
  if (arguments_) cached_->release(std::move(arguments_));
}

const dnnl::memory::desc& PrimitiveUse::desc(int argument) const {
  for (const auto& [number, desc] : cached_->prepared.arguments) {
    if (number == argument) return desc;
  }
  fail(ErrorKind::kRuntime, "oneDNN: the primitive has no argument ", argument);
}

void PrimitiveUse::set(int argument, const void* data) {
  for (const dnnl_exec_arg_t& a : arguments_->list) {
    if (a.arg == argument) dnnl_memory_set_data_handle(a.memory, const_cast<void*>(data));
  }
}

void PrimitiveUse::run() {
  const PreparedPrimitive& prepared = cached_->prepared;
  Ref<Storage> large;
  if (prepared.scratchpad_bytes > kThreadScratchpad) {
    large = make_ref<Storage>(Device{}, prepared.scratchpad_bytes);
    set(DNNL_ARG_SCRATCHPAD, large->data());
  } else if (prepared.scratchpad_bytes > 0) {
    set(DNNL_ARG_SCRATCHPAD, thread_scratchpad(prepared.scratchpad_bytes));
  }
  const auto& list = arguments_->list;
  dnnl_status_t status = dnnl_primitive_execute(prepared.primitive.get(), thread_stream().get(),
                                                static_cast<int>(list.size()), list.data());
  check(status == dnnl_success, "oneDNN: failed to execute a primitive, status ", static_cast<int>(status));
}

dnnl::engine& onednn_engine() {
  static auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

const dnnl::primitive_attr& onednn_attributes() {
  static const auto* attributes = [] {
    auto* a = new dnnl::primitive_attr;
    a->set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return a;
  }();
  return *attributes;
}

bool onednn_supports(DType dtype) {
  static const bool bfloat16 = [] {
    dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    return isa == dnnl::cpu_isa::avx512_core || isa == dnnl::cpu_isa::avx512_core_vnni ||
           isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
  }();
  return dtype == DType::kFloat32 || (dtype == DType::kBFloat16 && bfloat16);
}

dnnl::memory::data_type onednn_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return dnnl::memory::data_type::f32;
    case DType::kBFloat16: return dnnl::memory::data_type::bf16;
    default: fail(ErrorKind::kNotImplemented, "oneDNN does not support ", name(dtype));
  }
}

bool supports_strides(SizesView sizes, SizesView strides) {
  absl::InlinedVector<std::pair<int64_t, int64_t>, 6> steps;  // stride, size
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return true;
    if (strides[d] != 0) steps.emplace_back(strides[d], sizes[d]);  // stride 0: broadcast
  }
  std::sort(steps.begin(), steps.end());
  int64_t least = 1;
  for (const auto& [stride, size] : steps) {
    if (stride < least || __builtin_mul_overflow(stride, size, &least)) return false;
  }
  return true;
}

dnnl::memory::desc strided_desc(SizesView sizes, SizesView strides, DType dtype) {
  return dnnl::memory::desc({sizes.begin(), sizes.end()}, onednn_type(dtype),
                            dnnl::memory::dims(strides.begin(), strides.end()));
}

dnnl::memory::desc any_desc(SizesView sizes, DType dtype) {
  return dnnl::memory::desc({sizes.begin(), sizes.end()}, onednn_type(dtype), dnnl::memory::format_tag::any);
}

void onednn_reorder(int threads, const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to,
                    void* target) {
  PrimitiveKey key(PrimitiveKey::Kind::kReorder, threads);
  PrimitiveUse use(key.add(from).add(to), kReorderBytes, [&] {
    dnnl::reorder::primitive_desc pd(onednn_engine(), from, onednn_engine(), to, onednn_attributes());
    return PreparedPrimitive{dnnl::reorder(pd),
                             {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}},
                             pd.scratchpad_desc().get_size()};
  });
  use.set(DNNL_ARG_FROM, source);
  use.set(DNNL_ARG_TO, target);
  use.run();
}

}  // namespace tt::cpu
