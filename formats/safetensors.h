// The header of a safetensors file: parsing and validation. Files are untrusted.
//
// A file is the header's size (8 bytes, little endian), the header (JSON), and the tensors' bytes in row-major order.
// The header maps names to dtype, shape and the range of bytes. Thread-safe functions; they throw Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/schema/dtype.h"
#include "engine/schema/meta.h"

namespace tt {

struct StoredTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Sizes sizes;
  uint64_t begin = 0;  // relative to the end of the header
  uint64_t bytes = 0;
};

class SafetensorsHeader {
 public:
  // Limits on a header, so that parsing takes bounded time and memory; its limit is that of the format's own library.
  static constexpr uint64_t kMaxBytes = 100'000'000;
  static constexpr size_t kMaxDims = 64;

  // Parses the header of a file with `data_bytes` bytes after the header. Checks that no name occurs twice, and that
  // the tensors' ranges have the size of their shapes, do not overlap and cover all bytes. Uses about three times the
  // memory of the text.
  static SafetensorsHeader parse(std::string_view text, uint64_t data_bytes);
  SafetensorsHeader(SafetensorsHeader&&) = default;
  SafetensorsHeader& operator=(SafetensorsHeader&&) = default;

  // In the order of their bytes.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // Throws Error (ValueError) if there is none.
  const StoredTensor& find(std::string_view name) const;

 private:
  SafetensorsHeader() = default;

  std::vector<StoredTensor> tensors_;
  absl::flat_hash_map<absl::string_view, size_t> by_name_;  // index in tensors_, whose strings it refers to
};

// A header's text and where the tensors' bytes begin in the file.
struct SafetensorsFile {
  std::string text;
  uint64_t data_offset = 0;
  uint64_t data_bytes = 0;
};
// Reads the header of an open file. Throws Error. `path` is for messages.
SafetensorsFile read_safetensors_header(int file, std::string_view path);

// A string as JSON. Throws Error (ValueError) if it is not UTF-8.
std::string json_name(std::string_view text);
// Parses a JSON list of strings. Throws Error (ValueError).
std::vector<std::string> parse_string_list(std::string_view text);

// The format's name of a dtype, such as "BF16".
std::string_view safetensors_name(DType dtype);

// Reads exactly `size` bytes. Throws Error, also if the file is too short.
void read_exactly(int file, void* into, size_t size, uint64_t offset, std::string_view path);
// Returns the size of an open file.
uint64_t file_size(int file, std::string_view path);

}  // namespace tt
