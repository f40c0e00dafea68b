// CollectiveCall: a collective, built from an operator's arguments.
//
// Used on the session's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "distributed/group_service.h"

namespace tt::distributed {

struct CollectiveCall {
  CollectiveKind kind;
  Tensors outputs;  // written
  Tensors inputs;   // read; empty for a collective in place
  std::shared_ptr<ProcessGroup> group;
  int64_t root = 0;
  std::optional<std::pair<std::string_view, double>> reduction;  // name and factor
};

// Starts the collective; `site` is the line that issued it. The tensors' memory is in use until it completes. Throws
// Error if the arguments are invalid. If the input holds an error that a GPU has reported, the other ranks receive it
// too.
PendingCall start(const CollectiveCall& call, const std::string& site);

// Throws Error (ValueError) unless the group has the rank.
void check_rank(const ProcessGroup& group, int64_t rank);

}  // namespace tt::distributed
