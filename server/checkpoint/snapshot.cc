#include "server/checkpoint/snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/device/cancellation.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/ops.h"
#include "engine/program/poison.h"
#include "server/checkpoint/checksum.h"

namespace tt::server {
namespace {

// Bytes copied while a write of the session may wait.
constexpr size_t kPieceBytes = size_t{512} << 10;

}  // namespace

TensorSnapshot::TensorSnapshot(Tensor tensor)
    : bytes_(static_cast<size_t>(tensor.numel()) * item_size(tensor.dtype())),
      dtype_(tensor.dtype()),
      sizes_(tensor.sizes()),
      tensor_(std::move(tensor)) {
  if (!tensor_.is_contiguous()) reader_.emplace(tensor_);
}

size_t TensorSnapshot::read(absl::Span<char> into, uint32_t* checksum) {
  if (taken_ == gathered_.size()) {
    MutexLock lock(mutex_);
    if (error_) throw Error(*error_);
    const size_t size = std::min({into.size(), kPieceBytes, bytes_ - done_});
    if (!reader_) {
      if (size == 0) return 0;
      *checksum = copy_with_checksum(*checksum, into.data(), static_cast<const char*>(tensor_.data()) + done_, size);
      done_ += size;
      return size;
    }
    gathered_.resize(std::min(kPieceBytes, bytes_ - done_));
    done_ += reader_->read(gathered_.data(), gathered_.size());
    taken_ = 0;
  }
  const size_t size = std::min(into.size(), gathered_.size() - taken_);
  if (size != 0) *checksum = copy_with_checksum(*checksum, into.data(), gathered_.data() + taken_, size);
  taken_ += size;
  return size;
}

void TensorSnapshot::release() {
  MutexLock lock(mutex_);
  tensor_ = Tensor();
  reader_.reset();
}

void TensorSnapshot::copy() {
  MutexLock lock(mutex_);
  if (!tensor_ || is_copied_) return;
  try {
    tensor_ = host_copy(tensor_);
    is_copied_ = true;
  } catch (const Cancelled&) {
    throw;  // the storage will not be written either
  } catch (const Error& error) {
    error_ = error;
    tensor_ = Tensor();
  }
  reader_.reset();
}

void TensorSnapshots::add(const Tensor& tensor, const std::shared_ptr<TensorSnapshot>& snapshot) {
  if (snapshot->bytes() == 0) return;
  by_storage_[tensor->storage.get()].push_back(snapshot);
  Context::current().set_write_observer(this);
}

void TensorSnapshots::remove_finished() {
  absl::erase_if(by_storage_, [](const auto& entry) {
    return std::all_of(entry.second.begin(), entry.second.end(), [](const auto& weak) { return weak.expired(); });
  });
}

void TensorSnapshots::before_write(const Tensor& tensor) {
  const auto found = by_storage_.find(tensor->storage.get());
  if (found == by_storage_.end()) return;
  // Nothing is forgotten if a copy is cancelled with its frame; the storage is not written then. The copies are written
  // to new storages, which have no snapshots.
  for (const std::weak_ptr<TensorSnapshot>& weak : found->second) {
    if (const std::shared_ptr<TensorSnapshot> snapshot = weak.lock()) snapshot->copy();
  }
  by_storage_.erase(found);
  if (by_storage_.empty()) Context::current().set_write_observer(nullptr);
}

Tensor host_copy(const Tensor& tensor) {
  constexpr Device kCPU{};
  if (tensor.device().type == DeviceType::kCPU) {
    Tensor copy = empty(tensor.sizes(), tensor.dtype(), kCPU);
    copy_into(copy, tensor);
    return copy;
  }
  Tensor copy = ops::to_device(detach(tensor), kCPU);
  Context& context = Context::current();
  context.stream(tensor.device()).synchronize();
  if (const auto poison = context.async_errors().find_error(tensor->storage->pending_errors)) {
    throw Error(poison->kind, poison->message);
  }
  return copy;
}

}  // namespace tt::server
