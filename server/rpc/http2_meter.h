// Http2Meter: counts the frames of one HTTP/2 connection as its bytes arrive, and reports violations of the limits.
//
// gRPC 1.51 stores an unfinished header block without limit and parses it again at each of its frames, and answers or
// executes every frame that it receives (CVE-2023-33953, CVE-2023-44487). Only frame
// headers are examined. A stream of bytes that does not begin with the preface of an HTTP/2 client is not limited: it
// is another protocol, or the server's side of a connection. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tt::server {

class Http2Meter {
 public:
  using Clock = std::chrono::steady_clock;
  // Of a header block, which may use several frames. gRPC refuses calls with half of these bytes.
  static constexpr uint64_t kBlockBytes = 32 << 10, kBlockFrames = 8;
  // Frames that cost the engine work, as bursts and as rates per second. A client sends at most a few of them per call
  // or per megabyte.
  static constexpr double kResets = 2'000, kResetsPerSecond = 1'000;      // RST_STREAM
  static constexpr double kAnswered = 5'000, kAnsweredPerSecond = 5'000;  // SETTINGS and PING, without ACK
  // Frames without a call's data: WINDOW_UPDATE, acknowledgements, PRIORITY, unknown types, empty DATA frames.
  static constexpr double kOthers = 200'000, kOthersPerSecond = 50'000;

  // Counts the next bytes of the connection. Returns null, or the limit that is exceeded; then, too, at each later
  // call.
  const char* receive(absl::string_view bytes, Clock::time_point now);

  // Totals of an HTTP/2 connection.
  uint64_t frames() const { return frames_; }
  uint64_t header_bytes() const { return header_bytes_; }

 private:
  // A token bucket.
  struct Rate {
    double used = 0;
    Clock::time_point since{};
    bool exceeded(double burst, double per_second, Clock::time_point now);
  };
  enum class State : uint8_t { kPreface, kHeader, kPayload, kOther };

  const char* begin_frame(Clock::time_point now);

  State state_ = State::kPreface;
  uint8_t header_[9] = {};
  uint8_t received_ = 0;  // bytes of the preface, then of header_
  uint32_t payload_ = 0;  // remaining bytes of the frame
  uint64_t frames_ = 0, header_bytes_ = 0;
  uint64_t block_bytes_ = 0, block_frames_ = 0;
  Rate resets_, answered_, others_;
  const char* exceeded_ = nullptr;
};

}  // namespace tt::server
