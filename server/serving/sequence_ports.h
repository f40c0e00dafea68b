// SequencePorts: inputs and outputs of an entry that requests of sequences do not have, as the configuration names them
// (sequence_batching): outputs that are an input of the sequence's next request, and inputs that the server sets.
//
// For models without states of their own, such as converted ones. Immutable.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/schema/meta.h"
#include "inference/grpc_service.pb.h"
#include "server/serving/infer.h"
#include "server/serving/model_file.h"

namespace tt::server {

struct SequencePorts {
  struct State {
    size_t input = 0, output = 0;  // indices of the entry's ports
    Sizes sizes;                   // at the beginning, where it is zero; without a batch's rows
    bool is_answered = false;      // the configuration lists it as an output, too
  };
  struct Control {
    size_t input = 0;
    inference::ModelSequenceBatching::Control::Kind kind{};
    std::string no, yes;  // bytes of the element
  };
  std::vector<State> states;
  std::vector<Control> controls;

  bool empty() const { return states.empty() && controls.empty(); }
  // Null if the input is none.
  const State* state_of(size_t input) const;
  const Control* control_of(size_t input) const;
  // Whether requests have the input, and responses the output.
  bool has_input(size_t input) const { return state_of(input) == nullptr && control_of(input) == nullptr; }
  bool has_output(size_t output) const;
};

// Throws Error (ValueError) unless the entry has the ports, of the data types and sizes that the configuration says.
SequencePorts sequence_ports(const ModelEntry& entry, const inference::ModelConfig& config);

// The bytes of a control's element for a request. INVALID_ARGUMENT if its sequence_id is no number of the dtype.
absl::StatusOr<std::string> control_bytes(const SequencePorts::Control& control, DType dtype,
                                          const InferRequest& request);

}  // namespace tt::server
