#include "kernels/cuda/runtime/stream.h"

#include <algorithm>

namespace tt::cuda {
namespace {

class CudaGraph final : public Graph {
 public:
  CudaGraph(GraphReplayer& replayer, GraphHandle handle) : replayer_(replayer), handle_(handle) {}
  ~CudaGraph() override { runtime().destroy_graph(handle_); }
  void replay() override {
    make_current(replayer_.device());
    replayer_.flush();
    runtime().launch(handle_, replayer_.stream());
  }

 private:
  GraphReplayer& replayer_;  // the stream's replayer, which lives as long as the device
  GraphHandle handle_;
};

}  // namespace

CudaEvent::CudaEvent(GraphReplayer& replayer, bool timed) {
  make_current(replayer.device());
  replayer.flush();
  handle_ = record_event(replayer.stream(), timed);
}

CudaEvent::~CudaEvent() { runtime().destroy_event(handle_); }

bool CudaEvent::done() const { return runtime().done(handle_); }

void CudaEvent::synchronize() { runtime().synchronize_event(handle_); }

double CudaEvent::elapsed_ms(const Event& since) const {
  return runtime().elapsed_ms(static_cast<const CudaEvent&>(since).handle_, handle_);
}

CudaStream::~CudaStream() { pool_->release(replayer_); }

void CudaStream::check_not_capturing(std::string_view what) const {
  // Sessions that share the stream have leases of their own.
  check(!capturing_ && !runtime().is_capturing(handle()), "operation not permitted when stream is capturing: ", what);
}

void CudaStream::make_ready(std::string_view what) {
  check_not_capturing(what);
  make_current(device());
  replayer_->flush();
}

std::unique_ptr<Event> CudaStream::record() {
  check_not_capturing("an event");
  return std::make_unique<CudaEvent>(*replayer_);
}

std::unique_ptr<Event> CudaStream::record_timed() {
  check_not_capturing("an event");
  return std::make_unique<CudaEvent>(*replayer_, true);
}

void CudaStream::wait(const Event& event) {
  make_ready("waiting for other work");
  runtime().wait(handle(), static_cast<const CudaEvent&>(event).handle());
}

void CudaStream::synchronize() {
  make_ready("waiting for the device");
  runtime().synchronize(handle());
}

void CudaStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  make_ready("a copy from or to the host");
  runtime().copy(to, from, bytes, handle());
}

void CudaStream::zero(void* p, size_t bytes) {
  if (bytes == 0) return;
  make_current(device());
  const auto fill = [=](StreamHandle stream) { runtime().fill(p, 0, bytes, stream); };
  using Fill = decltype(fill);
  add(*KernelLaunchWith<Fill>(
      [](const KernelLaunch& launch, StreamHandle stream) { parameters_of<Fill>(launch)(stream); }, fill));
}

void CudaStream::begin_capture() {
  make_current(device());
  replayer_->set_capturing(true);
  try {
    runtime().begin_capture(handle());
  } catch (...) {
    replayer_->set_capturing(false);
    throw;
  }
  capturing_ = true;
}

std::unique_ptr<Graph> CudaStream::end_capture() {
  capturing_ = false;
  make_current(device());
  std::string why;
  GraphHandle graph = runtime().end_capture(handle(), &why);
  replayer_->set_capturing(false);
  check(graph != nullptr, why);
  return std::make_unique<CudaGraph>(*replayer_, graph);
}

std::unique_ptr<CudaStream> StreamPool::lease() {
  MutexLock lock(mutex_);
  auto idle = std::min_element(streams_.begin(), streams_.end(),
                               [](const LeasedStream& a, const LeasedStream& b) { return a.users < b.users; });
  if (idle == streams_.end() || (idle->users > 0 && streams_.size() < kStreams)) {
    make_current(device_);
    idle = streams_.insert(streams_.end(),
                           LeasedStream{std::make_unique<GraphReplayer>(device_, runtime().create_stream()), 0});
  }
  ++idle->users;
  return std::make_unique<CudaStream>(this, idle->replayer.get());
}

void StreamPool::release(const GraphReplayer* replayer) {
  MutexLock lock(mutex_);
  for (LeasedStream& leased : streams_) {
    if (leased.replayer.get() == replayer) --leased.users;
  }
}

}  // namespace tt::cuda
