// Helpers of the checkpoint tests: a temporary folder, and files in it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "engine/schema/error.h"

namespace tt::server::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "checkpoint_test_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::string string() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ostringstream contents;
  contents << std::ifstream(path, std::ios::binary).rdbuf();
  return contents.str();
}

// A file's bytes: a header of this size, the header, the data.
inline std::string safetensors_file(const std::string& header, const std::string& data) {
  std::string length;
  for (size_t i = 0; i < 8; ++i) length.push_back(static_cast<char>(header.size() >> (8 * i)));
  return length + header + data;
}

// Returns the message of the Error that `call` throws.
template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

}  // namespace tt::server::testing
