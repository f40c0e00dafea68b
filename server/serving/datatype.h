// The Open Inference Protocol's names of element types. Pure functions.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "engine/schema/dtype.h"
#include "inference/grpc_service.pb.h"

namespace tt::server {

// "FP32"; empty for a dtype that the protocol does not have (complex numbers, 8-bit floating-point numbers).
absl::string_view datatype_name(DType dtype);
std::optional<DType> parse_datatype(absl::string_view name);
// TYPE_INVALID for a dtype that the protocol does not have.
inference::DataType config_type(DType dtype);

}  // namespace tt::server
