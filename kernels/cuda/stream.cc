#include "kernels/cuda/stream.h"

#include <algorithm>

namespace tt::cuda {
namespace {

std::unique_ptr<Runtime>& the_runtime() {
  static auto* runtime = new std::unique_ptr<Runtime>;  // storages and streams may outlive main
  return *runtime;
}

}  // namespace

Runtime& runtime() { return *the_runtime(); }
void set_runtime(std::unique_ptr<Runtime> runtime) { the_runtime() = std::move(runtime); }

namespace {

class CudaGraph final : public Graph {
 public:
  CudaGraph(Device device, StreamHandle stream, GraphHandle handle)
      : device_(device), stream_(stream), handle_(handle) {}
  ~CudaGraph() override { runtime().destroy_graph(handle_); }
  void replay() override {
    make_current(device_);
    runtime().launch(handle_, stream_);
  }

 private:
  Device device_;
  StreamHandle stream_;
  GraphHandle handle_;
};

}  // namespace

CudaEvent::CudaEvent(Device device, StreamHandle stream, bool timed) : device_(device) {
  make_current(device);
  handle_ = runtime().create_event(timed);
  runtime().record(handle_, stream);
}

CudaEvent::~CudaEvent() { runtime().destroy_event(handle_); }

bool CudaEvent::done() const { return runtime().done(handle_); }

void CudaEvent::synchronize() { runtime().synchronize_event(handle_); }

double CudaEvent::elapsed_ms(const Event& since) const {
  return runtime().elapsed_ms(static_cast<const CudaEvent&>(since).handle_, handle_);
}

CudaStream::~CudaStream() {
  if (pool_) pool_->give_back(handle_);
}

void CudaStream::check_may_wait(std::string_view what) const {
  check(!capturing_, "operation not permitted when stream is capturing: ", what);
}

std::unique_ptr<Event> CudaStream::record() {
  check_may_wait("an event");
  return std::make_unique<CudaEvent>(device_, handle_);
}

std::unique_ptr<Event> CudaStream::record_timed() {
  check_may_wait("an event");
  return std::make_unique<CudaEvent>(device_, handle_, true);
}

void CudaStream::wait(const Event& event) {
  check_may_wait("waiting for other work");
  make_current(device_);
  runtime().wait(handle_, static_cast<const CudaEvent&>(event).handle());
}

void CudaStream::synchronize() {
  check_may_wait("waiting for the device");
  make_current(device_);
  runtime().synchronize(handle_);
}

void CudaStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  check_may_wait("a copy from or to the host");
  make_current(device_);
  runtime().copy(to, from, bytes, handle_);
}

void CudaStream::begin_capture() {
  make_current(device_);
  runtime().begin_capture(handle_);
  capturing_ = true;
}

std::unique_ptr<Graph> CudaStream::end_capture() {
  capturing_ = false;
  make_current(device_);
  std::string why;
  GraphHandle graph = runtime().end_capture(handle_, &why);
  check(graph != nullptr, why);
  return std::make_unique<CudaGraph>(device_, handle_, graph);
}

std::unique_ptr<CudaStream> StreamPool::lease() {
  std::lock_guard lock(mutex_);
  auto idle = std::min_element(streams_.begin(), streams_.end(),
                               [](const Lent& a, const Lent& b) { return a.users < b.users; });
  if (idle == streams_.end() || (idle->users > 0 && streams_.size() < kStreams)) {
    make_current(device_);
    idle = streams_.insert(streams_.end(), Lent{runtime().create_stream(), 0});
  }
  ++idle->users;
  return std::make_unique<CudaStream>(device_, this, idle->handle);
}

void StreamPool::give_back(StreamHandle handle) {
  std::lock_guard lock(mutex_);
  for (Lent& lent : streams_) {
    if (lent.handle == handle) --lent.users;
  }
}

}  // namespace tt::cuda
