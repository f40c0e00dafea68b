#include "server/serving/sequence_ports.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "engine/schema/error.h"
#include "server/serving/datatype.h"
#include "server/serving/request_inputs.h"

namespace tt::server {
namespace {

using Batching = inference::ModelSequenceBatching;

template <typename... Parts>
void require(bool ok, const Parts&... parts) {
  check(ErrorKind::kValue, ok, "[model] sequence_batching: ", parts...);
}

size_t port_named(const std::vector<ModelPort>& ports, const std::string& name, const char* what) {
  const auto found = std::find_if(ports.begin(), ports.end(), [&](const ModelPort& port) { return port.name == name; });
  require(found != ports.end(), "expected the name of an ", what, " of the model, got '",
          name.substr(0, ModelFile::kMaxName), "'");
  return static_cast<size_t>(found - ports.begin());
}

template <typename T>
std::string bytes_of(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

SequencePorts::State state_of(const ModelEntry& entry, const Batching::State& wire, bool is_batched) {
  SequencePorts::State state;
  state.input = port_named(entry.inputs, wire.input_name(), "input");
  state.output = port_named(entry.outputs, wire.output_name(), "output");
  const ModelPort& input = entry.inputs[state.input];
  const ModelPort& output = entry.outputs[state.output];
  const auto matches = [&](inference::DataType type) {
    return type == inference::TYPE_INVALID || type == config_type(input.dtype);
  };
  require(input.dtype == output.dtype && matches(wire.data_type()), "expected one data type of the state '", input.name,
          "', got ", input.dtype, " as input, ", output.dtype, " as output and ", DataType_Name(wire.data_type()));
  require(!wire.use_growable_memory() && wire.initial_state_size() <= 1, "expected no use_growable_memory and at most ",
          "one initial_state of '", input.name, "'");
  auto dims = wire.dims();
  for (const Batching::InitialState& initial : wire.initial_state()) {
    require(initial.data_file().empty() && matches(initial.data_type()), "expected zero_data of ", input.dtype,
            " as initial_state of '", input.name, "'");
    dims = initial.dims();
  }
  const size_t first = is_batched ? 1 : 0;
  require(input.dims.size() >= first && (dims.empty() || static_cast<size_t>(dims.size()) + first == input.dims.size()),
          "expected dims of the state '", input.name, "' as the model has them, ", sizes_text(input), ", got ",
          dims.size());
  for (size_t i = first; i < input.dims.size(); ++i) {
    const int64_t own = input.dims[i].size;
    const int64_t size = dims.empty() ? own : dims.Get(static_cast<int>(i - first));
    require(size >= 0 && (own == kDynamic || own == size), "expected dims of the state '", input.name,
            "' as the model has them, ", sizes_text(input), ", and an initial_state with those at the beginning if ",
            "they change, got ", size, " as dimension ", i);
    state.sizes.push_back(size);
  }
  return state;
}

SequencePorts::Control control_of(const ModelEntry& entry, const Batching::ControlInput& wire) {
  SequencePorts::Control control;
  control.input = port_named(entry.inputs, wire.name(), "input");
  const ModelPort& input = entry.inputs[control.input];
  require(wire.control_size() == 1, "expected one control of the input '", input.name, "', got ", wire.control_size());
  const Batching::Control& values = wire.control(0);
  control.kind = values.kind();
  require(std::all_of(input.dims.begin(), input.dims.end(),
                      [](const ModelPort::Dim& dim) { return dim.size == 1 || dim.size == kDynamic; }),
          "expected a control of one element per row, got the input '", input.name, "' of ", sizes_text(input));
  if (control.kind == Batching::Control::CONTROL_SEQUENCE_CORRID) {
    const bool is_number = input.dtype == DType::kInt32 || input.dtype == DType::kUInt32 ||
                           input.dtype == DType::kInt64 || input.dtype == DType::kUInt64;
    require(
        is_number && (values.data_type() == inference::TYPE_INVALID || values.data_type() == config_type(input.dtype)),
        "expected CONTROL_SEQUENCE_CORRID of an input of 32 or 64-bit integers, got '", input.name, "' of ",
        input.dtype, " and ", DataType_Name(values.data_type()));
    return control;
  }
  const auto set = [&](DType dtype, const auto& pair) {
    if (pair.empty()) return;
    require(pair.size() == 2 && input.dtype == dtype && control.yes.empty(), "expected the two values of the control '",
            input.name, "' of ", input.dtype, " in the field of its data type, got ", pair.size(), " of ", dtype);
    control.no = bytes_of(pair.Get(0));
    control.yes = bytes_of(pair.Get(1));
  };
  set(DType::kInt32, values.int32_false_true());
  set(DType::kFloat32, values.fp32_false_true());
  set(DType::kBool, values.bool_false_true());
  require(!control.yes.empty(), "expected int32_false_true, fp32_false_true or bool_false_true of the control '",
          input.name, "'");
  return control;
}

template <typename T>
absl::StatusOr<std::string> number_of(const InferRequest& request, const char* dtype) {
  T number{};
  if (!absl::SimpleAtoi(request.sequence, &number)) {
    return invalid_request("expected a sequence_id of ", dtype, ", which the model reads, got '",
                           request.sequence.substr(0, 100), "'");
  }
  return bytes_of(number);
}

}  // namespace

const SequencePorts::State* SequencePorts::state_of(size_t input) const {
  for (const State& state : states) {
    if (state.input == input) return &state;
  }
  return nullptr;
}

const SequencePorts::Control* SequencePorts::control_of(size_t input) const {
  for (const Control& control : controls) {
    if (control.input == input) return &control;
  }
  return nullptr;
}

bool SequencePorts::has_output(size_t output) const {
  return std::none_of(states.begin(), states.end(),
                      [&](const State& state) { return state.output == output && !state.is_answered; });
}

SequencePorts sequence_ports(const ModelEntry& entry, const inference::ModelConfig& config) {
  SequencePorts ports;
  absl::flat_hash_set<size_t> inputs, outputs;
  for (const Batching::State& wire : config.sequence_batching().state()) {
    ports.states.push_back(state_of(entry, wire, config.max_batch_size() != 0));
    SequencePorts::State& state = ports.states.back();
    require(inputs.insert(state.input).second && outputs.insert(state.output).second,
            "expected distinct inputs and outputs of states, got '", wire.input_name(), "' and '", wire.output_name(),
            "' twice");
    state.is_answered = std::any_of(config.output().begin(), config.output().end(),
                                    [&](const auto& output) { return output.name() == wire.output_name(); });
  }
  for (const Batching::ControlInput& wire : config.sequence_batching().control_input()) {
    ports.controls.push_back(control_of(entry, wire));
    require(inputs.insert(ports.controls.back().input).second, "expected distinct inputs, got '", wire.name(),
            "' twice");
  }
  require(ports.empty() || inputs.size() < entry.inputs.size(), "expected an input that requests have, got none");
  for (const auto& input : config.input()) {
    for (const size_t own : inputs) {
      require(entry.inputs[own].name != input.name(), "expected inputs of requests in 'input', got '", input.name(),
              "', which the server sets");
    }
  }
  return ports;
}

absl::StatusOr<std::string> control_bytes(const SequencePorts::Control& control, DType dtype,
                                          const InferRequest& request) {
  using Control = Batching::Control;
  switch (control.kind) {
    case Control::CONTROL_SEQUENCE_START: return request.sequence_start ? control.yes : control.no;
    case Control::CONTROL_SEQUENCE_END: return request.sequence_end ? control.yes : control.no;
    case Control::CONTROL_SEQUENCE_CORRID: break;
    default: return control.yes;  // the request is ready
  }
  switch (dtype) {
    case DType::kInt32: return number_of<int32_t>(request, "INT32");
    case DType::kUInt32: return number_of<uint32_t>(request, "UINT32");
    case DType::kUInt64: return number_of<uint64_t>(request, "UINT64");
    default: return number_of<int64_t>(request, "INT64");
  }
}

}  // namespace tt::server
