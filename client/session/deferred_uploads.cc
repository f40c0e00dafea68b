#include "client/session/deferred_uploads.h"

#include <algorithm>
#include <utility>

namespace tt::client {

DeferredUploads::Uploads::const_iterator DeferredUploads::find(uint64_t handle) const {
  const auto at = std::ranges::lower_bound(uploads_, handle, {}, &DeferredUpload::handle);
  return at != uploads_.end() && at->handle == handle ? at : uploads_.end();
}

DeferredUpload DeferredUploads::take_at(Uploads::const_iterator at) {
  DeferredUpload upload = *at;
  uploads_.erase(at);
  count_ = uploads_.size();
  return upload;
}

bool DeferredUploads::contains(uint64_t handle) const {
  MutexLock lock(mutex_);
  return find(handle) != uploads_.end();
}

std::optional<DeferredUpload> DeferredUploads::add(DeferredUpload upload) {
  MutexLock lock(mutex_);
  uploads_.push_back(std::move(upload));
  count_ = uploads_.size();
  if (uploads_.size() <= kMax) return std::nullopt;
  return take_at(uploads_.begin());
}

std::optional<DeferredUpload> DeferredUploads::take(uint64_t handle) {
  MutexLock lock(mutex_);
  const auto at = find(handle);
  if (at == uploads_.end()) return std::nullopt;
  return take_at(at);
}

std::optional<DeferredUpload> DeferredUploads::take_oldest() {
  MutexLock lock(mutex_);
  if (uploads_.empty()) return std::nullopt;
  return take_at(uploads_.begin());
}

}  // namespace tt::client
