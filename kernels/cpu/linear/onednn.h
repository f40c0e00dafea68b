// oneDNN as this backend uses it: one engine a process, primitives made once and kept.
//
// Making a primitive takes 200 to 350 us (it compiles code), finding a kept one some 50 ns. A
// PrimitiveUse is one execution's exclusive hold on a primitive and its argument slots; take it
// while a PoolLease is held, and put the lease's width into the key, because a primitive is built
// for a number of threads. All of it is thread-safe; oneDNN's errors leave here as tt::Error.
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

// Everything that decides what code a primitive is.
class PrimitiveKey {
 public:
  enum class Kind : int64_t { kMatmul, kConvolution, kConvolutionData, kConvolutionWeights, kReorder };

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
  // A layout that oneDNN chose, all of it.
  PrimitiveKey& add(const dnnl::memory::desc& desc);

  friend bool operator==(const PrimitiveKey& a, const PrimitiveKey& b) { return a.numbers_ == b.numbers_; }
  template <typename H>
  friend H AbslHashValue(H h, const PrimitiveKey& key) {
    return H::combine(std::move(h), absl::Span<const int64_t>(key.numbers_));
  }

 private:
  absl::InlinedVector<int64_t, 64> numbers_;
};

// A primitive as its maker describes it: the arguments it takes and how they must lie.
struct Recipe {
  dnnl::primitive primitive;
  std::vector<std::pair<int, dnnl::memory::desc>> arguments;
  size_t scratchpad_bytes = 0;
};

struct CachedPrimitive;  // onednn.cc

class PrimitiveUse {
 public:
  // Finds the primitive, or makes it. `make` may throw dnnl::error.
  PrimitiveUse(const PrimitiveKey& key, absl::FunctionRef<Recipe()> make);
  ~PrimitiveUse();
  PrimitiveUse(const PrimitiveUse&) = delete;
  PrimitiveUse& operator=(const PrimitiveUse&) = delete;

  // How an argument (DNNL_ARG_*) must lie; requires that the primitive takes it.
  const dnnl::memory::desc& desc(int argument) const;
  void set(int argument, const void* data);
  // Requires every argument to be set.
  void run();

 private:
  friend struct CachedPrimitive;
  struct Arguments;
  std::shared_ptr<CachedPrimitive> cached_;
  std::unique_ptr<Arguments> arguments_;
};

dnnl::engine& onednn_engine();
// Primitives are made with their scratchpad in the caller's hands: one a thread serves them all.
const dnnl::primitive_attr& onednn_attributes();

// The types that oneDNN computes with on this machine; others go through our own loops.
bool onednn_computes(DType dtype);
dnnl::memory::data_type onednn_type(DType dtype);
// Whether oneDNN takes plain strided memory of these strides: none lies within what a lesser one steps over.
bool takes_strides(SizesView sizes, SizesView strides);
// Plain strided memory. Requires takes_strides().
dnnl::memory::desc strided_desc(SizesView sizes, SizesView strides, DType dtype);
dnnl::memory::desc any_desc(SizesView sizes, DType dtype);

// Copies between two layouts of the same tensor, with the caller's lease.
void onednn_reorder(int threads, const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to,
                    void* target);

}  // namespace tt::cpu
