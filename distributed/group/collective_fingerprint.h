// CollectiveFingerprint: describes a rank's next call. All ranks exchange fingerprints before each collective, so that
// mismatched calls are reported with the source lines of both sides instead of corrupting data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/types/span.h"
#include "distributed/group/collective.h"
#include "engine/schema/error.h"

namespace tt::distributed {

struct CollectiveFingerprint {
  static constexpr size_t kMaxInlineBytes = 128;
  // Where the rank's tensors are: `kOtherGPU` is a GPU that the rank's DeviceBackend is not connected with.
  static constexpr uint8_t kHostMemory = 0, kGPU = 1, kOtherGPU = 2;

  uint64_t sequence = 0;  // number of the collective in its group
  uint64_t count = 0;
  int32_t root = 0;
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kBool;
  uint8_t failed = 0;       // the rank's input is an error, whose message is in `text`
  uint16_t site_bytes = 0;  // the first bytes of `text`: the line of the call
  uint16_t message_bytes = 0;
  uint8_t memory = 0;                // kHostMemory ...
  char input[kMaxInlineBytes] = {};  // the collective's whole input, if it is small
  char text[355] = {};

  // Truncates texts that do not fit.
  void set_text(std::string_view site, std::string_view message);
  std::string_view site() const;
  std::string_view message() const;
};
static_assert(sizeof(CollectiveFingerprint) == Backend::kMaxExchange &&
              std::is_trivially_copyable_v<CollectiveFingerprint>);

// Returns the error of a collective that some rank entered with an error, or for which ranks describe different calls;
// nothing if all agree. The same on every rank, except for its wording. The bytes are other ranks' and not trusted.
std::optional<Error> disagreement(absl::Span<const CollectiveFingerprint> all);

}  // namespace tt::distributed
