#include "engine/memory/deferred_frees.h"

#include <algorithm>
#include <thread>

#include "engine/schema/error.h"

namespace tt {
namespace {

// A lost device runs nothing; its loss is reported to callers that wait for a result.
bool is_reached(const Event& event) {
  try {
    return event.done();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

bool DeferredFrees::add(Block* block, bool capturing) {
  if (!capturing) mark(block);
  if (!block->other_streams.empty()) unmarked_.push_back(block);
  return !is_done(block);
}

void DeferredFrees::mark(Block* block) {
  auto& streams = block->other_streams;
  auto marked = [&](const StreamId& stream) { return mark(block, stream); };
  streams.erase(std::remove_if(streams.begin(), streams.end(), marked), streams.end());
}

bool DeferredFrees::mark(Block* block, const StreamId& stream) {
  std::unique_ptr<Event> event;
  try {
    event = events_->record(stream);
  } catch (const Error&) {
    return true;  // device lost: nothing to wait for
  }
  if (!event) return false;
  auto line = std::find_if(lines_.begin(), lines_.end(), [&](const Line& l) { return l.stream == stream; });
  if (line == lines_.end()) line = lines_.insert(line, Line{stream, {}});
  line->marks.push_back({std::move(event), block});
  ++block->events;
  return true;
}

void DeferredFrees::settle(Done done) {
  for (Block* block : std::exchange(unmarked_, {})) {
    mark(block);
    if (!block->other_streams.empty()) {
      unmarked_.push_back(block);
    } else if (is_done(block)) {
      done(block);
    }
  }
  for (Line& line : lines_) finish_line(line, false, done);
  std::erase_if(lines_, [](const Line& line) { return line.marks.empty(); });
}

void DeferredFrees::wait(Done done) {
  settle(done);
  for (Line& line : lines_) finish_line(line, true, done);
  lines_.clear();
}

void DeferredFrees::finish_line(Line& line, bool wait, Done done) {
  for (; !line.marks.empty(); line.marks.pop_front()) {
    // Polls instead of waiting: a wait would consume a kernel's error, which must be reported to the caller that waits
    // for its result.
    while (!is_reached(*line.marks.front().event)) {
      if (!wait) return;
      std::this_thread::yield();
    }
    Block* block = line.marks.front().block;
    --block->events;
    if (is_done(block)) done(block);
  }
}

}  // namespace tt
