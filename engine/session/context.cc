#include "engine/session/context.h"

#include <chrono>
#include <thread>

#include "engine/device/devices.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/written_tensors.h"

namespace tt {

Context& Context::current() {
  if (AllocScope* scope = current_or_null()) [[likely]]
    return static_cast<Context&>(*scope);
  thread_local Context own;
  set_current(&own);
  return own;
}

Context::~Context() {
  if (current_or_null() == this) set_current(nullptr);  // the thread's default context is destroyed with the thread
}

Stream& Context::stream(Device device) {
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (stream->device() == device) return *stream;
  }
  Backend& backend = Devices::instance().backend(device);
  if (!account) return backend.stream();
  return *streams_.emplace_back(backend.lease_stream());
}

void Context::finish_device_work() {
  if (capturing()) return;
  for (const std::unique_ptr<Stream>& stream : streams_) {
    try {
      const std::unique_ptr<Event> event = stream->record();
      while (!event->done()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    } catch (const Error&) {  // the device was lost
    }
  }
}

ReplayCounts Context::replays() const {
  ReplayCounts all;
  for (const std::unique_ptr<Stream>& stream : streams_) {
    ReplayCounts counts = stream->replays();
    all.graphs += counts.graphs;
    all.replays += counts.replays;
    all.launches += counts.launches;
    all.changed += counts.changed;
    if (!counts.refusal.empty()) all.refusal = std::move(counts.refusal);
  }
  return all;
}

AsyncErrorTracker& Context::async_errors() {
  if (!async_errors_) async_errors_ = std::make_unique<AsyncErrorTracker>();
  may_observe_kernels_ = true;
  return *async_errors_;
}

Graphs& Context::graphs() {
  if (!graphs_) graphs_ = std::make_unique<Graphs>();
  may_observe_kernels_ = true;
  return *graphs_;
}

void Context::start_profiler(Profiler::Options options) {
  profiler_ = nullptr;  // ends a trace of the devices before the next one starts
  profiler_ = std::make_unique<Profiler>(options);
  may_observe_kernels_ = true;
}

uint64_t Context::bookkeeping_bytes() const {
  return host_bytes + services.host_bytes() + (profiler_ ? profiler_->host_bytes() : 0);
}

void Context::set_write_observer(WriteObserver* observer) {
  write_observer_ = observer;
  if (observer != nullptr) may_observe_kernels_ = true;
}

void Context::before_kernel(const Call& call) {
  if (write_observer_ != nullptr) {
    for_each_written(call, [this](const Tensor& tensor) {
      if (write_observer_ != nullptr) write_observer_->before_write(tensor);
    });
  }
  if (capturing()) [[unlikely]]
    graphs_->check(call);
  if (profiler_) profiler_->begin_kernel(call);
}

void Context::on_skipped(const Op& op, Args args, const Error& error, uint32_t site) {
  services.skipped(op, args, error, site);
}

void Context::after_kernel(const Call& call) {
  if (profiler_) profiler_->end_kernel(call);
  if (has_async_errors()) async_errors_->attach(call);
}

void Context::before_instruction(SlotTable& slots, const Op& op, uint32_t count, uint32_t site) {
  if (has_async_errors()) async_errors_->make_room(slots);
  if (profiler_) profiler_->begin_instruction(op, count, site);
}

void Context::after_instructions(bool suspended) {
  if (profiler_) profiler_->end_instruction(suspended);
}

void Context::close() {
  ContextScope scope(this);  // a capture in progress must end in its own context, on any thread
  graphs_ = nullptr;
  autocast = Autocast();
  autocasts = false;
  async_errors_ = nullptr;
  profiler_ = nullptr;
  write_observer_ = nullptr;
  may_observe_kernels_ = false;
  streams_.clear();
  services.clear();
  events = Events();
  describe_site = nullptr;
  account = nullptr;
  host_bytes = 0;
}

ContextScope::ContextScope(Context* context)
    : saved_(Context::current_or_null()),
      saved_thread_limit_(set_thread_limit(context == nullptr ? 0 : context->max_threads)) {
  Context::set_current(context);
}

ContextScope::~ContextScope() {
  Context::set_current(saved_);
  set_thread_limit(saved_thread_limit_);
}

}  // namespace tt
