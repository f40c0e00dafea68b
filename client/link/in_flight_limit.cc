#include "client/link/in_flight_limit.h"

#include <algorithm>

namespace tt::client {

void InFlightLimit::connected(Clock::duration round_trip) {
  sent_.clear();
  round_trip_ = round_trip;
  interval_ = {};
  last_acknowledgement_ = {};
  update();
}

void InFlightLimit::sent(uint64_t sequence, Clock::time_point now) { sent_.push_back({sequence, now}); }

void InFlightLimit::acknowledged(uint64_t sequence, Clock::time_point now) {
  int count = 0;
  Clock::time_point first;
  for (; !sent_.empty() && sent_.front().sequence <= sequence; sent_.pop_front(), ++count) {
    if (count == 0) first = sent_.front().at;
    round_trip_ = std::min(round_trip_, now - sent_.front().at);
  }
  if (count == 0) return;
  // Excludes the time before the frame was sent, when the client had nothing to send.
  const Clock::duration sample = (now - std::max(last_acknowledgement_, first)) / count;
  interval_ = interval_ == Clock::duration() ? sample : interval_ + (sample - interval_) / 8;
  last_acknowledgement_ = now;
  update();
}

void InFlightLimit::update() {
  const Clock::duration spacing = std::max<Clock::duration>(interval_ / kGain, kMinSpacing);
  frames_ = interval_ == Clock::duration() ? kBase : std::min<uint64_t>(kMax, kBase + round_trip_ / spacing);
}

}  // namespace tt::client
