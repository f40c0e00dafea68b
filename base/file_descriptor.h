// FileDescriptor: owns a file descriptor and closes it; -1 means none. Not thread-safe.
#pragma once

#include <unistd.h>

#include <utility>

namespace tt {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Closes the current descriptor and takes ownership of `fd`.
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  // Returns the descriptor, which the caller must close.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace tt
