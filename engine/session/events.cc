#include "engine/session/events.h"

#include "engine/schema/error.h"

namespace tt {

void Events::record(int64_t number, Stream& stream) {
  check(marks_.contains(number) || marks_.size() < kMaxEvents, "a session has at most ", kMaxEvents, " events");
  marks_[number] = {stream.device(), stream.record_timed()};
}

const Events::Mark& Events::find(int64_t number) const {
  auto at = marks_.find(number);
  check(at != marks_.end(), "Both events must be recorded before calculating elapsed time.");
  return at->second;
}

double Events::elapsed_ms(int64_t number, int64_t later) const {
  const Mark& from = find(number);
  const Mark& to = find(later);
  check(from.device == to.device, "both events must be on the same device, got ", from.device, " and ", to.device);
  from.event->synchronize();
  to.event->synchronize();
  return to.event->elapsed_ms(*from.event);
}

bool Events::passed(int64_t number) const {
  auto at = marks_.find(number);
  return at == marks_.end() || at->second.event->done();
}

}  // namespace tt
