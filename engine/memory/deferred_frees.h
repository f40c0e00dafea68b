// DeferredFrees: blocks that were freed while streams other than their own may still use them.
//
// For CachingPool, under its lock.
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
  using Done = absl::FunctionRef<void(Block*)>;  // the block is nobody's now

  explicit DeferredFrees(StreamEvents* events) : events_(events) {}
  bool empty() const { return lines_.empty() && unmarked_.empty(); }

  // Keeps `block` until what is in its streams by now is done; false where nothing is. While a graph is captured
  // (`capturing`) no stream is asked for an event: that happens at a later settle().
  bool add(Block* block, bool capturing);
  // Those that are done. Not while a graph is captured.
  void settle(Done done);
  // Waits for all of them, save what a stream that is captured elsewhere may use.
  void wait(Done done);

 private:
  struct Mark {
    std::unique_ptr<Event> event;
    Block* block;
  };
  struct Line {  // of marks in one stream, which are reached in their order
    StreamId stream;
    std::deque<Mark> marks;
  };

  void mark(Block* block);
  bool mark(Block* block, const StreamId& stream);  // false: not now
  void finish_line(Line& line, bool wait, Done done);
  static bool is_done(const Block* block) { return block->events == 0 && block->other_streams.empty(); }

  StreamEvents* events_;
  std::list<Line> lines_;         // none is empty
  std::vector<Block*> unmarked_;  // with streams that gave no event yet
};

}  // namespace tt
