#include "server/rpc/http2_meter.h"

#include <algorithm>

namespace tt::server {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Types and flags of frames (RFC 9113, 6).
constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kContinuation = 9;
constexpr uint8_t kAck = 1, kEndStream = 1;

}  // namespace

bool Http2Meter::Rate::exceeded(double burst, double per_second, Clock::time_point now) {
  if (since == Clock::time_point{}) since = now;
  used = std::max(0.0, used - std::chrono::duration<double>(now - since).count() * per_second) + 1;
  since = now;
  return used > burst;
}

const char* Http2Meter::begin_frame(Clock::time_point now) {
  const uint32_t size = uint32_t{header_[0]} << 16 | uint32_t{header_[1]} << 8 | header_[2];
  const uint8_t type = header_[3], flags = header_[4];
  received_ = 0;
  payload_ = size;
  state_ = size == 0 ? State::kHeader : State::kPayload;
  ++frames_;
  if (type == kHeaders || type == kContinuation) {
    if (type == kHeaders) block_bytes_ = block_frames_ = 0;
    block_bytes_ += size;
    header_bytes_ += size;
    if (block_bytes_ > kBlockBytes) return "bytes of a header block";
    if (++block_frames_ > kBlockFrames) return "frames of a header block";
    return nullptr;
  }
  if (type == kData && (size != 0 || (flags & kEndStream) != 0)) return nullptr;
  if (type == kReset) return resets_.exceeded(kResets, kResetsPerSecond, now) ? "rate of cancelled calls" : nullptr;
  if ((type == kSettings || type == kPing) && (flags & kAck) == 0) {
    return answered_.exceeded(kAnswered, kAnsweredPerSecond, now) ? "rate of SETTINGS and PING frames" : nullptr;
  }
  return others_.exceeded(kOthers, kOthersPerSecond, now) ? "rate of frames without data" : nullptr;
}

const char* Http2Meter::receive(absl::string_view bytes, Clock::time_point now) {
  if (exceeded_ != nullptr) return exceeded_;
  while (!bytes.empty() && state_ != State::kOther) {
    size_t used = 0;
    switch (state_) {
      case State::kPreface:
        used = std::min(bytes.size(), kPreface.size() - received_);
        if (bytes.substr(0, used) != kPreface.substr(received_, used)) {
          state_ = State::kOther;
          break;
        }
        received_ = static_cast<uint8_t>(received_ + used);
        if (received_ == kPreface.size()) {
          state_ = State::kHeader;
          received_ = 0;
        }
        break;
      case State::kHeader:
        used = std::min(bytes.size(), sizeof header_ - received_);
        std::copy_n(bytes.data(), used, reinterpret_cast<char*>(header_) + received_);
        received_ = static_cast<uint8_t>(received_ + used);
        if (received_ == sizeof header_ && (exceeded_ = begin_frame(now)) != nullptr) return exceeded_;
        break;
      case State::kPayload:
        used = std::min<size_t>(bytes.size(), payload_);
        payload_ -= static_cast<uint32_t>(used);
        if (payload_ == 0) state_ = State::kHeader;
        break;
      case State::kOther: break;
    }
    bytes.remove_prefix(used);
  }
  return nullptr;
}

}  // namespace tt::server
