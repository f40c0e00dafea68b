#include "tests/cuda/simulated/runtime.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "kernels/cuda/launch/launch_host.h"
#include "kernels/cuda/runtime/launch_trace.h"

namespace tt::cuda {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

thread_local int current_device = 0;

[[noreturn]] void cuda_error(std::string_view what) { fail(ErrorKind::kRuntime, "CUDA error: ", what); }

uint64_t megabytes(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  uint64_t value = 0;
  return text && absl::SimpleAtoi(text, &value) ? value << 20 : otherwise;
}

// Issues the captured launches, with updated parameters if any.
class SimulatedGraph final : public LaunchGraph {
 public:
  explicit SimulatedGraph(absl::Span<const KernelLaunch* const> launches) {
    for (const KernelLaunch* launch : launches) trace_.add(*launch);
  }
  bool change(size_t place, const KernelLaunch& launch) override {
    simulated_runtime().note("cudaGraphExecNodeSetParams");
    if (simulated_runtime().refuses_graphs()) return false;
    trace_.replace(place, launch);
    return true;
  }
  void launch(StreamHandle stream) override {
    simulated_runtime().note("cudaGraphLaunch");
    for (size_t i = 0; i < trace_.size(); ++i) trace_[i].issue(trace_[i], stream);
  }

 private:
  LaunchTrace trace_;
};

// The range that contains `p`; null if there is none.
template <typename Map>
const typename Map::value_type* range_of(const Map& ranges, const void* p) {
  auto at = ranges.upper_bound(static_cast<const char*>(p));
  return at == ranges.begin() ? nullptr : &*std::prev(at);
}

}  // namespace

SimulatedRuntime& simulated_runtime() { return static_cast<SimulatedRuntime&>(runtime()); }

// In a daemon the plug-in creates the runtime: the number of devices and their memory are read from the environment.
std::unique_ptr<Runtime> make_runtime() {
  SimulatedRuntime::Options options;
  const char* devices = std::getenv("TELETENSOR_SIMULATED_DEVICES");
  if (int count = 0; devices && absl::SimpleAtoi(devices, &count) && count > 0) options.devices = count;
  options.memory = megabytes("TELETENSOR_SIMULATED_MEMORY_MB", options.memory);
  if (const char* losses = std::getenv("TELETENSOR_SIMULATED_LOSSES")) options.losses = losses;
  options.refuses_pinning = std::getenv("TELETENSOR_SIMULATED_REFUSES_PINNING") != nullptr;
  return std::make_unique<SimulatedRuntime>(options);
}

void enqueue(StreamHandle stream, std::function<void()> work) { simulated_runtime().enqueue(stream, std::move(work)); }

SimulatedRuntime::SimulatedRuntime(Options options)
    : options_(options), devices_(options.devices), refuse_pinning_(options.refuses_pinning) {}

SimulatedRuntime::~SimulatedRuntime() {
  for (const auto& stream : streams_) drain(*stream);
  for (const auto& [data, bytes] : pinned_) std::free(const_cast<char*>(data));
}

void SimulatedRuntime::fail_next_kernel(std::string why) {
  Lock lock(mutex_);
  failing_kernel_ = std::move(why);
}

void SimulatedRuntime::fail_work(std::string why) {
  Lock lock(mutex_);
  std::fprintf(stderr, "simulated device: %s\n", why.c_str());
  if (failure_.empty()) failure_ = std::move(why);
}

void SimulatedRuntime::lose_device(std::string why) { lose(current_device, std::move(why)); }

void SimulatedRuntime::lose(int device, std::string why) {
  Lock lock(mutex_);
  for (const auto& stream : streams_) {
    if (stream->device == device) stream->queue.clear();
  }
  devices_[device].lost = std::move(why);
}

void SimulatedRuntime::fail_allocations(bool fail) {
  Lock lock(mutex_);
  fail_allocations_ = fail;
}

void SimulatedRuntime::refuse_graphs(bool refuse) {
  Lock lock(mutex_);
  refuse_graphs_ = refuse;
}

bool SimulatedRuntime::refuses_graphs() const {
  Lock lock(mutex_);
  return refuse_graphs_;
}

void SimulatedRuntime::refuse_pinning(bool refuse) {
  Lock lock(mutex_);
  refuse_pinning_ = refuse;
}

bool SimulatedRuntime::has_work(StreamHandle stream) const {
  Lock lock(mutex_);
  return !static_cast<Stream*>(stream)->queue.empty();
}

std::vector<std::string> SimulatedRuntime::calls() const {
  Lock lock(mutex_);
  return calls_;
}

void SimulatedRuntime::forget_calls() {
  Lock lock(mutex_);
  calls_.clear();
}

uint64_t SimulatedRuntime::held() const {
  Lock lock(mutex_);
  uint64_t bytes = 0;
  for (const Device& device : devices_) bytes += device.held;
  return bytes;
}

SimulatedRuntime::Device& SimulatedRuntime::current() { return devices_[current_device]; }

void SimulatedRuntime::note(const char* call, uint64_t value) {
  Lock lock(mutex_);
  constexpr size_t kMaxCalls = 100'000;  // limited, because a daemon never reads and clears the list
  if (calls_.size() < kMaxCalls) calls_.push_back(value ? absl::StrCat(call, " ", value) : call);
}

void SimulatedRuntime::check_device(int device) {
  if (!options_.losses.empty() && devices_[device].lost.empty() &&
      access(absl::StrCat(options_.losses, "/lost-", device).c_str(), F_OK) == 0) {
    lose(device, "the device fell off the bus");
  }
  if (!devices_[device].lost.empty()) cuda_error(devices_[device].lost);
}

// ---- Work ----------------------------------------------------------------------------------

void SimulatedRuntime::add(Stream& stream, Job job) {
  check_device(stream.device);
  stream.queue.push_back(std::move(job));
  if (options_.eager) drain(stream);
}

void SimulatedRuntime::run_first(Stream& stream) {
  if (stream.queue.front().awaited) run_until(stream.queue.front().awaited);
  Job job = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (job.run) {
    guarded_.open();
    job.run();
  }
  if (job.mark) job.mark->done = true;
}

void SimulatedRuntime::run_until(const std::shared_ptr<Mark>& mark) {
  const GuardedMemory::Opening opening(guarded_);
  while (!mark->done && !mark->stream->queue.empty()) run_first(*mark->stream);
}

void SimulatedRuntime::drain(Stream& stream) {
  const GuardedMemory::Opening opening(guarded_);
  while (!stream.queue.empty()) run_first(stream);
}

void SimulatedRuntime::drain_device(int device) {
  for (const auto& stream : streams_) {
    if (stream->device == device) drain(*stream);
  }
}

void SimulatedRuntime::raise_failure() {
  if (failure_.empty()) return;
  cuda_error(std::exchange(failure_, {}));
}

void SimulatedRuntime::enqueue(StreamHandle handle, std::function<void()> work, SimulatedWork what) {
  Lock lock(mutex_);
  auto& stream = *static_cast<Stream*>(handle);
  what.device = stream.device;
  what.stream = stream.number;
  if (!failing_kernel_.empty()) work = [this, why = std::exchange(failing_kernel_, {})] { failure_ = why; };
  if (stream.capturing) {
    stream.captured.push_back(std::move(work));
  } else {
    add(stream, {traced(std::move(work), what), nullptr, nullptr});
  }
}

bool SimulatedRuntime::reachable(const void* p) const {
  const auto* held = range_of(memory_, p);
  if (held && static_cast<const char*>(p) < held->first + held->second.first) return true;
  const auto* pinned = range_of(pinned_, p);
  return (pinned && static_cast<const char*>(p) < pinned->first + pinned->second) || use_registered(p);
}

std::shared_ptr<void> SimulatedRuntime::use_registered(const void* p) const {
  const auto* range = range_of(registered_, p);
  return range && static_cast<const char*>(p) < range->first + range->second.bytes ? range->second.use : nullptr;
}

void SimulatedRuntime::copy(void* to, const void* from, size_t bytes, StreamHandle stream) {
  Lock lock(mutex_);
  const auto read = use_registered(from), written = use_registered(to);
  note(read ? "cudaMemcpyAsync from registered" : written ? "cudaMemcpyAsync to registered" : "cudaMemcpyAsync", bytes);
  const SimulatedWork what{SimulatedWork::kCopy, bytes};
  enqueue(
      stream, [to, from, bytes, read, written] { std::memmove(to, from, bytes); }, what);
  // Pageable memory is read before the call returns.
  if (!reachable(to) || !reachable(from)) synchronize(stream);
}

void SimulatedRuntime::fill(void* to, int byte, size_t bytes, StreamHandle stream) {
  enqueue(stream, [=] { std::memset(to, byte, bytes); }, {SimulatedWork::kFill, bytes});
}

void SimulatedRuntime::check_launch() {
  Lock lock(mutex_);
  check_device(current_device);
}

// ---- Devices and memory --------------------------------------------------------------------

int SimulatedRuntime::device_count(std::string* why) {
  if (options_.devices == 0) *why = "no CUDA-capable device is detected";
  return options_.devices;
}

Properties SimulatedRuntime::properties(int) {
  Properties properties;
  properties.name = "simulated GPU";
  properties.major = 9;
  properties.total_memory = options_.memory;
  properties.multiprocessors = 1;
  properties.virtual_memory = true;
  return properties;
}

void SimulatedRuntime::set_device(int device) {
  if (device < 0 || device >= options_.devices) cuda_error("invalid device ordinal");
  current_device = device;
}

void* SimulatedRuntime::allocate(size_t bytes) {
  Lock lock(mutex_);
  note("cudaMalloc", bytes);
  check_device(current_device);
  if (fail_allocations_ || bytes > options_.memory - current().held) return nullptr;
  char* p = guarded_.reserve(bytes);
  if (!p) return nullptr;
  guarded_.add(p, bytes);
  memory_[p] = {bytes, current_device};
  current().held += bytes;
  return p;
}

void SimulatedRuntime::free(void* p) noexcept {
  Lock lock(mutex_);
  note("cudaFree");
  auto at = memory_.find(static_cast<char*>(p));
  if (at == memory_.end()) std::abort();
  drain_device(at->second.second);
  devices_[at->second.second].held -= at->second.first;
  guarded_.remove(static_cast<char*>(p), at->second.first);
  guarded_.release(static_cast<char*>(p));
  memory_.erase(at);
}

void* SimulatedRuntime::allocate_host(size_t bytes) {
  Lock lock(mutex_);
  note("cudaHostAlloc", bytes);
  void* p = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (p) pinned_[static_cast<char*>(p)] = bytes;
  return p;
}

void SimulatedRuntime::free_host(void* p) noexcept {
  Lock lock(mutex_);
  note("cudaFreeHost");
  for (int device = 0; device < options_.devices; ++device) drain_device(device);
  pinned_.erase(static_cast<char*>(p));
  std::free(p);
}

bool SimulatedRuntime::register_host(void* p, size_t bytes) {
  Lock lock(mutex_);
  note("cudaHostRegister", bytes);
  if (refuse_pinning_) return false;
  return registered_.emplace(static_cast<char*>(p), Registered{bytes}).second;
}

void SimulatedRuntime::unregister_host(void* p) noexcept {
  Lock lock(mutex_);
  note("cudaHostUnregister");
  auto found = registered_.find(static_cast<char*>(p));
  if (found == registered_.end() || found->second.use.use_count() != 1) std::abort();
  registered_.erase(found);
}

void SimulatedRuntime::memory_info(uint64_t* free, uint64_t* total) {
  Lock lock(mutex_);
  *total = options_.memory;
  *free = options_.memory - current().held;
}

void* SimulatedRuntime::reserve(size_t bytes) {
  Lock lock(mutex_);
  note("cuMemAddressReserve", bytes);
  return guarded_.reserve(bytes);
}

void SimulatedRuntime::release(void* addresses, size_t bytes) noexcept {
  Lock lock(mutex_);
  note("cuMemAddressFree", bytes);
  guarded_.release(static_cast<char*>(addresses));
}

bool SimulatedRuntime::map(void* at, size_t bytes, PhysicalHandle* piece) {
  Lock lock(mutex_);
  note("cuMemMap", bytes);
  if (fail_allocations_ || bytes > options_.memory - current().held) return false;
  guarded_.add(static_cast<char*>(at), bytes);
  memory_[static_cast<char*>(at)] = {bytes, current_device};
  current().held += bytes;
  *piece = next_piece_++;
  return true;
}

void SimulatedRuntime::unmap(void* at, size_t bytes, PhysicalHandle) noexcept {
  Lock lock(mutex_);
  note("cuMemUnmap", bytes);
  auto found = memory_.find(static_cast<char*>(at));
  if (found == memory_.end() || found->second.first != bytes) std::abort();
  devices_[found->second.second].held -= bytes;
  memory_.erase(found);
  guarded_.remove(static_cast<char*>(at), bytes);
}

// ---- Streams and events --------------------------------------------------------------------

StreamHandle SimulatedRuntime::create_stream() {
  Lock lock(mutex_);
  note("cudaStreamCreate");
  auto made = std::make_unique<Stream>();
  made->device = current_device;
  made->number = next_stream_++;
  return streams_.insert(std::move(made)).first->get();
}

void SimulatedRuntime::destroy_stream(StreamHandle handle) noexcept {
  Lock lock(mutex_);
  for (auto at = streams_.begin(); at != streams_.end(); ++at) {
    if (at->get() != handle) continue;
    drain(**at);
    streams_.erase(at);
    return;
  }
}

void SimulatedRuntime::synchronize(StreamHandle handle) {
  Lock lock(mutex_);
  note("cudaStreamSynchronize");
  auto& stream = *static_cast<Stream*>(handle);
  if (stream.capturing) {
    stream.refusal = "something waits for the stream";
    cuda_error("operation not permitted when stream is capturing");
  }
  check_device(stream.device);
  drain(stream);
  raise_failure();
}

void SimulatedRuntime::synchronize_device() {
  Lock lock(mutex_);
  note("cudaDeviceSynchronize");
  check_device(current_device);
  drain_device(current_device);
  raise_failure();
}

EventHandle SimulatedRuntime::create_event(bool) {
  ++events_;
  return new Event;
}
void SimulatedRuntime::destroy_event(EventHandle event) noexcept {
  --events_;
  delete static_cast<Event*>(event);
}

void SimulatedRuntime::record(EventHandle handle, StreamHandle stream_handle) {
  Lock lock(mutex_);
  note("cudaEventRecord");
  auto& stream = *static_cast<Stream*>(stream_handle);
  auto mark = std::make_shared<Mark>(Mark{&stream});
  static_cast<Event*>(handle)->mark = mark;
  if (stream.capturing) {
    mark->done = true;  // work outside the graph must not wait for this event
    return;
  }
  add(stream, {nullptr, mark, nullptr});
}

void SimulatedRuntime::wait(StreamHandle stream_handle, EventHandle handle) {
  Lock lock(mutex_);
  note("cudaStreamWaitEvent");
  auto& stream = *static_cast<Stream*>(stream_handle);
  const auto& mark = static_cast<Event*>(handle)->mark;
  if (!mark || mark->done || mark->stream == &stream) return;
  if (stream.capturing) {
    stream.refusal = "it depends on work outside the graph";
    return;
  }
  add(stream, {nullptr, nullptr, mark});
}

bool SimulatedRuntime::done(EventHandle handle) {
  Lock lock(mutex_);
  const std::shared_ptr<Mark> mark = static_cast<Event*>(handle)->mark;
  if (!mark || mark->done) return true;
  check_device(mark->stream->device);
  const GuardedMemory::Opening opening(guarded_);
  if (!mark->stream->queue.empty()) run_first(*mark->stream);  // so that polling makes progress
  return false;
}

void SimulatedRuntime::synchronize_event(EventHandle handle) {
  Lock lock(mutex_);
  const std::shared_ptr<Mark> mark = static_cast<Event*>(handle)->mark;
  if (!mark) return;
  check_device(mark->stream->device);
  run_until(mark);
  raise_failure();
}

float SimulatedRuntime::elapsed_ms(EventHandle, EventHandle) { return 0.001f; }

// ---- Graphs --------------------------------------------------------------------------------

std::unique_ptr<LaunchGraph> SimulatedRuntime::make_graph(absl::Span<const KernelLaunch* const> launches) {
  note("cudaGraphInstantiate", launches.size());
  if (refuses_graphs()) cuda_error("the launch cannot be part of a graph");
  return std::make_unique<SimulatedGraph>(launches);
}

void SimulatedRuntime::begin_capture(StreamHandle handle) {
  Lock lock(mutex_);
  note("cudaStreamBeginCapture");
  auto& stream = *static_cast<Stream*>(handle);
  if (stream.capturing) cuda_error("the stream is already capturing");
  stream.capturing = true;
  stream.refusal.clear();
  stream.captured.clear();
}

GraphHandle SimulatedRuntime::end_capture(StreamHandle handle, std::string* why) {
  Lock lock(mutex_);
  note("cudaStreamEndCapture");
  auto& stream = *static_cast<Stream*>(handle);
  stream.capturing = false;
  *why = stream.refusal;
  if (!why->empty()) return nullptr;
  return new Graph{std::move(stream.captured)};
}

bool SimulatedRuntime::is_capturing(StreamHandle handle) {
  Lock lock(mutex_);
  return static_cast<Stream*>(handle)->capturing;
}

void SimulatedRuntime::launch(GraphHandle graph, StreamHandle stream) {
  Lock lock(mutex_);
  note("cudaGraphLaunch");
  for (const auto& work : static_cast<Graph*>(graph)->work) enqueue(stream, work);
}

void SimulatedRuntime::destroy_graph(GraphHandle graph) noexcept { delete static_cast<Graph*>(graph); }

}  // namespace tt::cuda
