// UploadedContents: the digests of the bytes that a session has uploaded, so that other uploads of the same bytes are
// copied inside the engine. ContentIndex: the contents of all sessions of one principal.
//
// A content is known while a tensor of the session uses its storage and nothing has been written to the storage, as of
// the end of the last frame. A writer may be active during a copy, so the copy's digest must be checked. The contents
// refer to storages on the CPU; at most kMaxContents per session, the oldest are forgotten first. A storage that was
// dropped during a frame is freed at the frame's end. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "engine/tensor/storage.h"

namespace tt::server {

// Owned by a Session.
class UploadedContents {
 public:
  // Adds a storage whose bytes have this digest and to which no instruction has access yet.
  void add(std::string digest, const Ref<Storage>& storage);
  // Returns null if there is none.
  Ref<Storage> find(absl::string_view digest, uint64_t bytes) const;
  // Drops storages that were written or that nothing else references. No cost if there are none. Call on the session's
  // thread.
  void sweep() {
    if (count_.load(std::memory_order_relaxed) != 0) drop(/*written=*/true);
  }
  // Drops storages that nothing else references.
  void drop_unreferenced() { drop(/*written=*/false); }
  // Drops all.
  void clear();
  // Drops all, and adds none from now on.
  void close();

 private:
  static constexpr size_t kMaxContents = 256;
  struct Content {
    std::string digest;
    Ref<Storage> storage;
  };
  void drop(bool written);

  std::atomic<size_t> count_{0};
  mutable Mutex mutex_;
  std::deque<Content> contents_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// Owned by Sessions and shared by the principal's sessions.
class ContentIndex {
 public:
  // Adds a session's contents until they are destroyed.
  void add(const std::shared_ptr<UploadedContents>& contents);
  // Returns null if no session has these bytes.
  Ref<Storage> find(absl::string_view digest, uint64_t bytes);
  // Call after a storage that was found has been released, to free it if its session has dropped it meanwhile.
  void drop_unreferenced();

 private:
  std::vector<std::shared_ptr<UploadedContents>> sessions();

  Mutex mutex_;
  std::vector<std::weak_ptr<UploadedContents>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::server
