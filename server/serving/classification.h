// classification: the largest values of an output as strings "value:index" or "value:index:label", in the encoding of
// BYTES (byte_strings.h), for the parameter "classification" of requested outputs.
//
// Each row of a batch is a list of classes; of a model without batches, the whole output is one. Values are written as
// Triton does, with six digits after the point. Equal values are in the order of their indices, NaN is the smallest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "engine/schema/dtype.h"
#include "server/serving/infer.h"

namespace tt::server {

inline constexpr uint64_t kMaxLabelsBytes = uint64_t{16} << 20;  // of a file of labels
inline constexpr size_t kMaxLabelBytes = 1024;

struct ClassLabels {
  std::vector<std::string> of_index;
  uint64_t longest = 0;  // bytes of one
};
// The lines of a file of labels in a model's folder. Throws Error unless `name` is the name of a regular file there,
// and its lines are UTF-8 of at most kMaxLabelBytes.
ClassLabels read_labels(const std::filesystem::path& folder, const std::string& name);

// Whether values of the dtype can be classified.
bool has_classes(DType dtype);

// The sizes and the largest number of bytes of a classified output.
struct ClassSizes {
  Sizes sizes;
  uint64_t bytes = 0;
};
ClassSizes class_sizes(DType dtype, SizesView sizes, bool is_batched, uint64_t classes, const ClassLabels& labels);

// Replaces the values of an output by their `classes` largest ones per row, or by all if there are fewer. Requires
// has_classes(). `check` is called with the bytes of classes so far, every 65,536 values or 1,024 classes and at the
// end: its error ends the work, and is returned.
absl::Status classify(uint64_t classes, bool is_batched, const ClassLabels& labels,
                      absl::FunctionRef<absl::Status(uint64_t bytes)> check, InferOutput* output);

}  // namespace tt::server
