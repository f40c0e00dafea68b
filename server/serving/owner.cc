#include "server/serving/owner.h"

#include <fstream>

#include "engine/schema/error.h"

namespace tt::server {
namespace {

constexpr size_t kMaxOwnerBytes = 512;

}  // namespace

std::optional<std::string> read_small(const std::filesystem::path& path, size_t max_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(max_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  check(text.size() <= max_bytes, "[serve] expected a small file: ", path.filename().native());
  return text;
}

std::optional<std::string> owner_of_model(const std::filesystem::path& model) {
  return read_small(model / kOwnerFile, kMaxOwnerBytes);
}

}  // namespace tt::server
