#include "engine/dispatch/partial_writes.h"

#include <utility>

#include "engine/dispatch/written_tensors.h"

namespace tt {
namespace {

thread_local PartialWrites::Storages written;

}  // namespace

void PartialWrites::add(const Call& call) {
  for_each_written(call, [](const Tensor& tensor) {
    tensor->storage->bump_version();
    written.push_back(tensor->storage);
  });
}

PartialWrites::Storages PartialWrites::take() { return std::exchange(written, {}); }

}  // namespace tt
