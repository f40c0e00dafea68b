// DeferredFrees: freed blocks that other streams may still use.
//
// Used by CachingPool under its lock.
#pragma once

#include <deque>
#include <list>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/device/stream_events.h"
#include "engine/memory/block.h"

namespace tt {

class DeferredFrees {
 public:
  using Done = absl::FunctionRef<void(Block*)>;  // called when the block is no longer in use

  explicit DeferredFrees(StreamEvents* events) : events_(events) {}
  bool empty() const { return queues_.empty() && without_event_.empty(); }

  // Keeps `block` until the work now queued in its other streams is done. Returns false if no such work exists. While a
  // graph is captured (`capturing`), no events are recorded: a later collect_completed() records them.
  bool add(Block* block, bool capturing);
  // Calls `done` for the blocks that no stream uses any more. Must not be called while a graph is captured.
  void collect_completed(Done done);
  // Waits for all blocks, except for those used by a stream that is being captured.
  void wait(Done done);

 private:
  struct PendingEvent {
    std::unique_ptr<Event> event;
    Block* block;
  };
  struct StreamQueue {  // the pending events of one stream, in order
    StreamId stream;
    std::deque<PendingEvent> events;
  };

  void record_event(Block* block);
  bool record_event(Block* block, const StreamId& stream);  // false if the stream is being captured
  void finish_queue(StreamQueue& queue, bool wait, Done done);
  static bool is_done(const Block* block) { return block->events == 0 && block->other_streams.empty(); }

  StreamEvents* events_;
  std::list<StreamQueue> queues_;      // no empty queues
  std::vector<Block*> without_event_;  // blocks with streams that have no event yet
};

}  // namespace tt
