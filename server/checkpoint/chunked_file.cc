#include "server/checkpoint/chunked_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/checkpoint/replacement_file.h"
#include "server/checkpoint/tensor_file.h"

namespace tt::server {
namespace {

std::string checksum_text(uint32_t checksum, bool is_hexadecimal) {
  if (is_hexadecimal) return absl::StrFormat("%08x", checksum);
  std::string text(4, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(checksum >> (8 * i));
  return text;
}

size_t checksum_size(bool is_hexadecimal) { return is_hexadecimal ? 8 : 4; }

}  // namespace

uint64_t FileParts::size() const {
  uint64_t size = bytes.size();
  for (const auto& tensor : tensors) size += tensor->bytes();
  return size;
}

void FileParts::check_numbers() const {
  check(ErrorKind::kValue, positions.size() == tensors.size(), "expected ", tensors.size(),
        " positions, one per tensor, got ", positions.size());
  int64_t previous = 0;
  for (const int64_t position : positions) {
    check(ErrorKind::kValue, position >= previous && static_cast<uint64_t>(position) <= bytes.size(),
          "expected ascending positions of at most ", bytes.size(), ", got ", position);
    previous = position;
  }
  check(ErrorKind::kValue, places.size() % 2 == 0, "expected pairs of numbers as places, got ", places.size(),
        " numbers");
  const size_t digits = checksum_size(is_hexadecimal);
  for (size_t i = 0; i < places.size(); i += 2) {
    const int64_t tensor = places[i];
    const int64_t at = places[i + 1];
    check(ErrorKind::kValue, tensor >= 0 && static_cast<uint64_t>(tensor) < tensors.size(), "there is no tensor ",
          tensor, ": got ", tensors.size());
    check(ErrorKind::kValue, at >= 0 && bytes.size() >= digits && static_cast<uint64_t>(at) <= bytes.size() - digits,
          "expected a place with ", digits, " bytes after it in ", bytes.size(), " bytes, got ", at);
  }
}

void write_parts(const CheckpointRoot& root, std::string_view path, FileParts& parts, CheckpointJob& job) {
  job.set_total(parts.size() - parts.bytes.size());
  const CheckpointRoot::Room room = root.reserve(path, parts.size());
  ReplacementFile file(root.find(path, true), true);
  file.reserve(parts.size());
  // A checksum is computed while its tensor is written, so places after the tensor are filled in before they are
  // written, and places before it at the end.
  std::vector<std::vector<int64_t>> places(parts.tensors.size());
  for (size_t i = 0; i < parts.places.size(); i += 2) {
    places[static_cast<size_t>(parts.places[i])].push_back(parts.places[i + 1]);
  }
  struct Patch {
    uint64_t offset;
    std::string text;
  };
  std::vector<Patch> patches;
  std::vector<uint64_t> bytes_before{0};  // of the tensors before each tensor
  for (const auto& tensor : parts.tensors) bytes_before.push_back(bytes_before.back() + tensor->bytes());
  const auto offset_of = [&](size_t at) {  // in the file, of one of the client's bytes
    const auto after = std::upper_bound(parts.positions.begin(), parts.positions.end(), static_cast<int64_t>(at));
    return at + bytes_before[static_cast<size_t>(after - parts.positions.begin())];
  };
  size_t written = 0;
  for (size_t i = 0; i < parts.tensors.size(); ++i) {
    const auto position = static_cast<size_t>(parts.positions[i]);
    file.append(parts.bytes.data() + written, position - written);
    written = position;
    const uint32_t checksum = append_tensor(file, *parts.tensors[i], job);
    for (const int64_t place : places[i]) {
      const std::string text = checksum_text(checksum, parts.is_hexadecimal);
      const auto at = static_cast<size_t>(place);
      if (at >= written) {
        text.copy(parts.bytes.data() + at, text.size());
        continue;
      }
      check(ErrorKind::kValue, at + text.size() <= written, "the place ", at,
            " of a checksum is on both sides of tensor ", i);
      patches.push_back({offset_of(at), text});
    }
  }
  file.append(parts.bytes.data() + written, parts.bytes.size() - written);
  job.check_cancelled();
  for (const Patch& patch : patches) file.overwrite(patch.offset, patch.text);
  file.commit();
}

}  // namespace tt::server
