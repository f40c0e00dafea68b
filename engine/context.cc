#include "engine/context.h"

#include "engine/devices.h"

namespace tt {
namespace {

Context& fallback() {
  thread_local Context context;
  return context;
}

thread_local Context* current_context = nullptr;

}  // namespace

Context& Context::current() { return current_context ? *current_context : fallback(); }

Stream& Context::stream(Device device) {
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (stream->device() == device) return *stream;
  }
  Backend& backend = Devices::instance().backend(device);
  if (!account) return backend.stream();
  return *streams_.emplace_back(backend.lease_stream());
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

FaultLog& Context::faults() {
  if (!faults_) faults_ = std::make_unique<FaultLog>();
  return *faults_;
}

Graphs& Context::graphs() {
  if (!graphs_) graphs_ = std::make_unique<Graphs>();
  return *graphs_;
}

void Context::close() {
  ContextScope scope(this);  // a capture that is under way ends in its own context, whoever's thread this is
  graphs_ = nullptr;
  faults_ = nullptr;
  streams_.clear();
}

ContextScope::ContextScope(Context* context) : saved_(current_context) { current_context = context; }

ContextScope::~ContextScope() { current_context = saved_; }

}  // namespace tt
