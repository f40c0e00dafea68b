#include "engine/memory/deferred_frees.h"

#include <algorithm>
#include <thread>

#include "engine/schema/error.h"

namespace tt {
namespace {

// Whether the device has reached `event`. Returns true for a lost device, because it executes nothing. Callers that
// wait for a result receive the error.
bool is_reached(const Event& event) {
  try {
    return event.done();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

bool DeferredFrees::add(Block* block, bool capturing) {
  if (!capturing) record_event(block);
  if (!block->other_streams.empty()) without_event_.push_back(block);
  return !is_done(block);
}

void DeferredFrees::record_event(Block* block) {
  auto& streams = block->other_streams;
  auto recorded = [&](const StreamId& stream) { return record_event(block, stream); };
  streams.erase(std::remove_if(streams.begin(), streams.end(), recorded), streams.end());
}

bool DeferredFrees::record_event(Block* block, const StreamId& stream) {
  std::unique_ptr<Event> event;
  try {
    event = events_->record(stream);
  } catch (const Error&) {
    return true;  // the device is lost: there is nothing to wait for
  }
  if (!event) return false;
  auto queue = std::find_if(queues_.begin(), queues_.end(), [&](const StreamQueue& l) { return l.stream == stream; });
  if (queue == queues_.end()) queue = queues_.insert(queue, StreamQueue{stream, {}});
  queue->events.push_back({std::move(event), block});
  ++block->events;
  return true;
}

void DeferredFrees::collect_completed(Done done) {
  for (Block* block : std::exchange(without_event_, {})) {
    record_event(block);
    if (!block->other_streams.empty()) {
      without_event_.push_back(block);
    } else if (is_done(block)) {
      done(block);
    }
  }
  for (StreamQueue& queue : queues_) finish_queue(queue, false, done);
  std::erase_if(queues_, [](const StreamQueue& queue) { return queue.events.empty(); });
}

void DeferredFrees::wait(Done done) {
  collect_completed(done);
  for (StreamQueue& queue : queues_) finish_queue(queue, true, done);
  queues_.clear();
}

void DeferredFrees::finish_queue(StreamQueue& queue, bool wait, Done done) {
  for (; !queue.events.empty(); queue.events.pop_front()) {
    // Polls instead of waiting: a wait would consume a kernel's error, which must be reported to the caller that waits
    // for its result.
    while (!is_reached(*queue.events.front().event)) {
      if (!wait) return;
      std::this_thread::yield();
    }
    Block* block = queue.events.front().block;
    --block->events;
    if (is_done(block)) done(block);
  }
}

}  // namespace tt
