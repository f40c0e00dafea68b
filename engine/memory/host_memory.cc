#include "engine/memory/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tt {
namespace {

// Reads a file with one number. Returns nothing for other contents, such as "max".
std::optional<uint64_t> number_in(const std::string& path) {
  uint64_t number = 0;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

// Returns the sum of the values of `keys` in a file of lines "key value".
uint64_t sum_of(const std::string& path, std::initializer_list<absl::string_view> keys) {
  std::ifstream file(path);
  uint64_t sum = 0, value = 0;
  for (std::string key; file >> key >> value;) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) sum += value;
  }
  return sum;
}

struct GroupFiles {
  const char* limit;
  const char* used;
  // Keys of memory.stat that count the children too, as `used` does.
  const char* inactive_pages;
  const char* active_pages;
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                               "total_active_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file", "active_file"};

// Lowers `memory` to the limits of the group at `folder`, and of its parents up to `top`.
void apply_groups(const std::string& top, std::string folder, const GroupFiles& files, HostMemory* memory) {
  for (;;) {
    const std::string group = absl::StrCat(top, folder, "/");
    const std::optional<uint64_t> limit = number_in(group + files.limit);
    if (limit && *limit > 0 && *limit < memory->total) memory->total = *limit;
    const std::optional<uint64_t> used = limit ? number_in(group + files.used) : std::nullopt;
    if (used) {
      // Pages of files are counted as used, but the kernel takes them back before the limit is reached.
      const uint64_t files_cached = sum_of(group + "memory.stat", {files.inactive_pages, files.active_pages});
      const uint64_t held = *used - std::min(*used, files_cached);
      memory->available = std::min(memory->available, *limit - std::min(*limit, held));
    }
    if (folder.empty()) return;
    folder.resize(folder.find_last_of('/'));
  }
}

}  // namespace

std::optional<HostMemory> read_host_memory(const std::string& root) {
  HostMemory memory;
  std::optional<uint64_t> available;
  std::ifstream meminfo(root + "/proc/meminfo");
  for (std::string key, unit; meminfo >> key;) {
    uint64_t kib = 0;
    if (!(meminfo >> kib)) break;
    if (key == "MemTotal:") memory.total = kib << 10;
    if (key == "MemAvailable:") available = kib << 10;
    if (memory.total != 0 && available) break;
    std::getline(meminfo, unit);
  }
  if (memory.total == 0 || !available) return std::nullopt;
  memory.available = *available;
  uint64_t pages = 0, resident = 0, shared = 0;
  if (std::ifstream(root + "/proc/self/statm") >> pages >> resident >> shared) {
    memory.resident = (resident - std::min(resident, shared)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  const std::string groups = root + "/sys/fs/cgroup";
  std::ifstream membership(root + "/proc/self/cgroup");
  for (std::string line; std::getline(membership, line);) {  // "number:controllers:/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = absl::StrCat(",", line.substr(first + 1, second - first - 1), ",");
    std::string folder = line.substr(second + 1);
    while (!folder.empty() && folder.back() == '/') folder.pop_back();
    // A path that begins with "/.." is outside the process's namespace: only the mounted root is visible.
    if (folder.empty() || folder.front() != '/' || folder.starts_with("/..")) folder.clear();
    if (controllers == ",,") apply_groups(groups, folder, kVersion2, &memory);
    if (controllers.find(",memory,") != std::string::npos) {
      apply_groups(groups + "/memory", folder, kVersion1, &memory);
    }
  }
  return memory;
}

uint64_t default_memory_limit(uint64_t total) {
  const uint64_t room = std::max(total / 16, std::min(total / 8 + (uint64_t{256} << 20), uint64_t{4} << 30));
  return total - std::min(room, total / 2);
}

uint64_t kept_free_memory(uint64_t total) { return std::clamp(total / 32, uint64_t{128} << 20, uint64_t{1} << 30); }

}  // namespace tt
