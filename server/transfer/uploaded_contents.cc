#include "server/transfer/uploaded_contents.h"

#include <utility>

namespace tt::server {

void UploadedContents::add(std::string digest, const Ref<Storage>& storage) {
  MutexLock lock(mutex_);
  if (closed_) return;
  if (contents_.size() >= kMaxContents) contents_.pop_front();
  contents_.push_back({std::move(digest), storage});
  count_.store(contents_.size(), std::memory_order_relaxed);
}

Ref<Storage> UploadedContents::find(absl::string_view digest, uint64_t bytes) const {
  MutexLock lock(mutex_);
  for (const Content& content : contents_) {
    if (content.storage->bytes() == bytes && content.digest == digest) return content.storage;
  }
  return nullptr;
}

void UploadedContents::drop(bool written) {
  MutexLock lock(mutex_);
  std::erase_if(contents_, [&](const Content& content) {
    return content.storage->ref_count() == 1 || (written && content.storage->version() != 0);
  });
  count_.store(contents_.size(), std::memory_order_relaxed);
}

void UploadedContents::clear() {
  MutexLock lock(mutex_);
  contents_.clear();
  count_.store(0, std::memory_order_relaxed);
}

void UploadedContents::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  contents_.clear();
  count_.store(0, std::memory_order_relaxed);
}

void ContentIndex::add(const std::shared_ptr<UploadedContents>& contents) {
  MutexLock lock(mutex_);
  std::erase_if(sessions_, [](const auto& session) { return session.expired(); });
  sessions_.push_back(contents);
}

std::vector<std::shared_ptr<UploadedContents>> ContentIndex::sessions() {
  std::vector<std::shared_ptr<UploadedContents>> alive;
  MutexLock lock(mutex_);
  for (const auto& session : sessions_) {
    if (auto contents = session.lock()) alive.push_back(std::move(contents));
  }
  return alive;
}

Ref<Storage> ContentIndex::find(absl::string_view digest, uint64_t bytes) {
  for (const auto& contents : sessions()) {
    if (Ref<Storage> storage = contents->find(digest, bytes)) return storage;
  }
  return nullptr;
}

void ContentIndex::drop_unreferenced() {
  for (const auto& contents : sessions()) contents->drop_unreferenced();
}

}  // namespace tt::server
