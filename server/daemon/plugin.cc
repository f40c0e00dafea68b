#include "server/daemon/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/schema/op.h"
#include "kernels/cuda/plugin.h"
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
  return enter(&devices, &dispatcher, why);
}

}  // namespace

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
