#include "tests/fuzz/image_bytes.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iterator>

#include "engine/schema/error.h"
#include "server/checkpoint/checksum.h"

namespace tt::fuzz {
namespace {

constexpr size_t kMagicBytes = 8;  // with the number of the format
constexpr std::string_view kMagic("TTIMAGE\x01", kMagicBytes);

uint64_t read_integer(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

void append_integer(uint64_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t checksum_of(std::string_view bytes) { return server::update_checksum(0, bytes.data(), bytes.size()); }

// Removes a part with its size and checksum from the start of `image`.
std::optional<std::string> take_part(std::string_view* image) {
  if (image->size() < sizeof(uint64_t)) return std::nullopt;
  const uint64_t size = read_integer(image->substr(0, sizeof(uint64_t)));
  image->remove_prefix(sizeof(uint64_t));
  if (size > image->size() || image->size() - size < sizeof(uint32_t)) return std::nullopt;
  std::string part(image->substr(0, size));
  image->remove_prefix(size + sizeof(uint32_t));
  return part;
}

void append_part(std::string_view part, std::string* image) {
  append_integer(part.size(), sizeof(uint64_t), image);
  image->append(part);
  append_integer(checksum_of(part), sizeof(uint32_t), image);
}

std::string leb128(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

}  // namespace

void LenientSource::begin_part(const void* size_field) {
  part_left_ = read_integer({static_cast<const char*>(size_field), sizeof(uint64_t)});
  checksum_ = 0;
  has_size_ = true;
}

void LenientSource::read(void* into, size_t size) {
  char* const to = static_cast<char*>(into);
  const bool is_part = part_ == 1 || part_ == 2;
  const bool is_checksum = size == sizeof(uint32_t) && (part_ == 3 || (is_part && has_size_ && part_left_ == 0));
  const size_t count = std::min(size, bytes_.size());
  // Zeros take the place of contents only: a part is as long as its size says.
  check(count == size || is_checksum || part_ == 3, "the image ends early");
  std::copy_n(bytes_.data(), count, to);
  bytes_.remove_prefix(count);
  std::fill(to + count, to + size, '\0');
  if (is_checksum) {
    for (size_t i = 0; i < size; ++i) to[i] = static_cast<char>(checksum_ >> (8 * i));
  }
  if (part_ == 0) {
    part_ = 1;
  } else if (is_part && !has_size_) {
    begin_part(into);
  } else if (is_part && is_checksum) {
    ++part_;
    has_size_ = false;
    checksum_ = 0;
  } else {
    if (is_part) part_left_ -= size;
    // A storage of four bytes gets a checksum as its contents, which then are part of the next one.
    checksum_ = server::update_checksum(checksum_, into, size);
  }
}

std::optional<ImageParts> split_image(std::string_view image) {
  if (image.size() < kMagicBytes) return std::nullopt;
  image.remove_prefix(kMagicBytes);
  std::optional<std::string> record = take_part(&image);
  if (!record) return std::nullopt;
  std::optional<std::string> structure = take_part(&image);
  if (!structure || image.size() < sizeof(uint32_t)) return std::nullopt;
  image.remove_suffix(sizeof(uint32_t));
  return ImageParts{*std::move(record), *std::move(structure), std::string(image)};
}

std::string join_image(const ImageParts& parts) {
  std::string image(kMagic);
  append_part(parts.record, &image);
  append_part(parts.structure, &image);
  image += parts.contents;
  append_integer(checksum_of(parts.contents), sizeof(uint32_t), &image);
  return image;
}

void mutate_number(std::string* part, std::minstd_rand& random) {
  if (part->empty()) return;
  size_t begin = random() % part->size();
  while (begin > 0 && (static_cast<uint8_t>((*part)[begin - 1]) & 0x80) != 0) --begin;
  size_t end = begin;
  uint64_t value = 0;
  for (; end < part->size(); ++end) {
    if (end - begin < 10) value |= static_cast<uint64_t>((*part)[end] & 0x7f) << (7 * (end - begin));
    if (((*part)[end] & 0x80) == 0) break;
  }
  end = std::min(end + 1, part->size());
  constexpr std::array<uint64_t, 18> kLimits = {0,           1,          2,           3,           4,          7,
                                                63,          127,        255,         256,         65535,      UINT32_MAX,
                                                1ull << 31,  1ull << 32, 1ull << 58,  1ull << 62,  INT64_MAX,  UINT64_MAX};
  switch (random() % 4) {
    case 0: value = kLimits[random() % kLimits.size()]; break;
    case 1: value += 1 + random() % 2; break;
    case 2: value -= 1 + random() % 2; break;
    default: value = random() % 32; break;
  }
  part->replace(begin, end - begin, leb128(value));
}

std::string image_of(server::Session& session) {
  const absl::Status held = session.hold(std::chrono::steady_clock::now());
  check(ErrorKind::kNotImplemented, held.ok(), held.message());
  StringSink sink;
  try {
    session.write_image(&sink);
  } catch (...) {
    session.release();
    throw;
  }
  session.release();
  return std::move(sink.bytes);
}

}  // namespace tt::fuzz
