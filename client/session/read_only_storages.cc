#include "client/session/read_only_storages.h"

#include "client/session/encode.h"
#include "engine/schema/error.h"
#include "engine/schema/read_only.h"

namespace tt::client {

void ReadOnlyStorages::add(uint64_t storage) {
  MutexLock lock(mutex_);
  storages_.insert(storage);
  any_.store(true, std::memory_order_relaxed);
}

bool ReadOnlyStorages::contains(uint64_t storage) const {
  MutexLock lock(mutex_);
  return storages_.contains(storage);
}

void ReadOnlyStorages::check_written(const Op& op, Args args, absl::Span<const Tensor> into) const {
  const auto check_one = [&](const Handle& tensor) {
    check(!contains(tensor.storage_number()), "[", op.name, "] ", kReadOnly);
  };
  for (const Tensor& tensor : into) check_one(*tensor);
  if (!writes_arguments(op, args)) return;
  for (size_t i = 0; i < args.size(); ++i) {
    if (op.params[i].written) for_each_tensor(args[i], [&](const Handle* tensor) { check_one(*tensor); });
  }
}

}  // namespace tt::client
