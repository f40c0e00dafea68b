// Runtime for GPUs: calls cudart, which is linked statically, and the driver's virtual-memory functions, which are
// looked up through cudart.
#include <cuda.h>
#include <cuda_runtime.h>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "kernels/cuda/libraries/driver.h"
#include "kernels/cuda/libraries/launch_graph.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {
namespace {

[[noreturn]] void cuda_error(const char* call, cudaError_t code) {
  cudaGetLastError();  // clears the error; a lost device reports its error again
  fail(ErrorKind::kRuntime, "CUDA error: ", cudaGetErrorString(code), " (", cudaGetErrorName(code), " from ", call,
       ")");
}

void must(const char* call, cudaError_t code) {
  if (code != cudaSuccess) [[unlikely]]
    cuda_error(call, code);
}

struct Driver {
  decltype(&cuDeviceGet) device = driver_function<decltype(&cuDeviceGet)>("cuDeviceGet");
  decltype(&cuDeviceGetAttribute) attribute = driver_function<decltype(&cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  decltype(&cuMemGetAllocationGranularity) granularity =
      driver_function<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  decltype(&cuMemAddressReserve) reserve = driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) release = driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemCreate) create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) destroy = driver_function<decltype(&cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map = driver_function<decltype(&cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = driver_function<decltype(&cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access = driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
};

const Driver& driver() {
  static const Driver driver;
  return driver;
}

bool has_virtual_memory(int device) {
  CUdevice handle = 0;
  int supported = 0;
  return driver().device(&handle, device) == CUDA_SUCCESS &&
         driver().attribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, handle) ==
             CUDA_SUCCESS &&
         supported != 0;
}

CUmemAllocationProp on_current_device() {
  int device = 0;
  must("cudaGetDevice", cudaGetDevice(&device));
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return property;
}

cudaStream_t stream_of(StreamHandle handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t event_of(EventHandle handle) { return static_cast<cudaEvent_t>(handle); }
cudaGraphExec_t graph_of(GraphHandle handle) { return static_cast<cudaGraphExec_t>(handle); }
CUdeviceptr address_of(void* p) { return reinterpret_cast<CUdeviceptr>(p); }

// While it exists, the thread may make calls that CUDA forbids to a thread that is capturing a stream, such as
// allocations and event queries. The calls do not affect the capture.
class RelaxedCaptureScope {
 public:
  RelaxedCaptureScope() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCaptureScope() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCaptureScope(const RelaxedCaptureScope&) = delete;
  RelaxedCaptureScope& operator=(const RelaxedCaptureScope&) = delete;

 private:
  // The mode to set; cudart replaces it by the thread's previous mode.
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

class CudaRuntime final : public Runtime {
 public:
  int device_count(std::string* why) override {
    int count = 0;  // not set on failure
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess) {
      *why = cudaGetErrorString(code);
      cudaGetLastError();
      return 0;
    }
    if (count == 0) *why = "the driver reports no devices";
    return count;
  }

  Properties properties(int device) override {
    cudaDeviceProp found;
    must("cudaGetDeviceProperties", cudaGetDeviceProperties(&found, device));
    return {found.name,
            found.major,
            found.minor,
            found.totalGlobalMem,
            found.multiProcessorCount,
            found.maxThreadsPerBlock,
            has_virtual_memory(device)};
  }

  std::string driver_version() override {
    int version = 0;
    must("cudaDriverGetVersion", cudaDriverGetVersion(&version));
    return absl::StrCat(version / 1000, ".", version % 1000 / 10);
  }

  void set_device(int device) override { must("cudaSetDevice", cudaSetDevice(device)); }

  void* allocate(size_t bytes) override {
    const RelaxedCaptureScope relaxed;
    return or_null("cudaMalloc", [&](void** p) { return cudaMalloc(p, bytes); });
  }
  void free(void* p) noexcept override { cudaFree(p); }
  void* allocate_host(size_t bytes) override {
    const RelaxedCaptureScope relaxed;
    return or_null("cudaHostAlloc",
                   [&](void** p) { return cudaHostAlloc(p, bytes, cudaHostAllocPortable | cudaHostAllocMapped); });
  }
  void free_host(void* p) noexcept override { cudaFreeHost(p); }
  bool register_host(void* p, size_t bytes) override {
    const RelaxedCaptureScope relaxed;
    const bool registered =
        cudaHostRegister(p, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped) == cudaSuccess;
    if (!registered) cudaGetLastError();
    return registered;
  }
  void unregister_host(void* p) noexcept override {
    if (cudaHostUnregister(p) != cudaSuccess) cudaGetLastError();
  }
  void memory_info(uint64_t* free, uint64_t* total) override {
    size_t available = 0, all = 0;
    must("cudaMemGetInfo", cudaMemGetInfo(&available, &all));
    *free = available;
    *total = all;
  }

  size_t granularity() override {
    size_t bytes = 0;
    const CUmemAllocationProp property = on_current_device();
    driver().granularity(&bytes, &property, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    return bytes;
  }
  void* reserve(size_t bytes) override {
    CUdeviceptr addresses = 0;
    return driver().reserve(&addresses, bytes, 0, 0, 0) == CUDA_SUCCESS ? reinterpret_cast<void*>(addresses) : nullptr;
  }
  void release(void* addresses, size_t bytes) noexcept override { driver().release(address_of(addresses), bytes); }
  bool map(void* at, size_t bytes, PhysicalHandle* piece) override {
    const RelaxedCaptureScope relaxed;
    const CUmemAllocationProp property = on_current_device();
    CUmemGenericAllocationHandle handle = 0;
    if (driver().create(&handle, bytes, &property, 0) != CUDA_SUCCESS) return false;
    const CUmemAccessDesc access{property.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const bool mapped = driver().map(address_of(at), bytes, 0, handle, 0) == CUDA_SUCCESS;
    if (mapped && driver().set_access(address_of(at), bytes, &access, 1) == CUDA_SUCCESS) {
      *piece = handle;
      return true;
    }
    if (mapped) driver().unmap(address_of(at), bytes);
    driver().destroy(handle);
    return false;
  }
  void unmap(void* at, size_t bytes, PhysicalHandle piece) noexcept override {
    driver().unmap(address_of(at), bytes);
    driver().destroy(piece);
  }

  StreamHandle create_stream() override {
    cudaStream_t stream = nullptr;
    must("cudaStreamCreate", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }
  void destroy_stream(StreamHandle stream) noexcept override { cudaStreamDestroy(stream_of(stream)); }
  void synchronize(StreamHandle stream) override {
    must("cudaStreamSynchronize", cudaStreamSynchronize(stream_of(stream)));
  }
  void synchronize_device() override { must("cudaDeviceSynchronize", cudaDeviceSynchronize()); }
  EventHandle create_event(bool timing) override {
    cudaEvent_t event = nullptr;
    must("cudaEventCreate", cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming));
    return event;
  }
  void destroy_event(EventHandle event) noexcept override { cudaEventDestroy(event_of(event)); }
  void record(EventHandle event, StreamHandle stream) override {
    must("cudaEventRecord", cudaEventRecord(event_of(event), stream_of(stream)));
  }
  void wait(StreamHandle stream, EventHandle event) override {
    must("cudaStreamWaitEvent", cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
  }
  bool done(EventHandle event) override {
    const RelaxedCaptureScope relaxed;
    const cudaError_t code = cudaEventQuery(event_of(event));
    if (code == cudaErrorNotReady) return false;
    must("cudaEventQuery", code);
    return true;
  }
  void synchronize_event(EventHandle event) override {
    must("cudaEventSynchronize", cudaEventSynchronize(event_of(event)));
  }
  float elapsed_ms(EventHandle from, EventHandle to) override {
    float ms = 0;
    must("cudaEventElapsedTime", cudaEventElapsedTime(&ms, event_of(from), event_of(to)));
    return ms;
  }

  void copy(void* to, const void* from, size_t bytes, StreamHandle stream) override {
    must("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
  }
  void fill(void* to, int byte, size_t bytes, StreamHandle stream) override {
    must("cudaMemsetAsync", cudaMemsetAsync(to, byte, bytes, stream_of(stream)));
  }
  void check_launch() override { must("a kernel launch", cudaGetLastError()); }

  std::unique_ptr<LaunchGraph> make_graph(absl::Span<const KernelLaunch* const> launches) override {
    return make_cuda_graph(launches);
  }

  void begin_capture(StreamHandle stream) override {
    must("cudaStreamBeginCapture", cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal));
  }
  GraphHandle end_capture(StreamHandle stream, std::string* why) override {
    cudaGraph_t graph = nullptr;
    cudaError_t code = cudaStreamEndCapture(stream_of(stream), &graph);
    cudaGraphExec_t ready = nullptr;
    if (code == cudaSuccess && graph) code = cudaGraphInstantiate(&ready, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    if (code == cudaSuccess && ready) return ready;
    cudaGetLastError();
    *why = cudaGetErrorString(code);
    return nullptr;
  }
  bool is_capturing(StreamHandle stream) override {
    cudaStreamCaptureStatus status;
    must("cudaStreamIsCapturing", cudaStreamIsCapturing(stream_of(stream), &status));
    return status != cudaStreamCaptureStatusNone;
  }
  void launch(GraphHandle graph, StreamHandle stream) override {
    must("cudaGraphLaunch", cudaGraphLaunch(graph_of(graph), stream_of(stream)));
  }
  void destroy_graph(GraphHandle graph) noexcept override { cudaGraphExecDestroy(graph_of(graph)); }

 private:
  // Returns null if memory is exhausted, which is not an error of the device.
  template <typename Allocate>
  static void* or_null(const char* call, Allocate allocate) {
    void* p = nullptr;
    const cudaError_t code = allocate(&p);
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    must(call, code);
    return p;
  }
};

}  // namespace

std::unique_ptr<Runtime> make_runtime() { return std::make_unique<CudaRuntime>(); }

}  // namespace tt::cuda
