// ModelConverter: makes native models of ONNX files and `.pt2` archives, in a child process.
//
// Such files are converted by the Python package's command (`teletensor convert INPUT OUTPUT`), not by the engine,
// which only reads native models. The child has limits on memory, processor time, file sizes and descriptors, has no
// network, gains no privileges, and is killed after a time. Its output goes to a folder of a cache, by the contents of
// the input and the engine's version, and is used again. The cache is limited: the results that were not used for the
// longest time are removed. Thread-safe; convert() waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tt::server {

class ModelConverter {
 public:
  struct Options {
    std::vector<std::string> command{"teletensor", "convert"};  // to which the input and the output are appended
    std::filesystem::path cache;                                // created at the first use
    uint64_t memory = uint64_t{16} << 30;                       // bytes of address space
    std::chrono::seconds processor_time{600};
    std::chrono::seconds timeout{900};
    uint64_t file_bytes = uint64_t{64} << 30;  // of each file that it writes
    // Of the cache. More remain if they were all used within the last minute, because they may be being read.
    uint64_t cache_bytes = uint64_t{64} << 30;
    size_t cache_entries = 256;
  };

  explicit ModelConverter(Options options) : options_(std::move(options)) {}

  // The file in a version's folder that has to be converted: model.onnx, model.pt2, or the only file of either kind.
  // Empty if there is none.
  static std::filesystem::path find_source(const std::filesystem::path& folder);
  // Returns the folder with the native model. Throws Error with the last bytes of the command's output.
  std::filesystem::path convert(const std::filesystem::path& source) const;

 private:
  void run(const std::filesystem::path& source, const std::filesystem::path& target) const;
  // Marks the entry as used, and removes others beyond the cache's limits.
  void use(const std::filesystem::path& entry) const;

  const Options options_;
};

}  // namespace tt::server
