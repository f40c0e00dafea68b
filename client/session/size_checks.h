// client::SizeChecks: whether code that was made for some sizes is right for others.
//
// A ProgramTrace makes it of the calls that a function has made. The rules of these calls are run again for other sizes
// of the inputs, and what the function has decided by sizes is compared. The answers are kept by the sizes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "client/session/traced_sizes.h"
#include "engine/schema/meta.h"
#include "engine/schema/program.h"

namespace tt::client {

// Used by one thread at a time. Keeps no tensor.
class SizeChecks {
 public:
  // The names 1, 2, ... of `program` are the inputs, then the captured tensors.
  SizeChecks(tt::Program program, std::vector<TensorMeta> inputs, std::vector<TensorMeta> captured,
             std::vector<SizeRequirement> requirements, std::vector<std::pair<Slot, size_t>> ranks);

  size_t inputs() const { return inputs_.size(); }
  // The metadata of an input when it was traced.
  const TensorMeta& input(size_t i) const { return inputs_[i]; }
  // Whether the calls accept inputs with this metadata, and all decisions are the same. `inputs` must be as many as
  // inputs() and differ from those of the trace in sizes, strides and offsets alone. Never throws Error.
  bool hold(absl::Span<const TensorMeta* const> inputs);
  // Why the latest inputs that were compared were refused, for logs.
  const std::string& failure() const { return failure_; }

 private:
  bool evaluate(absl::Span<const TensorMeta* const> inputs);

  const tt::Program program_;
  const std::vector<TensorMeta> inputs_, captured_;
  const std::vector<SizeRequirement> requirements_;   // by instruction
  const std::vector<std::pair<Slot, size_t>> ranks_;  // the number of dimensions of each value
  absl::flat_hash_map<std::vector<int64_t>, bool> known_;
  std::string failure_;
};

}  // namespace tt::client
