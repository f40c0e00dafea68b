#include "server/serving/generation/generation_model.h"

#include <cstring>
#include <string>
#include <utility>

#include "engine/schema/error.h"
#include "server/serving/generation/model_decoder.h"

namespace tt::server::generation {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;

int64_t integer(const std::string& name, const InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kInt64Param: return parameter.int64_param();
    case InferParameter::kUint64Param: return static_cast<int64_t>(parameter.uint64_param());
    default: fail(ErrorKind::kValue, "[generation] expected an integer as the parameter ", name);
  }
}

double number(const std::string& name, const InferParameter& parameter) {
  if (parameter.parameter_choice_case() == InferParameter::kDoubleParam) return parameter.double_param();
  // Clients without doubles send a text.
  if (parameter.parameter_choice_case() != InferParameter::kStringParam) {
    return static_cast<double>(integer(name, parameter));
  }
  const std::string& text = parameter.string_param();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  check(ErrorKind::kValue, !text.empty() && end == text.c_str() + text.size(),
        "[generation] expected a number as the parameter ", name);
  return value;
}

// The values of an input of a list of integers.
std::vector<int64_t> integers(const ModelInferRequest& wire, int input, int64_t largest) {
  const auto& port = wire.inputs(input);
  check(ErrorKind::kValue, port.datatype() == "INT64", "[generation] expected INT64 as the input ", port.name(),
        ", got ", port.datatype());
  const bool is_row = port.shape_size() == 2 && port.shape(0) == 1;
  check(ErrorKind::kValue, port.shape_size() == 1 || is_row, "[generation] expected the shape [n] or [1, n] of ",
        port.name());
  const int64_t count = port.shape(port.shape_size() - 1);
  check(ErrorKind::kValue, count >= 0 && count <= largest, "[generation] expected at most ", largest, " values of ",
        port.name(), ", got ", count);
  std::vector<int64_t> values(static_cast<size_t>(count));
  if (wire.raw_input_contents_size() != 0) {
    check(ErrorKind::kValue, wire.raw_input_contents_size() == wire.inputs_size(),
          "[generation] expected raw contents of each input");
    const std::string& bytes = wire.raw_input_contents(input);
    check(ErrorKind::kValue, bytes.size() == values.size() * sizeof(int64_t), "[generation] expected ",
          values.size() * sizeof(int64_t), " bytes of ", port.name(), ", got ", bytes.size());
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  const auto& contents = port.contents().int64_contents();
  check(ErrorKind::kValue, contents.size() == count, "[generation] expected ", count, " int64_contents of ",
        port.name(), ", got ", contents.size());
  values.assign(contents.begin(), contents.end());
  return values;
}

void set_parameter(const std::string& name, const InferParameter& parameter, Request* request) {
  SamplingParameters& sampling = request->sampling;
  if (name == "max_tokens") {
    request->max_tokens = integer(name, parameter);
  } else if (name == "temperature") {
    sampling.temperature = number(name, parameter);
  } else if (name == "top_k") {
    sampling.top_k = integer(name, parameter);
  } else if (name == "top_p") {
    sampling.top_p = number(name, parameter);
  } else if (name == "seed") {
    sampling.seed = static_cast<uint64_t>(integer(name, parameter));
  } else if (name == "timeout") {
    const int64_t microseconds = integer(name, parameter);
    check(ErrorKind::kValue, microseconds > 0 && microseconds <= int64_t{1} << 50,
          "[generation] expected a positive timeout in microseconds, got ", microseconds);
    request->deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  } else {
    // Of the protocol, without a meaning for generation.
    check(ErrorKind::kValue, name == "triton_enable_empty_final_response",
          "[generation] expected the parameters max_tokens, temperature, top_k, top_p, seed and timeout, got ", name);
  }
}

inference::ModelStreamInferResponse response_of(const ModelInferRequest& names, const Event& event) {
  inference::ModelStreamInferResponse response;
  inference::ModelInferResponse& infer = *response.mutable_infer_response();
  infer.set_model_name(names.model_name());
  infer.set_model_version(names.model_version());
  infer.set_id(names.id());
  auto& parameters = *infer.mutable_parameters();
  const bool is_final = event.finish != Finish::kNone;
  parameters["triton_final_response"].set_bool_param(is_final);
  if (event.finish == Finish::kError) response.set_error_message(std::string(event.status.message()));
  if (is_final) parameters["finish_reason"].set_string_param(name(event.finish));
  if (event.token < 0) return response;
  parameters["index"].set_int64_param(event.index);
  auto* output = infer.add_outputs();
  output->set_name("token");
  output->set_datatype("INT64");
  output->add_shape(1);
  infer.add_raw_output_contents(reinterpret_cast<const char*>(&event.token), sizeof event.token);
  return response;
}

}  // namespace

Request parse_request(const ModelInferRequest& wire, const DecoderLimits& limits) {
  Request request;
  request.max_tokens = limits.max_length;
  for (int i = 0; i < wire.inputs_size(); ++i) {
    const std::string& name = wire.inputs(i).name();
    check(ErrorKind::kValue, wire.inputs(i).parameters().empty(),
          "[generation] expected inputs in the request, not in shared memory");
    if (name == "tokens") {
      check(ErrorKind::kValue, request.prompt.empty(), "[generation] expected the input tokens once");
      request.prompt = integers(wire, i, limits.max_length);
    } else {
      check(ErrorKind::kValue, name == "stop_tokens", "[generation] expected the inputs tokens and stop_tokens, got ",
            name);
      request.stop_tokens = integers(wire, i, Scheduler::kMaxStopTokens);
    }
  }
  for (const auto& output : wire.outputs()) {
    check(ErrorKind::kValue, output.name() == "token" && output.parameters().empty(),
          "[generation] expected the output token, got ", output.name());
  }
  for (const auto& [name, parameter] : wire.parameters()) set_parameter(name, parameter, &request);
  return request;
}

GenerationModel::GenerationModel(std::shared_ptr<const ServedModel> model, size_t max_waiting)
    : scheduler_(std::make_unique<ModelDecoder>(std::move(model)), max_waiting) {}

absl::Status GenerationModel::submit(const ModelInferRequest& wire, Write write, uint64_t* number) {
  Request request;
  try {
    request = parse_request(wire, scheduler_.limits());
  } catch (const Error& error) {
    return absl::InvalidArgumentError(error.message());
  }
  ModelInferRequest names;  // without the contents
  names.set_model_name(wire.model_name());
  names.set_model_version(wire.model_version());
  names.set_id(wire.id());
  auto sink = [names = std::move(names), write = std::move(write)](const Event& event) {
    return write(response_of(names, event));
  };
  return scheduler_.submit(std::move(request), std::move(sink), number);
}

}  // namespace tt::server::generation
