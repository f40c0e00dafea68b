// PortRange: the TCP ports on which workers listen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tt::server {

struct PortRange {
  int first = 0, last = 0;  // 0: the system chooses

  // Parses "7100-7199" or "7100"; empty: the system chooses.
  static absl::StatusOr<PortRange> parse(absl::string_view text);
};

// Returns a port of the range on which this process could listen at every host now; another process may take it before
// it is used. RESOURCE_EXHAUSTED if there is none.
absl::StatusOr<uint32_t> free_port(const PortRange& range, const std::vector<std::string>& hosts);

}  // namespace tt::server
