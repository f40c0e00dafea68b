// Zip archives in PyTorch's layout: entries without compression below one folder. Files that are read are untrusted.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace teletensor::internal {

// An open archive. Entries are distinct, do not overlap and are within the file, so that reading all of them takes no
// more memory than the file. Throws Error: FileNotFoundError or another error of the system, and RuntimeError for a
// damaged file.
class ArchiveReader {
 public:
  explicit ArchiveReader(const std::string& path);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  bool contains(const std::string& name) const { return entries_.contains(name); }
  // Size of an entry in bytes.
  uint64_t size(const std::string& name) const;
  // Reads an entry and checks its checksum.
  std::string read(const std::string& name) const;

 private:
  struct Entry {
    uint64_t header = 0, size = 0, data = 0;
    uint32_t checksum = 0;
  };
  void read_directory();
  size_t add_entry(std::string_view directory, size_t place);
  void check_overlap(uint64_t end);
  std::string read_at(uint64_t offset, uint64_t size) const;
  const Entry& find(const std::string& name) const;

  const std::string path_;
  int file_ = -1;
  uint64_t size_ = 0;
  std::map<std::string, Entry> entries_;  // by the name in the archive's folder
  std::string folder_;
};

// Writes an archive. The file is complete after finish(); until then it has a temporary name, which the destructor
// removes. Throws Error of the system.
class ArchiveWriter {
 public:
  ArchiveWriter(std::string path, std::string folder);
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;

  void add(const std::string& name, std::string_view bytes);
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t size, header;
    uint32_t checksum;
  };
  void write(std::string_view bytes);

  const std::string path_, temporary_, folder_;
  std::FILE* file_;
  uint64_t position_ = 0;
  std::vector<Entry> entries_;
};

// Throws the error of a call of the system that failed for a path.
[[noreturn]] void throw_system_error(const std::string& what, const std::string& path, int code);

}  // namespace teletensor::internal
