#include "kernels/cuda/runtime/device.h"

#include "absl/strings/str_cat.h"
#include "engine/memory/alloc_conf.h"
#include "engine/memory/caching_pool.h"
#include "kernels/cuda/runtime/event_pool.h"
#include "kernels/cuda/runtime/graph_replayer.h"
#include "kernels/cuda/runtime/library_status.h"
#include "kernels/cuda/runtime/segments.h"
#include "kernels/cuda/runtime/stream.h"

namespace tt::cuda {
namespace {

PoolSizes pool_sizes() {
  PoolSizes sizes;
  sizes.granule = 512;
  sizes.page = size_t{2} << 20;
  return sizes;
}

PoolParts device_parts(Device device, const Properties& properties) {
  PoolParts parts;
  parts.segments = std::make_unique<DeviceMemory>(device);
  parts.events = std::make_unique<EventPool>();
  if (properties.virtual_memory) parts.ranges = std::make_unique<VirtualMemory>(device, properties.total_memory);
  return parts;
}

PoolParts staging_parts(Device device) {
  PoolParts parts;
  parts.segments = std::make_unique<PinnedMemory>(device);
  parts.events = std::make_unique<EventPool>();
  return parts;
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(Device device, const Properties& properties, const AllocConf& conf)
      : device_(device),
        pool_(device, device_parts(device, properties), pool_sizes(), conf),
        staging_(Device{}, staging_parts(device), pool_sizes(), {}),
        streams_(device) {}

  Allocator& allocator() override { return pool_; }
  Allocator& staging() override { return staging_; }
  bool pin(void* pages, size_t bytes) override try {
    make_current(device_);
    return runtime().register_host(pages, bytes);
  } catch (const Error&) {  // the device was lost
    return false;
  }
  void unpin(void* pages) override try {
    make_current(device_);
    runtime().unregister_host(pages);
  } catch (const Error&) {
  }
  Stream& stream() override {
    std::call_once(made_, [this] { stream_ = streams_.lease(); });
    return *stream_;
  }
  std::unique_ptr<Stream> lease_stream() override { return streams_.lease(); }
  std::vector<LibraryInfo> libraries() const override { return library_statuses(); }
  uint64_t free_memory() override {
    make_current(device_);
    uint64_t free = 0, total = 0;
    runtime().memory_info(&free, &total);
    return free;
  }
  void synchronize() override {
    GraphReplayer::flush_all();
    make_current(device_);
    runtime().synchronize_device();
  }

 private:
  Device device_;
  CachingPool pool_;
  CachingPool staging_;
  StreamPool streams_;
  std::once_flag made_;
  std::unique_ptr<CudaStream> stream_;
};

}  // namespace

int add_devices(Devices& devices, std::string* why) {
  const AllocConf conf = alloc_conf_of_environment();
  GraphReplayer::check_environment();
  const int count = runtime().device_count(why);
  for (int i = 0; i < count; ++i) {
    const Properties properties = runtime().properties(i);
    DeviceInfo info;
    info.device = Device{DeviceType::kCUDA, static_cast<int8_t>(i)};
    info.name = properties.name;
    info.total_memory = properties.total_memory;
    info.compute_capability = absl::StrCat(properties.major, ".", properties.minor);
    info.driver = runtime().driver_version();
    devices.add(info, std::make_unique<CudaBackend>(info.device, properties, conf));
  }
  return count;
}

}  // namespace tt::cuda
