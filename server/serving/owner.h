// The principal that has published a model: the content of the file `.owner` in the model's folder.
//
// A name may be empty: with one user, principals have none. Functions throw Error. Thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tt::server {

constexpr const char* kOwnerFile = ".owner";

// The text of a small file; nothing if it does not exist. Throws Error if it is larger.
std::optional<std::string> read_small(const std::filesystem::path& path, size_t max_bytes);
// The owner of the model in a folder; nothing if nobody has published it.
std::optional<std::string> owner_of_model(const std::filesystem::path& model);

}  // namespace tt::server
