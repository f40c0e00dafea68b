// Session images: a session as a sequence of bytes, for a file (session_store.h) or another process (the daemon's
// upgrade). engine/session/image.h describes what they contain.
//
// An image is a record, which tells whose session it is, the structure, and the contents of the storages:
//
//   "TTIMAGE" and the format's number as a byte
//   record     8 bytes size, the record, 4 bytes CRC-32
//   structure  8 bytes size, the structure, 4 bytes CRC-32
//   contents   the bytes of each storage, 4 bytes CRC-32 of all of them
//
// Integers outside of the record and the structure are little-endian. A reader accepts only its own format number: an
// engine of another format reads no image. An image contains what the session's client computed and the client's
// source lines, but no secret: of the session's key only its SHA-256 (session_key.h). Images are never accepted from a
// client. Functions throw Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/tensor/storage.h"

namespace tt::server {

// When images of a session are stored on the disk.
struct Persistence {
  double every = 0;  // seconds between two images; 0: the session is not stored
  double wait = 0;   // seconds for which the client may be absent after the engine has started again

  bool is_on() const { return every > 0; }
};

struct SessionRecord {
  std::string key_digest;
  uint64_t id = 0;
  std::string client;
  std::string principal;
  uint64_t memory_limit = 0;
  uint64_t executed = 0;  // the last frame whose effects the image contains
  Persistence persistence;
};

class ImageSink {
 public:
  virtual ~ImageSink() = default;
  // Called before the first write(): the image has this many bytes.
  virtual void begin(uint64_t /*bytes*/) {}
  virtual void write(const void* data, size_t size) = 0;
  // Writes bytes of a storage on the CPU that do not change before the session is released.
  virtual void write_stable(const Ref<Storage>& storage, size_t offset, size_t size) {
    write(static_cast<const char*>(storage->data()) + offset, size);
  }
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;
  // Fills `into`, or throws Error if there are fewer bytes.
  virtual void read(void* into, size_t size) = 0;
  // The largest number of bytes that may follow.
  virtual uint64_t left() const = 0;
};

SessionRecord read_record(ImageSource* source);

}  // namespace tt::server
