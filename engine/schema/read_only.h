// Read-only tensors, whose bytes were published: which calls are refused, and why. Client and engine use the same
// rules.
#pragma once

#include <string_view>

#include "engine/schema/op.h"

namespace tt {

inline constexpr std::string_view kReadOnly =
    "the tensor of a shared file or a published tensor is read-only and is being used in an in-place operation: "
    "clone() "
    "it for a copy that may be written";

// Whether a call writes to the arguments that its operator declares as written. Norms of batches do so in training
// only. Requires that check_args has passed.
inline bool writes_arguments(const Op& op, Args args) {
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (op.params[i].name == "training") return (i < args.size() ? args[i] : op.params[i].default_value).to_bool();
  }
  return true;
}

}  // namespace tt
