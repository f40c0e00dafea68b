#include "distributed/nccl/nccl_library.h"

#include <dlfcn.h>

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"

namespace tt::distributed::nccl {
namespace {

constexpr int kOldest = 21'400;  // 2.14: communicators that do not block

struct Opened {
  std::optional<Library> library;
  std::string why;
};

// Opens a library by its name in the system's search path. Null, and a reason, if it cannot be opened.
void* open(const char* file, std::string* why) {
  void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* text = dlerror();
  *why = text == nullptr ? absl::StrCat("cannot open ", file) : text;
  return nullptr;
}

Opened open_nccl() {
  Opened opened;
  void* handle = open("libnccl.so.2", &opened.why);
  if (handle == nullptr) return opened;
  Library found;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr && opened.why.empty()) opened.why = absl::StrCat("libnccl.so.2 has no function ", name);
  };
  Result (*get_version)(int*);
  find(get_version, "ncclGetVersion");
  find(found.get_unique_id, "ncclGetUniqueId");
  find(found.comm_init_rank_config, "ncclCommInitRankConfig");
  find(found.comm_finalize, "ncclCommFinalize");
  find(found.comm_destroy, "ncclCommDestroy");
  find(found.comm_abort, "ncclCommAbort");
  find(found.comm_get_async_error, "ncclCommGetAsyncError");
  find(found.get_error_string, "ncclGetErrorString");
  find(found.get_last_error, "ncclGetLastError");
  find(found.group_start, "ncclGroupStart");
  find(found.group_end, "ncclGroupEnd");
  find(found.all_reduce, "ncclAllReduce");
  find(found.reduce, "ncclReduce");
  find(found.broadcast, "ncclBroadcast");
  find(found.all_gather, "ncclAllGather");
  find(found.reduce_scatter, "ncclReduceScatter");
  find(found.send, "ncclSend");
  find(found.recv, "ncclRecv");
  if (!opened.why.empty()) return opened;
  if (get_version(&found.version) != kSuccess || found.version < kOldest) {
    opened.why = absl::StrCat("expected NCCL 2.14 or later, got version code ", found.version);
    return opened;
  }
  opened.library = found;
  return opened;
}

}  // namespace

const Library* library(std::string* why) {
  static const Opened opened = open_nccl();
  if (opened.library) return &*opened.library;
  *why = opened.why;
  return nullptr;
}

bool device_uuid(int index, Uuid* uuid) {
  struct Driver {  // cuda.h: CUresult is an int enum, CUdevice an int, CUuuid 16 bytes
    int (*init)(unsigned int) = nullptr;
    int (*device_get)(int*, int) = nullptr;
    int (*device_get_uuid)(Uuid*, int) = nullptr;
    Driver() {
      std::string why;
      void* handle = open("libcuda.so.1", &why);
      if (handle == nullptr) return;
      init = reinterpret_cast<decltype(init)>(dlsym(handle, "cuInit"));
      device_get = reinterpret_cast<decltype(device_get)>(dlsym(handle, "cuDeviceGet"));
      device_get_uuid = reinterpret_cast<decltype(device_get_uuid)>(dlsym(handle, "cuDeviceGetUuid"));
    }
  };
  static const Driver driver;
  if (driver.init == nullptr || driver.device_get == nullptr || driver.device_get_uuid == nullptr) return false;
  int device = 0;
  return driver.init(0) == 0 && driver.device_get(&device, index) == 0 && driver.device_get_uuid(uuid, device) == 0;
}

}  // namespace tt::distributed::nccl
