// The generated table behind op.h. For op.cc only.
#pragma once

#include "absl/types/span.h"
#include "engine/schema/op.h"

namespace tt {

absl::Span<const Op> op_table();  // by id

}  // namespace tt
