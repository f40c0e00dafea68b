// PipeSink, PipeSource: pass images of sessions from a process to the one that replaces it. A sink writes one image.
//
// Large storages are not copied into the pipe: it refers to their pages (vmsplice), so that the reader makes the only
// copy. Where the system refuses that, or the descriptor is not a pipe, their bytes are written like all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/tensor/storage.h"
#include "server/session/session_image.h"

namespace tt::server {

// Returns false, with errno, if the bytes cannot be written. Thread-safe.
bool write_all(int fd, const void* data, size_t size);

// Throws Error if the reader has ended. The descriptor must outlive the sink, and the sink the reader's answer: it
// keeps the storages that the pipe refers to.
class PipeSink final : public ImageSink {
 public:
  // `opening` is written before the image.
  PipeSink(int fd, char opening) : fd_(fd), opening_(opening) {}
  void begin(uint64_t bytes) override;
  void write(const void* data, size_t size) override;
  void write_stable(const Ref<Storage>& storage, size_t offset, size_t size) override;
  uint64_t bytes() const { return bytes_; }
  // The part of bytes() that was not copied into the pipe.
  uint64_t referred() const { return referred_; }

 private:
  const int fd_;
  const char opening_;
  bool refers_ = true;
  uint64_t bytes_ = 0, referred_ = 0;
  std::vector<Ref<Storage>> kept_;
};

class PipeSource final : public ImageSource {
 public:
  explicit PipeSource(int fd) : fd_(fd) {}
  void read(void* into, size_t size) override;
  uint64_t left() const override { return UINT64_MAX; }

 private:
  const int fd_;
};

}  // namespace tt::server
