// MissingValues: the storage of results that have no values yet. While one exists, the kernels of its thread refuse
// arguments with such a storage, which has no memory.
#pragma once

#include "engine/dispatch/dispatcher.h"
#include "engine/tensor/tensor.h"

namespace tt {

class MissingValues {
 public:
  MissingValues() : storage_(make_ref<Storage>(Device{DeviceType::kMeta}, 0)) { ++count_; }
  ~MissingValues() { --count_; }
  MissingValues(const MissingValues&) = delete;
  MissingValues& operator=(const MissingValues&) = delete;

  const Ref<Storage>& storage() const { return storage_; }
  // Throws Error if an argument of a call that a kernel is about to execute has no values.
  static void check_none(const Call& call) {
    if (count_ != 0) [[unlikely]]
      check_arguments(call);
  }

 private:
  static void check_arguments(const Call& call);

  static inline thread_local int count_ = 0;  // of the thread
  const Ref<Storage> storage_;
};

}  // namespace tt
