// Checks of the inputs of a ModelInfer request against the inputs that a model describes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/serving/infer.h"
#include "server/serving/model_file.h"

namespace tt::server {

template <typename... Parts>
absl::Status invalid_request(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("[ModelInfer] ", parts...));
}

// The sizes of a port for error messages: "[-1, 16]".
std::string sizes_text(const ModelPort& port);

// The sizes of dynamic dimensions by name.
using NamedSizes = absl::flat_hash_map<std::string, int64_t>;

// Returns INVALID_ARGUMENT unless the input has the port's dtype, sizes, and as many bytes as they require. Adds its
// named sizes to `named`, where those of all inputs must be equal.
absl::Status check_input(const ModelPort& port, const InferInput& input, NamedSizes* named);

// The input of a port that is BYTES for clients as the model sees it: with the strings' width as its last size.
// Returns INVALID_ARGUMENT unless it is a string per element, of at most the width that the port permits.
absl::StatusOr<InferInput> with_width(const ModelPort& port, const InferInput& input);

}  // namespace tt::server
