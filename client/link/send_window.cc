#include "client/link/send_window.h"

#include <algorithm>
#include <utility>

namespace tt::client {

SendWindow::SendWindow() : building_(std::make_unique<OutgoingFrame>()) {}

void SendWindow::set_limits(const v1::Limits& limits) {
  // The byte count is an estimate, so the maximum is well below the size that the engine refuses.
  if (const uint64_t bytes = limits.max_frame_bytes()) {
    max_bytes_ = std::min<size_t>(max_bytes_, bytes / 2);
    max_instruction_bytes_ = bytes - std::min<size_t>(bytes / 2, kReservedBytes);
  }
  max_in_flight_ = limits.max_frames_in_flight();
}

v1::Instruction* SendWindow::add_instruction() {
  v1::Instruction* instruction = building_->message().add_instructions();
  if (!releases_.empty()) {
    instruction->mutable_release()->Add(releases_.begin(), releases_.end());
    count_releases();
  }
  return instruction;
}

void SendWindow::count_releases() {
  building_->count(size_of_releases());
  releases_.clear();
}

void SendWindow::append_releases() {
  if (is_full(size_of_releases())) end_frame();
  building_->message().mutable_release()->Add(releases_.begin(), releases_.end());
  count_releases();
}

void SendWindow::set_trace_context(std::string traceparent) {
  if (traceparent == trace_context_) return;
  if (!building_->empty()) seal();
  trace_context_ = std::move(traceparent);
}

void SendWindow::seal() {
  building_->message().mutable_release()->Add(releases_.begin(), releases_.end());
  count_releases();
  end_frame();
}

void SendWindow::end_frame() {
  v1::Frame& frame = building_->message();
  frame.set_sequence(++sealed_);
  frame.set_received(acknowledged_);
  if (!trace_context_.empty()) [[unlikely]]
    frame.set_traceparent(trace_context_);
  in_flight_.push_back(std::move(building_));
  if (spare_.empty()) {
    building_ = std::make_unique<OutgoingFrame>();
  } else {
    building_ = std::move(spare_.back());
    spare_.pop_back();
  }
}

bool SendWindow::may_send() const {
  if (!has_unsent()) return false;
  const uint64_t in_flight = sent_ - acknowledged_;
  if (max_in_flight_ != 0 && in_flight >= max_in_flight_) return false;
  if (in_flight < InFlightLimit::kBase || sent_ < flush_through_) return true;
  return in_flight < max_unacknowledged_ && unacknowledged_bytes_ < kMaxInFlightBytes;
}

OutgoingFrame& SendWindow::begin_send(InFlightLimit::Clock::time_point now) {
  if (sent_ == sealed_) seal();
  OutgoingFrame& frame = frame_at(sent_ + 1);
  sending_ = ++sent_;
  last_sent_ = now;
  unacknowledged_bytes_ += frame.bytes();
  return frame;
}

void SendWindow::end_send(bool went_out) {
  if (!went_out && sending_ > acknowledged_) {
    sent_ = sending_ - 1;
    unacknowledged_bytes_ -= frame_at(sending_).bytes();
  }
  sending_ = 0;
}

uint64_t SendWindow::flush() {
  if (has_releases()) append_releases();
  const uint64_t last = last_issued();
  flush_through(last);
  return last;
}

void SendWindow::acknowledge(uint64_t executed) {
  const uint64_t last = std::clamp(executed, acknowledged_, sent_);
  while (acknowledged_ < last) {
    const OutgoingFrame& frame = frame_at(++acknowledged_);
    unacknowledged_bytes_ -= frame.bytes();
    kept_bytes_ += frame.size().memory;
  }
}

void SendWindow::rewind() {
  sent_ = acknowledged_;
  unacknowledged_bytes_ = 0;
}

void SendWindow::rewind_to(uint64_t executed) {
  while (acknowledged_ > executed) kept_bytes_ -= frame_at(acknowledged_--).size().memory;
  rewind();
}

void SendWindow::visit_acknowledged(uint64_t executed, absl::FunctionRef<void(const v1::Frame&)> visit) const {
  for (const std::unique_ptr<OutgoingFrame>& frame : in_flight_) {
    if (frame->sequence() > executed && frame->sequence() <= acknowledged_) visit(frame->message());
  }
}

std::unique_ptr<OutgoingFrame> SendWindow::take_acknowledged() {
  if (in_flight_.empty() || in_flight_.front()->sequence() > acknowledged_ ||
      in_flight_.front()->sequence() == sending_) {
    return nullptr;
  }
  if (keeps_ && in_flight_.front()->sequence() > persisted_ && kept_bytes_ <= kMaxKeptBytes) return nullptr;
  std::unique_ptr<OutgoingFrame> frame = std::move(in_flight_.front());
  kept_bytes_ -= frame->size().memory;
  in_flight_.pop_front();
  return frame;
}

void SendWindow::recycle(std::unique_ptr<OutgoingFrame> cleared) {
  constexpr size_t kSpareFrames = 8;  // their memory is not released
  if (spare_.size() < kSpareFrames) spare_.push_back(std::move(cleared));
}

}  // namespace tt::client
