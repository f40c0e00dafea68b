// Fuzz target: the limits of HTTP/2 frames give the same result however the bytes of a connection are divided, and no
// connection exceeds a limit unnoticed. The first byte selects the division; the rest follows the preface.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/rpc/http2_meter.h"
#include "tests/fuzz/require.h"

namespace {

using tt::server::Http2Meter;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// The bytes of the longest header block whose frames have arrived, by another reading of the frames.
uint64_t longest_block(const uint8_t* data, size_t size) {
  uint64_t longest = 0, block = 0;
  for (size_t at = 0; size - at >= 9;) {
    const size_t payload = size_t{data[at]} << 16 | size_t{data[at + 1]} << 8 | data[at + 2];
    const uint8_t type = data[at + 3];
    if (type == 1) block = 0;
    if (type == 1 || type == 9) block += payload;
    longest = std::max(longest, block);
    if (size - at - 9 < payload) break;
    at += 9 + payload;
  }
  return longest;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = size_t{data[0]} + 1;
  const std::string bytes = kPreface + std::string(reinterpret_cast<const char*>(data + 1), size - 1);
  const Http2Meter::Clock::time_point now{std::chrono::hours(1)};
  Http2Meter whole, parts;
  const char* const expected = whole.receive(bytes, now);
  const char* exceeded = nullptr;
  for (size_t at = 0; at < bytes.size(); at += step) {
    const char* const result = parts.receive(absl::string_view(bytes).substr(at, step), now);
    tt::fuzz::require(exceeded == nullptr || result == exceeded, "a connection that exceeded a limit stays refused");
    exceeded = result;
  }
  tt::fuzz::require(exceeded == expected, "the division of the bytes makes no difference");
  tt::fuzz::require(whole.frames() == parts.frames() && whole.header_bytes() == parts.header_bytes(),
                    "the division makes no difference to the counts");
  if (longest_block(data + 1, size - 1) > Http2Meter::kBlockBytes) {
    tt::fuzz::require(exceeded != nullptr, "a long header block is refused");
  }
  return 0;
}
