// Images of sessions in memory (server/session/session_image.h): written, read, taken apart and put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "server/session/session.h"
#include "server/session/session_image.h"

namespace tt::fuzz {

class StringSink final : public server::ImageSink {
 public:
  void write(const void* data, size_t size) override { bytes.append(static_cast<const char*>(data), size); }
  std::string bytes;
};

// Reads an image whose checksums may be wrong and whose contents may be too short: it returns the correct checksums,
// and zeros after the end. Mutated images therefore reach the parser, and are refused only for what they say. `bytes`
// must outlive this object.
class LenientSource final : public server::ImageSource {
 public:
  explicit LenientSource(std::string_view bytes) : bytes_(bytes) {}
  void read(void* into, size_t size) override;
  uint64_t left() const override { return bytes_.size(); }

 private:
  void begin_part(const void* size_field);

  std::string_view bytes_;
  size_t part_ = 0;          // 0: the magic, 1: the record, 2: the structure, 3: the contents
  bool has_size_ = false;    // of the part
  uint64_t part_left_ = 0;
  uint32_t checksum_ = 0;  // of the part's bytes that were read
};

// The parts of an image whose bytes are not determined by others.
struct ImageParts {
  std::string record;
  std::string structure;
  std::string contents;
};

// Returns nullopt if the sizes exceed the image. Does not compare the checksums.
std::optional<ImageParts> split_image(std::string_view image);
// Returns the image with the parts' sizes and checksums.
std::string join_image(const ImageParts& parts);

// Replaces one LEB128 number of a part, at a random position, by another one that is likely to be at a limit.
void mutate_number(std::string* part, std::minstd_rand& random);

// Returns the session's image. Requires that the session can be held at once. Throws Error if something of the session
// cannot be part of an image.
std::string image_of(server::Session& session);

}  // namespace tt::fuzz
