// oneDNN wrappers: one engine per process, and a cache of primitives.
//
// The cache is bounded in bytes, for the process and for each tenant, and the bytes are charged to the session that
// created the primitive as bookkeeping, until the primitive leaves the cache. oneDNN does not report the size of a
// primitive's code and tables, so that the bytes are estimates from measurements. They must not depend on the sizes
// of tensors without bound: see convolution.cc for how it divides wide images.
//
// Creating a primitive takes 200 to 350 us (it compiles code), finding a cached one about 50 ns. A PrimitiveUse has
// exclusive use of a primitive and its argument slots for one execution. Create it while holding a PoolLease, and
// include the lease's width in the key, because a primitive is built for a number of threads. Everything here is
// thread-safe; oneDNN's errors are rethrown as tt::Error.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "engine/schema/dtype.h"
#include "engine/schema/meta.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace tt::cpu {

// All parameters that determine a primitive's code.
class PrimitiveKey {
 public:
  enum class Kind : int64_t {
    kMatmul,
    kBFloat16Product,
    kConvolution,
    kConvolutionData,
    kConvolutionWeights,
    kReorder
  };

  PrimitiveKey(Kind kind, int threads) { add(static_cast<int64_t>(kind)).add(threads); }
  PrimitiveKey& add(int64_t number) {
    numbers_.push_back(number);
    return *this;
  }
  PrimitiveKey& add(SizesView list) {
    numbers_.push_back(static_cast<int64_t>(list.size()));
    numbers_.insert(numbers_.end(), list.begin(), list.end());
    return *this;
  }
  // Adds all fields of a layout that oneDNN chose.
  PrimitiveKey& add(const dnnl::memory::desc& desc);

  friend bool operator==(const PrimitiveKey& a, const PrimitiveKey& b) { return a.numbers_ == b.numbers_; }
  template <typename H>
  friend H AbslHashValue(H h, const PrimitiveKey& key) {
    return H::combine(std::move(h), absl::Span<const int64_t>(key.numbers_));
  }

 private:
  absl::InlinedVector<int64_t, 64> numbers_;
};

// A primitive with its arguments, their required layouts and its scratchpad size.
struct PreparedPrimitive {
  dnnl::primitive primitive;
  std::vector<std::pair<int, dnnl::memory::desc>> arguments;
  size_t scratchpad_bytes = 0;
};

struct CachedPrimitive;  // onednn.cc

class PrimitiveUse {
 public:
  // Finds the primitive for `key` in the cache, or creates it with `make`, which may throw dnnl::error. `bytes`
  // estimates the memory that the primitive takes. Throws Error(kOutOfMemory) if the session's limit has no room for
  // them.
  PrimitiveUse(const PrimitiveKey& key, size_t bytes, absl::FunctionRef<PreparedPrimitive()> make);
  ~PrimitiveUse();
  PrimitiveUse(const PrimitiveUse&) = delete;
  PrimitiveUse& operator=(const PrimitiveUse&) = delete;

  // The required layout of an argument (DNNL_ARG_*). The primitive must have this argument.
  const dnnl::memory::desc& desc(int argument) const;
  void set(int argument, const void* data);
  // Requires that every argument is set.
  void run();

 private:
  friend struct CachedPrimitive;
  struct Arguments;
  std::shared_ptr<CachedPrimitive> cached_;
  std::unique_ptr<Arguments> arguments_;
};

// Estimate of the memory of a matrix product's primitive: 40 to 320 KB were measured.
inline constexpr size_t kProductBytes = size_t{96} << 10;

// Drops the primitives that sessions of a tenant created, or for kNoTenant the least recently used ones beyond a few
// MiB.
void forget_primitives(uint64_t tenant);

dnnl::engine& onednn_engine();
// Attributes that let the caller provide the scratchpad, so that one scratchpad per thread serves all primitives.
const dnnl::primitive_attr& onednn_attributes();

// Whether oneDNN computes in this dtype on this machine; other dtypes use our own loops.
bool onednn_supports(DType dtype);
dnnl::memory::data_type onednn_type(DType dtype);
// Whether oneDNN accepts plain memory with these strides: each must be at least the next smaller stride times its
// size.
bool supports_strides(SizesView sizes, SizesView strides);
// A descriptor of plain strided memory. Requires supports_strides().
dnnl::memory::desc strided_desc(SizesView sizes, SizesView strides, DType dtype);
dnnl::memory::desc any_desc(SizesView sizes, DType dtype);

// Copies between two layouts of the same tensor. The caller must hold a lease of `threads` threads.
void onednn_reorder(int threads, const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to,
                    void* target);

}  // namespace tt::cpu
