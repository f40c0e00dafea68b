#include "server/daemon/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/schema/op.h"
#include "kernels/cuda/plugin.h"
#include "kernels/plugin/plugin.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

namespace fs = std::filesystem;

constexpr char kDriver[] = "libcuda.so.1";
constexpr char kPlugin[] = "libteletensor_cuda.so";

// Opens a library, which is never closed.
void* open_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

// Path of the plug-in in the build tree, a wheel or an installation; empty if there is none.
std::optional<std::string> installed_plugin() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path lib = program.parent_path().parent_path() / "lib";
  for (const fs::path& path : {lib / kPlugin, lib / "teletensor" / kPlugin}) {
    if (fs::exists(path, failed)) return path.native();
  }
  return std::nullopt;
}

// Returns the library to open. If there is none, logs the reason and returns nothing.
std::optional<std::string> find_plugin() {
  if (const char* named = std::getenv("TELETENSOR_CUDA_PLUGIN"); named && *named) return named;
  if (!open_library(kDriver)) {
    spdlog::info("no CUDA driver is installed; using the CPU only");
    return std::nullopt;
  }
  std::optional<std::string> path = installed_plugin();
  if (!path) spdlog::warn("a CUDA driver is installed, but {} is not; using the CPU only", kPlugin);
  return path;
}

// Loads the plug-in at `path` and registers its GPUs. Returns the number of GPUs; if it is 0, `why` contains the
// reason.
int register_plugin(const std::string& path, Devices& devices, Dispatcher& dispatcher, std::string* why) {
  void* library = open_library(path.c_str());
  if (!library) {
    *why = dlerror();
    return 0;
  }
  auto* digest = reinterpret_cast<decltype(&teletensor_cuda_digest)>(dlsym(library, "teletensor_cuda_digest"));
  auto* enter = reinterpret_cast<decltype(&teletensor_cuda_register)>(dlsym(library, "teletensor_cuda_register"));
  if (!digest || !enter) {
    *why = absl::StrCat(path, " is not a teletensor plug-in");
    return 0;
  }
  if (digest() != schema_digest()) {
    *why = absl::StrCat(path, " was built for a different operator table than this daemon");
    return 0;
  }
  std::array<char, 1024> reason{};
  const int count = enter(&devices, &dispatcher, reason.data(), reason.size());
  reason.back() = 0;
  *why = reason.data();
  return count;
}

// The files of --devices.
std::vector<std::string> library_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code failed;
    if (!fs::is_directory(path, failed)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (fs::directory_iterator entry(path, failed), end; !failed && entry != end; entry.increment(failed)) {
      if (entry->path().extension() == ".so") found.push_back(entry->path().native());
    }
    if (failed) spdlog::warn("cannot read the folder {} of --devices: {}", path, failed.message());
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace

int open_device_libraries(const std::vector<std::string>& paths, Devices& devices, Dispatcher& dispatcher) {
  int count = 0;
  for (const std::string& file : library_files(paths)) {
    try {
      const int added = plugin::add_library(plugin::DeviceLibrary::open(file), devices, dispatcher);
      if (added == 0) spdlog::warn("{} has no devices", file);
      count += added;
    } catch (const std::exception& error) {
      spdlog::warn("{} is not used: {}", file, error.what());
    }
  }
  for (const DeviceInfo& info : devices.list()) {
    if (!is_plugin(info.device.type)) continue;
    spdlog::info("{}: {}, {} MiB, version {}", to_string(info.device), info.name, info.total_memory >> 20, info.driver);
  }
  return count;
}

int open_cuda_plugin(Devices& devices, Dispatcher& dispatcher) {
  const std::optional<std::string> path = find_plugin();
  if (!path) return 0;
  std::string why;
  const int count = register_plugin(*path, devices, dispatcher, &why);
  if (count == 0) spdlog::warn("no GPU: {}; using the CPU only", why);
  for (const DeviceInfo& info : devices.list()) {
    if (info.device.type != DeviceType::kCUDA) continue;
    spdlog::info("{}: {}, {} GiB, driver {}", to_string(info.device), info.name, info.total_memory >> 30, info.driver);
  }
  return count;
}

}  // namespace tt::server
