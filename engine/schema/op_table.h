// op_table(): the generated operator table. Used only by op.cc.
#pragma once

#include "absl/types/span.h"
#include "engine/schema/op.h"

namespace tt {

absl::Span<const Op> op_table();  // sorted by id

}  // namespace tt
