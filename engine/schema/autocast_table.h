// autocast_table(): the generated autocast policies of the operators. Used only by autocast.cc.
#pragma once

#include "absl/types/span.h"
#include "engine/schema/autocast.h"

namespace tt {

struct AutocastPolicies {
  AutocastPolicy cpu = AutocastPolicy::kNone, cuda = AutocastPolicy::kNone;
};

// Indexed by operator id. Operators with ids beyond the last element have no policy.
absl::Span<const AutocastPolicies> autocast_table();

}  // namespace tt
