#include "kernels/plugin/backend.h"

#include <mutex>
#include <utility>

#include "engine/device/devices.h"
#include "engine/memory/caching_pool.h"
#include "kernels/plugin/stream.h"

namespace tt::plugin {
namespace {

class LibraryMemory final : public SegmentSource {
 public:
  LibraryMemory(DeviceLibrary& library, Device device, uint64_t total)
      : library_(library), device_(device), total_(total) {}
  void* map(size_t bytes) override {
    void* address = nullptr;
    std::string message;
    const TeletensorDeviceTable& table = library_.table();
    const int32_t status =
        library_.try_call("allocate", &message, table.allocate, device_.index, uint64_t{bytes}, &address);
    if (status == TELETENSOR_DEVICE_NO_MEMORY) return nullptr;
    check(status == TELETENSOR_DEVICE_OK, message);
    library_.add_segment(device_.index, address, bytes);
    return address;
  }
  void unmap(void* segment, size_t bytes) override {
    std::string ignored;  // the memory is lost
    const TeletensorDeviceTable& table = library_.table();
    library_.try_call("synchronize_device", &ignored, table.synchronize_device, device_.index);
    library_.remove_segment(segment);
    library_.try_call("release", &ignored, table.release, device_.index, segment, uint64_t{bytes});
  }
  std::optional<SystemMemoryInfo> info() override {
    const auto free_memory = library_.table().free_memory;
    uint64_t free = 0;
    std::string ignored;
    const bool is_known = free_memory != nullptr && library_.try_call("free_memory", &ignored, free_memory,
                                                                      device_.index, &free) == TELETENSOR_DEVICE_OK;
    if (!is_known) return std::nullopt;
    return SystemMemoryInfo{std::min(free, total_), total_};
  }

 private:
  DeviceLibrary& library_;
  const Device device_;
  const uint64_t total_;
};

PoolSizes pool_sizes() {
  PoolSizes sizes;
  sizes.granule = 512;
  sizes.page = size_t{2} << 20;
  return sizes;
}

PoolParts parts(DeviceLibrary& library, Device device, uint64_t total) {
  PoolParts parts;
  parts.segments = std::make_unique<LibraryMemory>(library, device, total);
  parts.events = std::make_unique<LibraryStreamEvents>(library);
  return parts;
}

class LibraryBackend final : public Backend {
 public:
  LibraryBackend(DeviceLibrary& library, Device device, uint64_t total, const AllocConf& conf)
      : library_(library),
        device_(device),
        pool_(device, parts(library, device, total), pool_sizes(), conf),
        streams_(library, device) {
    pool_.set_limit(total);
  }

  Allocator& allocator() override { return pool_; }
  // Copies from and to the host wait, so any memory will do.
  Allocator& staging() override { return Devices::instance().allocator(Device{}); }
  Stream& stream() override {
    std::call_once(made_, [this] { stream_ = streams_.lease(); });
    return *stream_;
  }
  std::unique_ptr<Stream> lease_stream() override { return streams_.lease(); }
  std::vector<LibraryInfo> libraries() const override { return {{library_.name(), library_.version(), ""}}; }
  BackendCalls calls() const override { return library_.calls(device_.index); }
  uint64_t free_memory() override {
    uint64_t free = 0;
    if (const auto free_memory = library_.table().free_memory) {
      library_.call("free_memory", free_memory, device_.index, &free);
    }
    return free;
  }
  void synchronize() override {
    library_.call("synchronize_device", library_.table().synchronize_device, device_.index);
  }

 private:
  DeviceLibrary& library_;
  const Device device_;
  CachingPool pool_;
  LibraryStreams streams_;
  std::once_flag made_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(DeviceLibrary& library, Device device, uint64_t total_memory,
                                      const AllocConf& conf) {
  return std::make_unique<LibraryBackend>(library, device, total_memory, conf);
}

}  // namespace tt::plugin
