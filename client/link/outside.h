// Operators whose effect depends on more than the session.
#pragma once

#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace tt::client {

// Whether an operator reads or changes files, other sessions or other engines: repeated later, or as part of a Program,
// it may have another result.
inline bool reaches_outside(std::string_view op) {
  const absl::string_view name(op.data(), op.size());
  if (absl::StartsWith(name, "group_norm")) return false;  // of channels, not of engines
  for (absl::string_view prefix : {"checkpoint_", "pull", "share_", "group_", "reducer_", "store_"}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return absl::StrContains(name, "publi") || name == "opened_storage";
}

}  // namespace tt::client
