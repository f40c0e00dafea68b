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
  if (!account) return Devices::instance().backend(device).stream();
  return *leased(device).stream;
}

Context::Leased& Context::leased(Device device) {
  for (Leased& leased : streams_) {
    if (leased.stream->device() == device) return leased;
  }
  Leased& made = streams_.emplace_back(Leased{Devices::instance().backend(device).lease_stream(), nullptr});
  DeviceQueue* const queue = queues_ == nullptr ? nullptr : queues_->of(device);
  if (queue != nullptr) made.turn = std::make_unique<DeviceTurn>(*queue, *share_, *flow_, *made.stream);
  return made;
}

void Context::share_gpus(const FairQueues* queues, Share* share, Flow* flow) {
  queues_ = queues;
  share_ = share;
  flow_ = flow;
  shares_gpus = queues != nullptr && !queues->gpus.empty();
}

void Context::before_launch(Device device) {
  // Without a turn of the processors, the thread does not execute a frame: it packs a value that is read.
  if (capturing() || !account || Turn::current() == nullptr) return;
  if (DeviceTurn* const turn = leased(device).turn.get()) turn->before_launch();
}

void Context::rest_turns() {
  for (const Leased& leased : streams_) {
    if (leased.turn) leased.turn->rest();
  }
}

void Context::release_turn(Device device) {
  for (const Leased& leased : streams_) {
    if (leased.turn && leased.stream->device() == device) leased.turn->leave();
  }
}

std::chrono::nanoseconds Context::take_waited() {
  std::chrono::nanoseconds all{0};
  for (const Leased& leased : streams_) {
    if (leased.turn) all += leased.turn->take_waited();
  }
  return all;
}

void Context::finish_device_work() {
  if (capturing()) return;
  for (const Leased& leased : streams_) {
    try {
      const std::unique_ptr<Event> event = leased.stream->record();
      while (!event->done()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    } catch (const Error&) {  // the device was lost
    }
  }
}

ReplayCounts Context::replays() const {
  ReplayCounts all;
  for (const Leased& leased : streams_) {
    ReplayCounts counts = leased.stream->replays();
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
  shares_gpus = false;
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
