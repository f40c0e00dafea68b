#include "server/daemon/image_pipe.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "engine/schema/error.h"

namespace tt::server {
namespace {

// Referring to a page costs about as much as copying it, whatever part of it is used.
constexpr size_t kMinReferred = size_t{64} << 10;

}  // namespace

bool write_all(int fd, const void* data, size_t size) {
  for (const char* at = static_cast<const char*>(data); size != 0;) {
    const ssize_t written = ::write(fd, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    at += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

void PipeSink::begin(uint64_t) { write(&opening_, 1); }

void PipeSink::write(const void* data, size_t size) {
  check(write_all(fd_, data, size), "the new process has ended");
  bytes_ += size;
}

void PipeSink::write_stable(const Ref<Storage>& storage, size_t offset, size_t size) {
  char* data = static_cast<char*>(storage->data()) + offset;
  if (size < kMinReferred) return write(data, size);
  if (refers_ && (kept_.empty() || kept_.back() != storage)) kept_.push_back(storage);
  while (size != 0 && refers_) {
    const iovec piece{data, size};
    const ssize_t passed = vmsplice(fd_, &piece, 1, 0);
    if (passed < 0 && errno == EINTR) continue;
    check(passed >= 0 || errno != EPIPE, "the new process has ended");
    if (passed <= 0) {
      refers_ = false;
      break;
    }
    data += passed;
    size -= static_cast<size_t>(passed);
    bytes_ += static_cast<uint64_t>(passed);
    referred_ += static_cast<uint64_t>(passed);
  }
  if (size != 0) write(data, size);
}

void PipeSource::read(void* into, size_t size) {
  for (char* at = static_cast<char*>(into); size != 0;) {
    const ssize_t got = ::read(fd_, at, size);
    if (got < 0 && errno == EINTR) continue;
    check(got > 0, "the old process has ended");
    at += got;
    size -= static_cast<size_t>(got);
  }
}

}  // namespace tt::server
