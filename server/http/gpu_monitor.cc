#include "server/http/gpu_monitor.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

constexpr int kStaleIntervals = 10;
constexpr unsigned kMaxGpus = 64;
constexpr unsigned kTextBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE

// From nvml.h.
using Result = int;  // nvmlReturn_t
constexpr Result kSuccess = 0;
using Device = void*;  // nvmlDevice_t
struct Utilization {   // nvmlUtilization_t, in percent
  unsigned gpu;
  unsigned memory;
};
struct Memory {  // nvmlMemory_t
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

}  // namespace

// The functions of NVML. Initialised while the object exists.
class GpuMonitor::Library {
 public:
  // Returns null if the library is missing or incomplete, or cannot be initialised.
  static std::unique_ptr<Library> open(const std::string& file) {
    auto library = std::make_unique<Library>();
    library->handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library->handle_ == nullptr) return nullptr;
    Result (*init)() = nullptr;
    const bool complete = library->find(init, "nvmlInit_v2") && library->find(library->shutdown_, "nvmlShutdown") &&
                          library->find(library->count_, "nvmlDeviceGetCount_v2") &&
                          library->find(library->handle_of_, "nvmlDeviceGetHandleByIndex_v2") &&
                          library->find(library->uuid_, "nvmlDeviceGetUUID") &&
                          library->find(library->name_, "nvmlDeviceGetName") &&
                          library->find(library->utilization_, "nvmlDeviceGetUtilizationRates") &&
                          library->find(library->memory_, "nvmlDeviceGetMemoryInfo");
    if (!complete) {
      spdlog::warn("{} lacks functions; the GPUs' utilisation is not shown", file);
      return nullptr;
    }
    library->initialised_ = init() == kSuccess;
    return library->initialised_ ? std::move(library) : nullptr;
  }
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (initialised_) shutdown_();
    if (handle_ != nullptr) dlclose(handle_);
  }

  // GPUs that cannot be identified are left out; of the others, values that are not available.
  std::vector<Gpu> read() const {
    std::vector<Gpu> gpus;
    unsigned count = 0;
    if (count_(&count) != kSuccess) return gpus;
    for (unsigned i = 0; i < std::min(count, kMaxGpus); ++i) {
      Device device = nullptr;
      char uuid[kTextBytes] = "", name[kTextBytes] = "";
      if (handle_of_(i, &device) != kSuccess || uuid_(device, uuid, kTextBytes) != kSuccess ||
          name_(device, name, kTextBytes) != kSuccess) {
        continue;
      }
      uuid[kTextBytes - 1] = name[kTextBytes - 1] = '\0';
      Gpu gpu{.index = i, .uuid = printable(uuid), .name = printable(name)};
      Utilization utilization{};
      if (utilization_(device, &utilization) == kSuccess) gpu.utilization = 0.01 * utilization.gpu;
      Memory memory{};
      if (memory_(device, &memory) == kSuccess) {
        gpu.used_bytes = memory.used;
        gpu.total_bytes = memory.total;
      }
      gpus.push_back(std::move(gpu));
    }
    return gpus;
  }

 private:
  template <typename Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    return function != nullptr;
  }

  void* handle_ = nullptr;
  bool initialised_ = false;
  Result (*shutdown_)() = nullptr;
  Result (*count_)(unsigned*) = nullptr;
  Result (*handle_of_)(unsigned, Device*) = nullptr;
  Result (*uuid_)(Device, char*, unsigned) = nullptr;
  Result (*name_)(Device, char*, unsigned) = nullptr;
  Result (*utilization_)(Device, void* utilization) = nullptr;
  Result (*memory_)(Device, void* memory) = nullptr;
};

std::unique_ptr<const GpuMonitor> GpuMonitor::start(const std::string& library, std::chrono::milliseconds interval) {
  std::unique_ptr<Library> opened = Library::open(library);
  if (!opened || opened->read().empty()) return nullptr;
  return std::unique_ptr<const GpuMonitor>(new GpuMonitor(std::move(opened), interval));
}

GpuMonitor::GpuMonitor(std::unique_ptr<Library> library, std::chrono::milliseconds interval)
    : interval_(interval), library_(std::move(library)) {
  read();
  thread_ = std::thread([this] { run(); });
}

GpuMonitor::~GpuMonitor() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void GpuMonitor::read() {
  std::vector<Gpu> gpus = library_->read();
  MutexLock lock(mutex_);
  gpus_ = std::move(gpus);
  read_at_ = Clock::now();
}

void GpuMonitor::run() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
      if (stopped_.wait_for(mutex_, interval_, stopping)) return;
    }
    read();
  }
}

std::vector<GpuMonitor::Gpu> GpuMonitor::gpus() const {
  MutexLock lock(mutex_);
  return Clock::now() - read_at_ > kStaleIntervals * interval_ ? std::vector<Gpu>() : gpus_;
}

}  // namespace tt::server
