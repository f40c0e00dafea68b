#include "server/serving/rest_infer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "server/serving/byte_strings.h"
#include "server/serving/datatype.h"
#include "server/serving/infer_messages.h"
#include "server/serving/rest_json.h"

namespace tt::server {
namespace {

using nlohmann::json;

void set_parameters(const json& object, google::protobuf::Map<std::string, inference::InferParameter>* wire) {
  const json* parameters = member(object, "parameters");
  if (parameters == nullptr) return;
  if (!parameters->is_object()) refuse("expected an object of parameters");
  for (const auto& [name, value] : parameters->items()) {
    inference::InferParameter& parameter = (*wire)[name];
    if (value.is_boolean()) {
      parameter.set_bool_param(value.get<bool>());
    } else if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) {
      parameter.set_uint64_param(value.get<uint64_t>());
    } else if (value.is_number_integer()) {
      parameter.set_int64_param(value.get<int64_t>());
    } else if (value.is_number()) {
      parameter.set_double_param(value.get<double>());
    } else if (value.is_string()) {
      parameter.set_string_param(value.get<std::string>());
    } else {
      refuse("expected a number, boolean or string for the parameter '", name.substr(0, 100), "'");
    }
  }
}

template <typename T>
void append_value(const json& value, std::string* bytes) {
  T converted{};
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) refuse("expected true or false in the data of a BOOL tensor");
    converted = value.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= uint64_t{std::numeric_limits<T>::max()}
                      : value.is_number_integer()
                          ? std::is_signed_v<T> && value.get<int64_t>() >= int64_t{std::numeric_limits<T>::lowest()}
                          : false;
    if (!fits) refuse("expected integers of the tensor's datatype in its data");
    converted = static_cast<T>(value.is_number_unsigned() ? value.get<uint64_t>()
                                                          : static_cast<uint64_t>(value.get<int64_t>()));
  } else {
    if (!value.is_number()) refuse("expected numbers in the data of a tensor");
    converted = static_cast<T>(value.get<double>());
  }
  bytes->append(reinterpret_cast<const char*>(&converted), sizeof converted);
}

// Appends the elements of a list, which may be nested as the tensor's dimensions are, in row-major order.
void append_values(DType dtype, const json& data, std::string* bytes) {
  if (data.is_array()) {
    for (const json& each : data) append_values(dtype, each, bytes);
    return;
  }
  switch (dtype) {
    case DType::kBool: return append_value<bool>(data, bytes);
    case DType::kInt8: return append_value<int8_t>(data, bytes);
    case DType::kInt16: return append_value<int16_t>(data, bytes);
    case DType::kInt32: return append_value<int32_t>(data, bytes);
    case DType::kInt64: return append_value<int64_t>(data, bytes);
    case DType::kUInt8: return append_value<uint8_t>(data, bytes);
    case DType::kUInt16: return append_value<uint16_t>(data, bytes);
    case DType::kUInt32: return append_value<uint32_t>(data, bytes);
    case DType::kUInt64: return append_value<uint64_t>(data, bytes);
    case DType::kFloat32: return append_value<float>(data, bytes);
    case DType::kFloat64: return append_value<double>(data, bytes);
    default: refuse("expected binary data for the datatype ", std::string(datatype_name(dtype)));
  }
}

void append_strings(const json& data, std::string* bytes) {
  if (data.is_array()) {
    for (const json& each : data) append_strings(each, bytes);
    return;
  }
  if (!data.is_string()) refuse("expected strings in the data of a BYTES tensor");
  append_string(data.get_ref<const std::string&>(), bytes);
}

struct ReadBody {
  inference::ModelInferRequest request;
  bool binary_output = false;  // of outputs that do not say it
  std::map<std::string, bool> binary_outputs;
};

void read_input(const json& wire, absl::string_view* binary, inference::ModelInferRequest* request) {
  if (!wire.is_object()) refuse("expected objects as inputs");
  auto* input = request->add_inputs();
  input->set_name(text_of(wire, "name", true));
  input->set_datatype(text_of(wire, "datatype", true));
  const json* shape = member(wire, "shape");
  if (shape == nullptr || !shape->is_array() || shape->size() > ModelFile::kMaxDims) {
    refuse("expected a shape of at most ", ModelFile::kMaxDims, " sizes for the input '", input->name(), "'");
  }
  for (const json& size : *shape) {
    if (!size.is_number_integer() || (size.is_number_unsigned() && size.get<uint64_t>() > INT64_MAX)) {
      refuse("expected integers as sizes of the input '", input->name(), "'");
    }
    input->add_shape(size.get<int64_t>());
  }
  set_parameters(wire, input->mutable_parameters());
  auto& parameters = *input->mutable_parameters();
  const auto found = parameters.find("binary_data_size");
  const json* data = member(wire, "data");
  if (found != parameters.end()) {
    const int64_t size = found->second.int64_param();
    if (size < 0 || static_cast<uint64_t>(size) > binary->size() || data != nullptr) {
      refuse("expected ", binary->size(), " bytes at most after the JSON for the input '", input->name(), "', got ",
             size);
    }
    request->add_raw_input_contents(binary->data(), static_cast<size_t>(size));
    binary->remove_prefix(static_cast<size_t>(size));
    parameters.erase(found);
    return;
  }
  if (parameters.contains("shared_memory_region")) return;
  if (data == nullptr || !data->is_array()) refuse("expected the data of the input '", input->name(), "'");
  if (input->datatype() == kBytesDatatype) return append_strings(*data, request->add_raw_input_contents());
  const std::optional<DType> dtype = parse_datatype(input->datatype());
  if (!dtype) refuse("expected a datatype of numbers, BOOL or BYTES for the input '", input->name(), "'");
  append_values(*dtype, *data, request->add_raw_input_contents());
}

ReadBody read_body(const RestRequest& wire) {
  ReadBody read;
  if (wire.json_bytes != SIZE_MAX && wire.json_bytes > wire.body.size()) {
    refuse("expected Inference-Header-Content-Length of at most ", wire.body.size(), ", got ", wire.json_bytes);
  }
  const json document = parse_json(wire.body.substr(0, wire.json_bytes));
  absl::string_view binary = wire.json_bytes == SIZE_MAX ? absl::string_view() : wire.body.substr(wire.json_bytes);
  if (!document.is_object()) refuse("expected an object");
  read.request.set_id(text_of(document, "id", false));
  set_parameters(document, read.request.mutable_parameters());
  auto& parameters = *read.request.mutable_parameters();
  if (const auto all = parameters.find("binary_data_output"); all != parameters.end()) {
    read.binary_output = all->second.bool_param();
    parameters.erase(all);
  }
  const json* inputs = member(document, "inputs");
  if (inputs == nullptr || !inputs->is_array() || inputs->size() > ModelFile::kMaxPorts) {
    refuse("expected a list of at most ", ModelFile::kMaxPorts, " inputs");
  }
  for (const json& input : *inputs) read_input(input, &binary, &read.request);
  if (!binary.empty()) refuse("expected no bytes after those of the inputs, got ", binary.size());
  const json* outputs = member(document, "outputs");
  if (outputs == nullptr) return read;
  if (!outputs->is_array() || outputs->size() > ModelFile::kMaxPorts) {
    refuse("expected a list of at most ", ModelFile::kMaxPorts, " outputs");
  }
  for (const json& each : *outputs) {
    if (!each.is_object()) refuse("expected objects as outputs");
    auto* output = read.request.add_outputs();
    output->set_name(text_of(each, "name", true));
    set_parameters(each, output->mutable_parameters());
    auto& own = *output->mutable_parameters();
    if (const auto found = own.find("binary_data"); found != own.end()) {
      read.binary_outputs[output->name()] = found->second.bool_param();
      own.erase(found);
    }
  }
  return read;
}

template <typename T>
json values_of(absl::string_view bytes) {
  json values = json::array();
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) refuse("expected binary_data for an output with NaN or infinity, which JSON lacks");
    }
    values.push_back(value);
  }
  return values;
}

json strings_of(absl::string_view encoded) {
  json values = json::array();
  while (!encoded.empty()) {
    const std::string text(take_string(&encoded));
    if (valid_utf8(text) != text) refuse("expected binary_data for an output with strings that are not UTF-8");
    values.push_back(text);
  }
  return values;
}

json values_of(DType dtype, absl::string_view bytes) {
  switch (dtype) {
    case DType::kBool: return values_of<bool>(bytes);
    case DType::kInt8: return values_of<int8_t>(bytes);
    case DType::kInt16: return values_of<int16_t>(bytes);
    case DType::kInt32: return values_of<int32_t>(bytes);
    case DType::kInt64: return values_of<int64_t>(bytes);
    case DType::kUInt8: return values_of<uint8_t>(bytes);
    case DType::kUInt16: return values_of<uint16_t>(bytes);
    case DType::kUInt32: return values_of<uint32_t>(bytes);
    case DType::kUInt64: return values_of<uint64_t>(bytes);
    case DType::kFloat32: return values_of<float>(bytes);
    case DType::kFloat64: return values_of<double>(bytes);
    default: refuse("expected binary_data for an output of the datatype ", std::string(datatype_name(dtype)));
  }
}

bool is_binary(const ReadBody& read, const std::string& output) {
  const auto own = read.binary_outputs.find(output);
  return own != read.binary_outputs.end() ? own->second : read.binary_output;
}

// Memory of an element as JSON, a value and its text, and of a byte of strings.
constexpr uint64_t kElement = 48, kByte = kElement / 4;

// Memory of the JSON and the binary data of outputs, and the most that those of unknown sizes take.
std::pair<uint64_t, uint64_t> answer_bytes(absl::Span<const InferOutput> outputs, const ReadBody& read) {
  uint64_t bytes = 0, more = 0;
  for (const InferOutput& output : outputs) {
    (output.is_bound ? more : bytes) += is_binary(read, output.name) ? output.size
                                        : output.is_strings          ? output.size * kByte
                                                                     : output.size / item_size(output.dtype) * kElement;
  }
  return {bytes, more};
}

// Of encoded classes, what is counted at most of an answer of unknown size.
uint64_t most_class_bytes(const ReadBody& read, uint64_t inflight_bytes) {
  const auto& outputs = read.request.outputs();
  const bool is_binary_only =
      std::all_of(outputs.begin(), outputs.end(), [&](const auto& output) { return is_binary(read, output.name()); });
  return inflight_bytes / 2 / (is_binary_only ? 1 : kByte);
}

json shared_parameters(const inference::ModelInferResponse::InferOutputTensor& output) {
  json parameters;
  for (const auto& [name, value] : output.parameters()) {
    if (value.has_string_param()) {
      parameters[name] = value.string_param();
    } else {
      parameters[name] = value.int64_param();
    }
  }
  return parameters;
}

RestResponse response_of(const inference::ModelInferResponse& reply, const ReadBody& read) {
  json document = {{"model_name", reply.model_name()}, {"model_version", reply.model_version()}};
  if (!reply.id().empty()) document["id"] = valid_utf8(reply.id());
  json outputs = json::array();
  std::string binary;
  int raw = 0;
  for (const auto& output : reply.outputs()) {
    json each = {{"name", output.name()}, {"datatype", output.datatype()}, {"shape", json::array()}};
    for (const int64_t size : output.shape()) each["shape"].push_back(size);
    if (output.parameters().contains("shared_memory_region")) {
      each["parameters"] = shared_parameters(output);
      outputs.push_back(std::move(each));
      continue;
    }
    const std::string& bytes = reply.raw_output_contents(raw++);
    if (is_binary(read, output.name())) {
      each["parameters"]["binary_data_size"] = bytes.size();
      binary += bytes;
    } else {
      const bool is_strings = output.datatype() == kBytesDatatype;
      each["data"] = is_strings ? strings_of(bytes) : values_of(*parse_datatype(output.datatype()), bytes);
    }
    outputs.push_back(std::move(each));
  }
  document["outputs"] = std::move(outputs);
  RestResponse response;
  response.body = document.dump();
  if (!binary.empty()) {
    response.json_bytes = response.body.size();
    response.type = "application/octet-stream";
    response.body += binary;
  }
  return response;
}

}  // namespace

RestResponse answer_infer(InferenceServer& server, const Principal& caller, const RestRequest& wire,
                          const std::string& model, const std::string& version) {
  // Parsed JSON takes up to some 24 bytes for each in the text.
  constexpr uint64_t kJsonFactor = 24;
  const uint64_t json_bytes = std::min(wire.json_bytes, wire.body.size());
  const std::string charged_caller = InferenceServer::charged_caller(caller, wire.address);
  if (wire.contents != nullptr) *wire.contents = {};
  const auto inflight =
      server.begin(wire.body.size() + kJsonFactor * json_bytes, charged_caller, InflightUse::kRequest);
  require_ok(inflight.status());
  ReadBody read = read_body(wire);
  read.request.set_model_name(model);
  read.request.set_model_version(version);
  inference::ModelInferResponse reply;
  InferRequest limits;
  limits.transport = Transport::kRest;
  limits.address = wire.address;
  limits.is_cancelled = wire.is_cancelled;
  limits.class_bytes = most_class_bytes(read, server.options().inflight_bytes);
  InferenceServer::Inflight answered;
  ModelShares::Place place;
  limits.reserve = [&](absl::Span<const InferOutput> outputs) {
    const auto [bytes, more] = answer_bytes(outputs, read);
    return server.begin_answer(bytes, &answered, more, charged_caller);
  };
  RestResponse response;
  // Before the states of a sequence change: some values cannot be written as JSON.
  const auto finish = [&]() -> absl::Status {
    try {
      response = response_of(reply, read);
      return absl::OkStatus();
    } catch (const Refused& refused) {
      return refused.status;
    } catch (const std::exception&) {
      return absl::InternalError("[infer] internal error");
    }
  };
  require_ok(server.infer(caller, read.request, std::move(limits), &reply, &place, finish));
  response.charged = std::move(answered);
  response.place = std::move(place);
  return response;
}

}  // namespace tt::server
