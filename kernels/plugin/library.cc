#include "kernels/plugin/library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/schema/op.h"

namespace tt::plugin {
namespace {

constexpr char kEntry[] = "teletensor_device_table";
constexpr size_t kMaxOperators = 65'536;
constexpr uintptr_t kAlignment = 64, kMaxAddress = INT64_MAX;

// The text up to `max` characters, if it is printable ASCII.
std::string printable(const char* text, size_t max) {
  if (text == nullptr) return "";
  const std::string found(text, strnlen(text, max + 1));
  const bool valid =
      found.size() <= max && std::all_of(found.begin(), found.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return valid ? found : "";
}

}  // namespace

std::unique_ptr<DeviceLibrary> DeviceLibrary::open(const std::string& path) {
  struct stat file {};
  check(ErrorKind::kValue, stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode), path, " is not a file");
  // Otherwise any user of the host could run code in the engine.
  check(ErrorKind::kValue, (file.st_mode & S_IWOTH) == 0, path, " can be written by every user of this host");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(ErrorKind::kValue, "cannot open the device library: ", dlerror());
  auto* const entry = reinterpret_cast<decltype(&teletensor_device_table)>(dlsym(library, kEntry));
  check(ErrorKind::kValue, entry != nullptr, path, " is not a device library: it has no function ", kEntry);
  const TeletensorDeviceTable* table = nullptr;
  try {
    table = entry(TELETENSOR_DEVICE_ABI);
  } catch (...) {
    fail(ErrorKind::kValue, path, ": ", kEntry, "() threw an exception");
  }
  check(ErrorKind::kValue, table != nullptr, path, " does not support version ", TELETENSOR_DEVICE_ABI,
        " of the interface of device libraries");
  return std::make_unique<DeviceLibrary>(table, path);
}

DeviceLibrary::DeviceLibrary(const TeletensorDeviceTable* table, const std::string& path) : table_(*table) {
  check(ErrorKind::kValue, table_.abi == TELETENSOR_DEVICE_ABI, path, " was built for version ", table_.abi,
        " of the interface of device libraries; this engine has version ", TELETENSOR_DEVICE_ABI);
  check(ErrorKind::kValue, table_.size >= sizeof(TeletensorDeviceTable), path, ": its table has ", table_.size,
        " bytes, of at least ", sizeof(TeletensorDeviceTable));
  constexpr size_t kMaxName = 32, kMaxVersion = 64;
  name_ = printable(table_.name, kMaxName);
  version_ = printable(table_.version, kMaxVersion);
  check(ErrorKind::kValue, is_device_type_name(name_), path, ": '", name_,
        "' is no valid name of a device type: expected a lower-case identifier that is no device type of PyTorch");
  check_functions(path);
  find_operators(path);
}

void DeviceLibrary::check_functions(const std::string& path) const {
  const auto require = [&](bool is_present, const char* name) {
    check(ErrorKind::kValue, is_present, path, ": its table has no function ", name);
  };
  require(table_.device_count, "device_count");
  require(table_.properties, "properties");
  require(table_.allocate, "allocate");
  require(table_.release, "release");
  require(table_.create_stream, "create_stream");
  require(table_.synchronize_stream, "synchronize_stream");
  require(table_.synchronize_device, "synchronize_device");
  require(table_.create_event, "create_event");
  require(table_.destroy_event, "destroy_event");
  require(table_.record_event, "record_event");
  require(table_.wait_event, "wait_event");
  require(table_.query_event, "query_event");
  require(table_.synchronize_event, "synchronize_event");
  require(table_.copy_to_device, "copy_to_device");
  require(table_.copy_to_host, "copy_to_host");
  require(table_.copy_on_device, "copy_on_device");
  require(table_.zero, "zero");
}

void DeviceLibrary::find_operators(const std::string& path) {
  if (table_.num_operators == 0) return;
  check(ErrorKind::kValue, table_.operators != nullptr && table_.num_operators <= kMaxOperators, path,
        ": its table has ", table_.num_operators, " operators, of at most ", kMaxOperators, ", at ",
        table_.operators == nullptr ? "no address" : "an address");
  check(ErrorKind::kValue, table_.operator_size >= sizeof(TeletensorDeviceOperator) && table_.operator_size <= 4096,
        path, ": its operators have ", table_.operator_size, " bytes each, of at least ",
        sizeof(TeletensorDeviceOperator));
  const auto* at = reinterpret_cast<const char*>(table_.operators);
  for (uint32_t i = 0; i < table_.num_operators; ++i, at += table_.operator_size) {
    TeletensorDeviceOperator entry;
    std::memcpy(&entry, at, sizeof entry);
    constexpr size_t kMaxOperatorName = 128;
    const std::string name = printable(entry.name, kMaxOperatorName);
    check(ErrorKind::kValue, !name.empty() && entry.kernel != nullptr, path, ": entry ", i,
          " of its operators has no name or no kernel");
    const Op* op = find_op(name);
    // A library may be older or newer than the engine: the CPU executes what it does not know.
    if (op == nullptr || op->params.size() != entry.num_arguments || op->is_view || op->is_dynamic) continue;
    check(ErrorKind::kValue, operators_.try_emplace(op->id, entry).second, path, ": the operator ", name,
          " has two kernels");
  }
}

std::string DeviceLibrary::describe(std::string_view what, std::string_view text) const {
  constexpr std::string_view kNone = "the device library gives no reason";
  return absl::StrCat(name_, ": ", message_part(what), ": ", message_part(text.empty() ? kNone : text));
}

void DeviceLibrary::add_segment(int device, void* address, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  check(begin != 0 && begin % kAlignment == 0 && begin <= kMaxAddress && bytes <= kMaxAddress - begin, name_,
        ": allocate: the library returned an address that is not usable");
  MutexLock lock(mutex_);
  const auto after = segments_.lower_bound(begin);
  const bool overlaps_next = after != segments_.end() && after->first < begin + bytes;
  const bool overlaps_last =
      after != segments_.begin() && std::prev(after)->first + std::prev(after)->second.bytes > begin;
  check(!overlaps_next && !overlaps_last, name_, ": allocate: the library returned memory that is in use");
  segments_.emplace(begin, Segment{bytes, device});
}

void DeviceLibrary::remove_segment(void* address) {
  MutexLock lock(mutex_);
  segments_.erase(reinterpret_cast<uintptr_t>(address));
}

int DeviceLibrary::device_of(const void* p, size_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(p);
  MutexLock lock(mutex_);
  auto after = segments_.upper_bound(begin);
  if (after == segments_.begin()) return -1;
  const auto& [address, segment] = *std::prev(after);
  if (begin >= address + segment.bytes) return -1;
  check(bytes <= address + segment.bytes - begin, name_, ": a copy exceeds the device's memory");
  return segment.device;
}

void DeviceLibrary::count_fallback(int device, std::string_view op) {
  const auto d = static_cast<size_t>(device);
  counters_[d].fallbacks.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  ++fallbacks_[d][std::string(op)];
}

BackendCalls DeviceLibrary::calls(int device) const {
  constexpr size_t kMaxListed = 20;
  const auto d = static_cast<size_t>(device);
  BackendCalls calls;
  calls.kernels = counters_[d].kernels.load(std::memory_order_relaxed);
  calls.fallbacks = counters_[d].fallbacks.load(std::memory_order_relaxed);
  MutexLock lock(mutex_);
  calls.operators.assign(fallbacks_[d].begin(), fallbacks_[d].end());
  std::sort(calls.operators.begin(), calls.operators.end(), [](const auto& a, const auto& b) {
    return std::pair(b.second, std::string_view(a.first)) < std::pair(a.second, std::string_view(b.first));
  });
  if (calls.operators.size() > kMaxListed) calls.operators.resize(kMaxListed);
  return calls;
}

}  // namespace tt::plugin
