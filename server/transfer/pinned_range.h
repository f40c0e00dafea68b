// PinnedRange: pins pages for direct access by a device while it exists, if the backend supports it.
#pragma once

#include "engine/device/backend.h"

namespace tt::server {

class PinnedRange {
 public:
  // The pages must outlive this object, and must not be in use by a device when it is destroyed.
  PinnedRange(Backend& backend, void* pages, size_t bytes)
      : backend_(backend), pages_(pages), pinned_(backend.pin(pages, bytes)) {}
  ~PinnedRange() {
    if (pinned_) backend_.unpin(pages_);
  }
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;

  bool pinned() const { return pinned_; }

 private:
  Backend& backend_;
  void* const pages_;
  const bool pinned_;
};

}  // namespace tt::server
