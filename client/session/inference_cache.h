// InferenceCache: the inferred results of a thread's recent calls.
//
// A program calls an operator with the same metadata again and again, and infer() depends on nothing else. A lookup
// costs a comparison of the arguments' metadata; it replaces Op::check_args() and infer(), which cost several times as
// much. Calls are not cached if their results are views (their offsets change), depend on data or on a library, or if
// they have lists of tensors, strings or many dimensions. One per thread, which alone uses it; bounded memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "engine/schema/op.h"

namespace tt::client {

class InferenceCache {
 public:
  // The calling thread's cache. Made at its first use; null during the thread's end.
  static InferenceCache* of_thread();

  // What identifies a call: a hash, or that it cannot be cached.
  struct Key {
    size_t hash = 0;
    bool cacheable = false;
  };
  static Key key_of(const Op& op, Args args, bool grad);

  // The results of an earlier call with the same operator, metadata, numbers and grad mode; null if there are none.
  // Valid until the next call of store().
  const Inference* find(const Key& key, const Op& op, Args args, bool grad) const;
  // Requires a cacheable key of this call, whose arguments op.check_args() has accepted.
  void store(const Key& key, const Op& op, Args args, bool grad, const Inference& inference);

 private:
  static constexpr size_t kEntries = 128;  // direct-mapped
  static constexpr size_t kArgs = 10;
  static constexpr size_t kTensors = 3;
  static constexpr size_t kNumbers = 12;  // elements of the lists of integers of a call
  static constexpr size_t kDims = 5;      // sizes and strides that TensorMeta stores inline

  struct Entry {
    const Op* op = nullptr;
    bool grad = false;
    uint8_t args = 0;
    std::array<Arg, kArgs> arguments;  // tensors and lists are compared by the members below
    std::array<TensorMeta, kTensors> tensors;
    std::array<int64_t, kNumbers> numbers;
    Inference inference;
  };
  std::array<Entry, kEntries> entries_;
};

}  // namespace tt::client
