// PinnedRange: pages that devices read and write by themselves for as long as it lives, where the backend can do that.
#pragma once

#include "engine/device/backend.h"

namespace tt::server {

class PinnedRange {
 public:
  // Nothing under way may use the pages when it goes; the pages outlive it.
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
