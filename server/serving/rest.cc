#include "server/serving/rest.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "server/serving/datatype.h"
#include "server/serving/infer_messages.h"
#include "server/text.h"

namespace tt::server {
namespace {

using nlohmann::json;
using Right = InferenceServer::Right;

constexpr int kMaxDepth = 72;  // of lists: a tensor's dimensions and the objects around them

// Ends a request with a status.
struct Refused {
  absl::Status status;
};
template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw Refused{absl::InvalidArgumentError(absl::StrCat("[infer] ", parts...))};
}
void require_ok(const absl::Status& status) {
  if (!status.ok()) throw Refused{status};
}

int http_status(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return 200;
    case absl::StatusCode::kInvalidArgument: return 400;
    case absl::StatusCode::kUnauthenticated: return 401;
    case absl::StatusCode::kPermissionDenied: return 403;
    case absl::StatusCode::kNotFound: return 404;
    case absl::StatusCode::kAlreadyExists: return 409;
    case absl::StatusCode::kResourceExhausted: return 429;
    case absl::StatusCode::kUnimplemented: return 501;
    case absl::StatusCode::kUnavailable: return 503;
    case absl::StatusCode::kDeadlineExceeded: return 504;
    default: return status.code() == absl::StatusCode::kFailedPrecondition ? 400 : 500;
  }
}

RestResponse error_response(const absl::Status& status) {
  RestResponse response;
  response.status = http_status(status);
  response.body = json({{"error", valid_utf8(status.message(), 2000)}}).dump();
  return response;
}

// Without the parser's recursion: nlohmann's keeps one bit per level, but a document's destructor and conversions do
// recurse.
json parse_json(absl::string_view text) {
  json parsed = json::parse(
      text.begin(), text.end(),
      [](int depth, json::parse_event_t, json&) {
        if (depth > kMaxDepth) refuse("expected JSON with at most ", kMaxDepth, " levels");
        return true;
      },
      /*allow_exceptions=*/false);
  if (parsed.is_discarded()) refuse("expected valid JSON");
  return parsed;
}

const json* member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}
std::string text_of(const json& object, const char* name, bool is_required) {
  const json* value = member(object, name);
  if (value == nullptr && !is_required) return "";
  if (value == nullptr || !value->is_string()) refuse("expected the string '", name, "'");
  return value->get<std::string>();
}

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
  const std::optional<DType> dtype = parse_datatype(input->datatype());
  if (!dtype) refuse("expected a datatype of numbers or BOOL for the input '", input->name(), "'");
  if (data == nullptr || !data->is_array()) refuse("expected the data of the input '", input->name(), "'");
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

// Memory of the JSON of outputs: a value and its text per element.
uint64_t json_bytes_of(const inference::ModelInferResponse& reply, const ReadBody& read) {
  constexpr uint64_t kElement = 48;
  uint64_t bytes = 0;
  int raw = 0;
  for (const auto& output : reply.outputs()) {
    if (output.parameters().contains("shared_memory_region")) continue;
    const uint64_t size = reply.raw_output_contents(raw++).size();
    const auto own = read.binary_outputs.find(output.name());
    const bool is_binary = own != read.binary_outputs.end() ? own->second : read.binary_output;
    const std::optional<DType> dtype = parse_datatype(output.datatype());
    bytes += is_binary || !dtype ? size : size / item_size(*dtype) * kElement;
  }
  return bytes;
}

RestResponse infer(InferenceServer& server, const Principal& caller, const RestRequest& wire, const std::string& model,
                   const std::string& version) {
  // Parsed JSON takes up to some 24 bytes for each in the text.
  constexpr uint64_t kJsonFactor = 24;
  const uint64_t json_bytes = std::min(wire.json_bytes, wire.body.size());
  const absl::StatusOr<InferenceServer::Inflight> inflight = server.begin(wire.body.size() + kJsonFactor * json_bytes);
  require_ok(inflight.status());
  ReadBody read = read_body(wire);
  read.request.set_model_name(model);
  read.request.set_model_version(version);
  inference::ModelInferResponse reply;
  InferRequest limits;
  limits.is_cancelled = wire.is_cancelled;
  require_ok(server.infer(caller, read.request, std::move(limits), &reply));
  const absl::StatusOr<InferenceServer::Inflight> answered = server.begin(json_bytes_of(reply, read));
  require_ok(answered.status());
  json document = {{"model_name", reply.model_name()}, {"model_version", reply.model_version()}};
  if (!reply.id().empty()) document["id"] = valid_utf8(reply.id());
  json outputs = json::array();
  std::string binary;
  int raw = 0;
  for (const auto& output : reply.outputs()) {
    json each = {{"name", output.name()}, {"datatype", output.datatype()}, {"shape", json::array()}};
    for (const int64_t size : output.shape()) each["shape"].push_back(size);
    if (output.parameters().contains("shared_memory_region")) {
      for (const auto& [name, value] : output.parameters()) {
        if (value.has_string_param()) {
          each["parameters"][name] = value.string_param();
        } else {
          each["parameters"][name] = value.int64_param();
        }
      }
      outputs.push_back(std::move(each));
      continue;
    }
    const std::string& bytes = reply.raw_output_contents(raw++);
    const auto own = read.binary_outputs.find(output.name());
    if (own != read.binary_outputs.end() ? own->second : read.binary_output) {
      each["parameters"]["binary_data_size"] = bytes.size();
      binary += bytes;
    } else {
      each["data"] = values_of(*parse_datatype(output.datatype()), bytes);
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

std::string to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  static_cast<void>(google::protobuf::util::MessageToJsonString(message, &text, options));
  return text;
}

// protobuf writes 64-bit integers as strings; the protocol has numbers.
void make_numbers(json* value, bool is_number) {
  if (value->is_object()) {
    for (auto& [name, each] : value->items()) {
      constexpr const char* kTexts[] = {"name",     "version", "versions", "key",         "reason",
                                        "platform", "backend", "state",    "string_value"};
      bool is_text = false;
      for (const char* text : kTexts) is_text = is_text || name == text;
      make_numbers(&each, !is_text);
    }
  } else if (value->is_array()) {
    for (json& each : *value) make_numbers(&each, is_number);
  } else if (is_number && value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    int64_t number = 0;
    if (!text.empty() && text.size() < 20 && absl::SimpleAtoi(text, &number)) *value = number;
  }
}

json to_document(const google::protobuf::Message& message) {
  json document = json::parse(to_json(message));
  make_numbers(&document, true);
  return document;
}

RestResponse json_response(const json& document) {
  RestResponse response;
  response.body = document.dump();
  return response;
}

json body_object(const RestRequest& request) {
  if (request.body.empty()) return json::object();
  json document = parse_json(request.body);
  if (!document.is_object()) refuse("expected an object");
  return document;
}

// A page of another origin can cause GET requests, so they must not change anything.
void require_post(const RestRequest& request) {
  if (request.method != "POST") throw Refused{absl::UnimplementedError("[v2] expected POST for this path")};
}

// "/v2/models/NAME[/versions/VERSION][/ACTION]", split.
struct ModelPath {
  std::string model, version, action;
};

std::optional<ModelPath> model_path(const std::vector<std::string>& parts) {
  ModelPath path;
  size_t at = 2;
  if (parts.size() < 2 || parts[0] != "models") return std::nullopt;
  path.model = parts[1];
  if (parts.size() >= 4 && parts[2] == "versions") {
    path.version = parts[3];
    at = 4;
  }
  if (parts.size() > at + 1) return std::nullopt;
  if (parts.size() == at + 1) path.action = parts[at];
  return path;
}

RestResponse answer_model(InferenceServer& server, const Principal& caller, const RestRequest& request,
                          const ModelPath& path) {
  const bool is_post = request.method == "POST";
  if (path.action == "infer" && is_post) return infer(server, caller, request, path.model, path.version);
  if (is_post) throw Refused{absl::UnimplementedError("[v2] expected GET for this path")};
  if (path.action == "ready") {
    require_ok(server.find(caller, path.model, path.version).status());
    return json_response({{"name", path.model}, {"ready", true}});
  }
  if (path.action.empty()) {
    inference::ModelMetadataRequest wire;
    wire.set_name(path.model);
    wire.set_version(path.version);
    inference::ModelMetadataResponse reply;
    require_ok(server.describe(caller, wire, &reply));
    return json_response(to_document(reply));
  }
  if (path.action == "config") {
    inference::ModelConfigRequest wire;
    wire.set_name(path.model);
    wire.set_version(path.version);
    inference::ModelConfigResponse reply;
    require_ok(server.describe(caller, wire, &reply));
    return json_response(to_document(reply.config()));
  }
  if (path.action == "stats" || path.action == "statistics") {
    inference::ModelStatisticsRequest wire;
    wire.set_name(path.model);
    wire.set_version(path.version);
    inference::ModelStatisticsResponse reply;
    require_ok(server.describe(caller, wire, &reply));
    return json_response(to_document(reply));
  }
  throw Refused{absl::NotFoundError("[v2] expected a path of the Open Inference Protocol")};
}

RestResponse answer_repository(InferenceServer& server, const Principal& caller, const RestRequest& request,
                               const std::vector<std::string>& parts) {
  if (parts.size() == 2 && parts[1] == "index") {
    inference::RepositoryIndexRequest wire;
    const json body = body_object(request);
    if (const json* ready = member(body, "ready"); ready != nullptr && ready->is_boolean()) {
      wire.set_ready(ready->get<bool>());
    }
    inference::RepositoryIndexResponse reply;
    require_ok(server.describe(caller, wire, &reply));
    json models = json::array();
    for (const auto& model : reply.models()) {
      json each = {{"name", model.name()}};
      if (!model.version().empty()) each["version"] = model.version();
      each["state"] = model.state();
      if (!model.reason().empty()) each["reason"] = valid_utf8(model.reason());
      models.push_back(std::move(each));
    }
    return json_response(models);
  }
  const bool is_load = parts.size() == 4 && parts[1] == "models" && parts[3] == "load";
  const bool is_unload = parts.size() == 4 && parts[1] == "models" && parts[3] == "unload";
  if (!is_load && !is_unload) throw Refused{absl::NotFoundError("[v2] expected index, load or unload")};
  require_post(request);
  const json body = body_object(request);
  const json* parameters = member(body, "parameters");
  if (parameters != nullptr && !parameters->is_object()) refuse("expected an object of parameters");
  const auto set = [&](auto* wire) {
    wire->set_model_name(parts[2]);
    if (parameters == nullptr) return;
    for (const auto& [name, value] : parameters->items()) {
      inference::ModelRepositoryParameter& parameter = (*wire->mutable_parameters())[name];
      if (value.is_string()) {
        parameter.set_string_param(value.template get<std::string>());
      } else if (value.is_boolean()) {
        parameter.set_bool_param(value.template get<bool>());
      }
    }
  };
  if (is_load) {
    inference::RepositoryModelLoadRequest wire;
    set(&wire);
    require_ok(server.load(caller, wire));
  } else {
    inference::RepositoryModelUnloadRequest wire;
    set(&wire);
    require_ok(server.unload(caller, wire));
  }
  return json_response(json::object());
}

// "/v2/systemsharedmemory[/region/NAME]/{status,register,unregister}".
RestResponse answer_shared_memory(InferenceServer& server, const Principal& caller, const RestRequest& request,
                                  const std::vector<std::string>& parts) {
  const std::string name = parts.size() == 4 && parts[1] == "region" ? parts[2] : "";
  const std::string& action = parts.back();
  if (parts.size() != 2 && name.empty()) throw Refused{absl::NotFoundError("[v2] expected a region of shared memory")};
  if (action != "status") require_post(request);
  if (parts[0] == "cudasharedmemory") {
    if (action == "register") {
      throw Refused{absl::UnimplementedError("[v2] this server does not map other processes' GPU memory")};
    }
    return json_response(action == "status" ? json::array() : json::object());
  }
  if (action == "status") {
    inference::SystemSharedMemoryStatusRequest wire;
    wire.set_name(name);
    inference::SystemSharedMemoryStatusResponse reply;
    require_ok(server.describe(caller, wire, &reply));
    json regions = json::array();
    for (const auto& [each, region] : reply.regions()) {
      regions.push_back({{"name", valid_utf8(each)},
                         {"key", valid_utf8(region.key())},
                         {"offset", region.offset()},
                         {"byte_size", region.byte_size()}});
    }
    return json_response(regions);
  }
  if (action == "register") {
    const json body = body_object(request);
    inference::SystemSharedMemoryRegisterRequest wire;
    wire.set_name(name);
    wire.set_key(text_of(body, "key", true));
    const auto number = [&](const char* key) -> uint64_t {
      const json* value = member(body, key);
      if (value == nullptr) return 0;
      if (!value->is_number_unsigned()) refuse("expected the number '", key, "'");
      return value->get<uint64_t>();
    };
    wire.set_offset(number("offset"));
    wire.set_byte_size(number("byte_size"));
    require_ok(server.add(caller, request.is_local, wire));
    return json_response(json::object());
  }
  if (action != "unregister") throw Refused{absl::NotFoundError("[v2] expected status, register or unregister")};
  inference::SystemSharedMemoryUnregisterRequest wire;
  wire.set_name(name);
  require_ok(server.remove(caller, wire));
  return json_response(json::object());
}

// The parts of a path after "/v2". Both the right that a call needs and the call are chosen by them.
std::vector<std::string> parts_of(absl::string_view path) {
  std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  if (!parts.empty()) parts.erase(parts.begin());
  return parts;
}

RestResponse answer(InferenceServer& server, const Principal& caller, const RestRequest& request) {
  const std::vector<std::string> parts = parts_of(request.path);
  if (parts.empty()) {
    inference::ServerMetadataResponse reply;
    server.describe(&reply);
    return json_response(to_document(reply));
  }
  if (parts[0] == "health" && parts.size() == 2) {
    const bool is_good = parts[1] == "live" || (parts[1] == "ready" && server.ready());
    if (parts[1] != "live" && parts[1] != "ready") throw Refused{absl::NotFoundError("[v2] expected live or ready")};
    RestResponse response;
    response.status = is_good ? 200 : 503;
    response.body = "{}";
    return response;
  }
  if (parts[0] == "models" && parts.size() == 2 && parts[1] == "stats" && request.method == "GET") {
    inference::ModelStatisticsResponse reply;
    require_ok(server.describe(caller, inference::ModelStatisticsRequest(), &reply));
    return json_response(to_document(reply));
  }
  if (const std::optional<ModelPath> path = model_path(parts)) return answer_model(server, caller, request, *path);
  if (parts[0] == "repository") return answer_repository(server, caller, request, parts);
  if (parts[0] == "systemsharedmemory" || parts[0] == "cudasharedmemory") {
    return answer_shared_memory(server, caller, request, parts);
  }
  if (parts[0] == "logging" && parts.size() == 1) {
    if (request.method == "POST") {
      throw Refused{absl::UnimplementedError("[v2] the log is configured by the daemon's options --log-*")};
    }
    inference::LogSettingsResponse reply;
    require_ok(server.describe(inference::LogSettingsRequest(), &reply));
    json settings = json::object();
    for (const auto& [name, value] : reply.settings()) {
      settings[name] = value.has_bool_param()     ? json(value.bool_param())
                       : value.has_uint32_param() ? json(value.uint32_param())
                                                  : json(value.string_param());
    }
    return json_response(settings);
  }
  if (parts[0] == "trace" && parts.size() == 2 && parts[1] == "setting") {
    if (request.method == "POST") {
      throw Refused{absl::UnimplementedError("[v2] spans are configured by the daemon's options --otlp*")};
    }
    return json_response({{"trace_level", {"OFF"}}});
  }
  throw Refused{absl::NotFoundError("[v2] expected a path of the Open Inference Protocol")};
}

}  // namespace

Right rest_right(absl::string_view path) {
  const std::vector<std::string> parts = parts_of(path);
  if (parts.size() == 2 && parts[0] == "health") return Right::kNone;
  const bool changes = parts.size() > 1 && parts[0] == "repository" && parts[1] != "index";
  return changes ? Right::kManage : Right::kInfer;
}

RestResponse answer_rest(InferenceServer& server, const RestRequest& request) {
  try {
    const absl::StatusOr<Principal> caller = server.caller({request.authorization}, rest_right(request.path));
    if (!caller.ok()) return error_response(caller.status());
    return answer(server, *caller, request);
  } catch (const Refused& refused) {
    return error_response(refused.status);
  } catch (const std::exception&) {
    return error_response(absl::InternalError("internal error"));
  }
}

}  // namespace tt::server
