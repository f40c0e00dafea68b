#include "client/serialize/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/api/errors.h"
#include "formats/safetensors.h"

namespace teletensor::internal {
namespace {

constexpr uint64_t kMax32 = 0xFFFFFFFF, kMax16 = 0xFFFF;
constexpr uint64_t kAlignment = 64;
constexpr size_t kMaxEntries = 1'000'000;

[[noreturn]] void damaged(const std::string& why) {
  throw RuntimeError("[load] PytorchStreamReader failed reading zip archive: " + why);
}

template <typename T>
T number(std::string_view bytes, size_t place) {
  T value;
  if (place > bytes.size() || bytes.size() - place < sizeof(T)) damaged("a number is beyond the end");
  std::memcpy(&value, bytes.data() + place, sizeof(T));
  return value;
}

template <typename T>
void put(std::string* bytes, T value) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

uint32_t checksum_of(std::string_view bytes) {
  uLong sum = crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size();) {
    const size_t part = std::min<size_t>(bytes.size() - at, 1u << 30);
    sum = crc32(sum, reinterpret_cast<const Bytef*>(bytes.data() + at), static_cast<uInt>(part));
    at += part;
  }
  return static_cast<uint32_t>(sum);
}

bool is_plain_path(std::string_view name) {
  if (name.find('\\') != name.npos || name.find('\0') != name.npos) return false;
  for (size_t start = 0; start <= name.size();) {
    const size_t end = std::min(name.find('/', start), name.size());
    const std::string_view part = name.substr(start, end - start);
    if (part.empty() || part == "." || part == "..") return false;
    start = end + 1;
  }
  return true;
}

}  // namespace

void throw_system_error(const std::string& what, const std::string& path, int code) {
  const std::string text = what + " '" + path + "': " + std::strerror(code);
  switch (code) {
    case ENOENT: throw FileNotFoundError(text);
    case EISDIR: throw IsADirectoryError(text);
    case ENOTDIR: throw NotADirectoryError(text);
    case EACCES:
    case EPERM: throw PermissionError(text);
    default: throw RuntimeError(text);
  }
}

ArchiveReader::ArchiveReader(const std::string& path)
    : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (file_ < 0) throw_system_error("cannot open", path, errno);
  try {
    struct stat status {};
    if (fstat(file_, &status) != 0) throw_system_error("cannot read", path, errno);
    if (S_ISDIR(status.st_mode)) throw_system_error("cannot read", path, EISDIR);
    if (!S_ISREG(status.st_mode)) throw RuntimeError("cannot read '" + path + "': it is not a regular file");
    size_ = static_cast<uint64_t>(status.st_size);
    read_directory();
  } catch (...) {
    close(file_);
    throw;
  }
}
ArchiveReader::~ArchiveReader() { close(file_); }

std::string ArchiveReader::read_at(uint64_t offset, uint64_t size) const {
  if (offset > size_ || size > size_ - offset) damaged("an entry is beyond the end of the file; the file is truncated");
  std::string bytes(size, '\0');
  translated([&] { tt::read_exactly(file_, bytes.data(), size, offset, path_); });
  return bytes;
}

void ArchiveReader::read_directory() {
  const uint64_t tail_size = std::min<uint64_t>(size_, 65536 + 22);
  const std::string tail = read_at(size_ - tail_size, tail_size);
  const size_t place = tail.rfind("PK\x05\x06");
  if (place == tail.npos || tail.size() - place < 22)
    damaged("failed finding central directory; the file is truncated");
  uint64_t end = size_ - tail_size + place;
  uint64_t count = number<uint16_t>(tail, place + 10), size = number<uint32_t>(tail, place + 12);
  uint64_t offset = number<uint32_t>(tail, place + 16);
  if (size == kMax32 || offset == kMax32 || count == kMax16) {
    if (end < 76) damaged("expected the end of a large directory");
    const std::string locator = read_at(end - 20, 20);
    if (!locator.starts_with("PK\x06\x07")) damaged("expected the locator of a large directory");
    const auto end64 = number<uint64_t>(locator, 8);
    if (end64 > end - 76) damaged("the end of the directory is beyond the file");
    const std::string record = read_at(end64, 56);
    if (!record.starts_with("PK\x06\x06")) damaged("expected the end of a large directory");
    count = number<uint64_t>(record, 32), size = number<uint64_t>(record, 40), offset = number<uint64_t>(record, 48);
    end = end64;
  }
  if (offset > end || size > end - offset) damaged("the directory is beyond the file");
  if (count > size / 46 || count > kMaxEntries) damaged("the directory has too many entries");
  const std::string directory = read_at(offset, size);
  size_t at = 0;
  for (uint64_t i = 0; i < count; ++i) at = add_entry(directory, at);
  check_overlap(offset);
}

size_t ArchiveReader::add_entry(std::string_view directory, size_t place) {
  if (directory.size() - place < 46 || !directory.substr(place).starts_with("PK\x01\x02")) {
    damaged("expected an entry of the directory");
  }
  const auto flags = number<uint16_t>(directory, place + 8), method = number<uint16_t>(directory, place + 10);
  const size_t name_size = number<uint16_t>(directory, place + 28),
               extra_size = number<uint16_t>(directory, place + 30);
  const size_t after = place + 46 + name_size + extra_size + number<uint16_t>(directory, place + 32);
  if (after > directory.size()) damaged("an entry is beyond the directory");
  uint64_t packed = number<uint32_t>(directory, place + 20);
  Entry entry;
  entry.checksum = number<uint32_t>(directory, place + 16);
  entry.size = number<uint32_t>(directory, place + 24);
  entry.header = number<uint32_t>(directory, place + 42);
  const std::string_view extra = directory.substr(place + 46 + name_size, extra_size);
  for (size_t at = 0; at + 4 <= extra.size();) {
    const size_t length = number<uint16_t>(extra, at + 2);
    if (number<uint16_t>(extra, at) == 1) {  // replaces numbers that exceed 32 bits
      size_t from = at + 4;
      for (uint64_t* field : {&entry.size, &packed, &entry.header}) {
        if (*field != kMax32) continue;
        if (from + 8 > at + 4 + length) damaged("a number of a large entry is missing");
        *field = number<uint64_t>(extra, from);
        from += 8;
      }
      break;
    }
    at += 4 + length;
  }
  const std::string name(directory.substr(place + 46, name_size));
  if (method != 0 || packed != entry.size || (flags & 1) != 0) {
    damaged("expected entries that are neither compressed nor encrypted");
  }
  const size_t slash = name.find('/');
  if (slash == name.npos || !is_plain_path(name)) damaged("expected names of files in a folder");
  if (entries_.empty()) folder_ = name.substr(0, slash);
  if (name.substr(0, slash) != folder_) damaged("expected entries in one folder");
  const std::string local = read_at(entry.header, 30);
  if (!local.starts_with("PK\x03\x04")) damaged("expected the header of an entry");
  entry.data = entry.header + 30 + number<uint16_t>(local, 26) + number<uint16_t>(local, 28);
  if (entry.data > size_ || entry.size > size_ - entry.data)
    damaged("an entry is beyond the file; the file is truncated");
  if (!entries_.emplace(name.substr(slash + 1), entry).second) damaged("an entry occurs twice");
  return after;
}

void ArchiveReader::check_overlap(uint64_t end) {
  std::vector<Entry> sorted;
  sorted.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) sorted.push_back(entry);
  std::sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) { return a.header < b.header; });
  for (size_t i = 0; i < sorted.size(); ++i) {
    const uint64_t next = i + 1 < sorted.size() ? sorted[i + 1].header : end;
    if (sorted[i].data + sorted[i].size > next) damaged("entries overlap");
  }
}

const ArchiveReader::Entry& ArchiveReader::find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) damaged("file not found: " + name);
  return found->second;
}
uint64_t ArchiveReader::size(const std::string& name) const { return find(name).size; }

std::string ArchiveReader::read(const std::string& name) const {
  const Entry& entry = find(name);
  std::string bytes = read_at(entry.data, entry.size);
  // Files without checksums have zeros (torch.serialization.set_crc32_options(False)).
  if (entry.checksum != 0 && checksum_of(bytes) != entry.checksum) damaged("the checksum of '" + name + "' is wrong");
  return bytes;
}

ArchiveWriter::ArchiveWriter(std::string path, std::string folder)
    : path_(std::move(path)),
      temporary_(path_ + ".partial-" + std::to_string(getpid())),
      folder_(std::move(folder)),
      file_(std::fopen(temporary_.c_str(), "wb")) {
  if (!file_) throw_system_error("cannot write", path_, errno);
}
ArchiveWriter::~ArchiveWriter() {
  if (!file_) return;
  std::fclose(file_);
  std::remove(temporary_.c_str());
}

void ArchiveWriter::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size())
    throw_system_error("cannot write", path_, errno);
  position_ += bytes.size();
}

void ArchiveWriter::add(const std::string& name, std::string_view bytes) {
  const Entry entry{folder_ + "/" + name, bytes.size(), position_, checksum_of(bytes)};
  const bool is_large = entry.size >= kMax32 || entry.header >= kMax32;
  std::string extra;
  if (is_large) put<uint16_t>(&extra, 1), put<uint16_t>(&extra, 16), put(&extra, entry.size), put(&extra, entry.size);
  const uint64_t fixed = position_ + 30 + entry.name.size() + extra.size() + 4;
  const uint64_t padding = (kAlignment - fixed % kAlignment) % kAlignment;
  put<uint16_t>(&extra, 0x4246), put(&extra, static_cast<uint16_t>(padding)), extra.append(padding, 'Z');
  std::string header = "PK\x03\x04";
  for (const uint16_t field : {0, 0x0800, 0, 0, 0}) put(&header, field);
  put(&header, entry.checksum);
  const auto size = static_cast<uint32_t>(is_large ? kMax32 : entry.size);
  put(&header, size), put(&header, size);
  put(&header, static_cast<uint16_t>(entry.name.size())), put(&header, static_cast<uint16_t>(extra.size()));
  write(header), write(entry.name), write(extra), write(bytes);
  entries_.push_back(entry);
}

void ArchiveWriter::finish() {
  const uint64_t start = position_;
  for (const Entry& entry : entries_) {
    const bool is_large = entry.size >= kMax32 || entry.header >= kMax32;
    std::string extra;
    if (is_large) {
      put<uint16_t>(&extra, 1), put<uint16_t>(&extra, 24);
      put(&extra, entry.size), put(&extra, entry.size), put(&extra, entry.header);
    }
    std::string record = "PK\x01\x02";
    for (const uint16_t field : {0, 0, 0x0800, 0, 0, 0}) put(&record, field);
    put(&record, entry.checksum);
    const auto size = static_cast<uint32_t>(is_large ? kMax32 : entry.size);
    put(&record, size), put(&record, size);
    put(&record, static_cast<uint16_t>(entry.name.size())), put(&record, static_cast<uint16_t>(extra.size()));
    for (const uint16_t field : {0, 0, 0, 0, 0}) put(&record, field);
    put(&record, static_cast<uint32_t>(is_large ? kMax32 : entry.header));
    write(record), write(entry.name), write(extra);
  }
  const uint64_t size = position_ - start, count = entries_.size();
  if (start >= kMax32 || size >= kMax32 || count >= kMax16) {
    const uint64_t place = position_;
    std::string end = "PK\x06\x06";
    put<uint64_t>(&end, 44), put<uint16_t>(&end, 45), put<uint16_t>(&end, 45), put<uint32_t>(&end, 0);
    put<uint32_t>(&end, 0);
    for (const uint64_t field : {count, count, size, start}) put(&end, field);
    end += "PK\x06\x07";
    put<uint32_t>(&end, 0), put(&end, place), put<uint32_t>(&end, 1);
    write(end);
  }
  std::string end = "PK\x05\x06";
  const auto few = static_cast<uint16_t>(std::min(count, kMax16));
  put<uint16_t>(&end, 0), put<uint16_t>(&end, 0), put(&end, few), put(&end, few);
  put(&end, static_cast<uint32_t>(std::min(size, kMax32))), put(&end, static_cast<uint32_t>(std::min(start, kMax32)));
  put<uint16_t>(&end, 0);
  write(end);
  std::FILE* file = std::exchange(file_, nullptr);
  if (std::fclose(file) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int code = errno;
    std::remove(temporary_.c_str());
    throw_system_error("cannot write", path_, code);
  }
}

}  // namespace teletensor::internal
