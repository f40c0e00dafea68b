#include "server/serving/infer_messages.h"

#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "server/serving/byte_strings.h"
#include "server/serving/datatype.h"
#include "server/serving/model_file.h"

namespace tt::server {
namespace {

constexpr size_t kMaxParameters = 256, kMaxParameterBytes = size_t{64} << 10;
constexpr size_t kMaxSequenceId = 1024;                    // bytes; states of a sequence are kept by it
constexpr const char* kClassification = "classification";  // a parameter of a requested output

template <typename... Parts>
absl::Status invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("[ModelInfer] ", parts...));
}

absl::StatusOr<InferParameter> parameter_of(const std::string& name, const inference::InferParameter& wire) {
  using Wire = inference::InferParameter;
  switch (wire.parameter_choice_case()) {
    case Wire::kBoolParam: return wire.bool_param();
    case Wire::kInt64Param: return wire.int64_param();
    case Wire::kDoubleParam: return wire.double_param();
    case Wire::kStringParam: return wire.string_param();
    case Wire::kUint64Param:
      if (wire.uint64_param() > INT64_MAX) return invalid("expected the parameter '", name, "' below 2 ** 63");
      return static_cast<int64_t>(wire.uint64_param());
    case Wire::PARAMETER_CHOICE_NOT_SET: break;
  }
  return invalid("expected a value of the parameter '", name.substr(0, 100), "'");
}

enum class PortKind : uint8_t { kInput, kOutput };

// The part of a region that the parameters of an input or output name; none if they name no region.
struct Place {
  SharedRegions::RegionPointer region;
  uint64_t offset = 0, bytes = 0;
};

template <typename Parameters>
absl::StatusOr<std::optional<Place>> place_of(PortKind kind, const Parameters& parameters, const std::string& principal,
                                              const SharedRegions* regions) {
  std::optional<Place> place;
  std::string name;
  Place found;
  for (const auto& [key, wire] : parameters) {
    const absl::StatusOr<InferParameter> value = parameter_of(key, wire);
    if (!value.ok()) return value.status();
    const auto* text = std::get_if<std::string>(&*value);
    const auto* number = std::get_if<int64_t>(&*value);
    if (key == "shared_memory_region" && text != nullptr) {
      name = *text;
    } else if (key == "shared_memory_offset" && number != nullptr && *number >= 0) {
      found.offset = static_cast<uint64_t>(*number);
    } else if (key == "shared_memory_byte_size" && number != nullptr && *number >= 0) {
      found.bytes = static_cast<uint64_t>(*number);
    } else if (key == "binary_data" || key == "binary_data_size" ||
               (key == kClassification && kind == PortKind::kOutput)) {
      continue;  // gRPC's contents are binary; read_request_message() reads the number of classes
    } else {
      return invalid("expected parameters of shared memory of an input or output, got '", key.substr(0, 100), "'");
    }
  }
  if (name.empty()) return place;
  if (regions == nullptr) {
    return absl::PermissionDeniedError("[ModelInfer] shared memory requires an engine with --model-shared-memory");
  }
  absl::StatusOr<SharedRegions::RegionPointer> region = regions->find(principal, name);
  if (!region.ok()) return region.status();
  found.region = *std::move(region);
  return std::optional<Place>(std::move(found));
}

template <typename To, typename Field>
absl::Status append(const Field& field, const std::string& name, std::string* bytes) {
  bytes->resize(static_cast<size_t>(field.size()) * sizeof(To));
  char* into = bytes->data();
  for (const auto value : field) {
    const auto converted = static_cast<To>(value);
    if constexpr (sizeof(To) < sizeof(value)) {
      if (value > std::numeric_limits<To>::max() || value < std::numeric_limits<To>::lowest()) {
        return invalid("expected values of the datatype of input '", name, "', got ", value);
      }
    }
    std::memcpy(into, &converted, sizeof converted);
    into += sizeof converted;
  }
  return absl::OkStatus();
}

// Returns the elements as raw bytes. A field of another type than the datatype's is an error, since it would be lost.
absl::Status append_contents(DType dtype, const inference::InferTensorContents& wire, const std::string& name,
                             std::string* bytes) {
  const int all = wire.bool_contents_size() + wire.int_contents_size() + wire.int64_contents_size() +
                  wire.uint_contents_size() + wire.uint64_contents_size() + wire.fp32_contents_size() +
                  wire.fp64_contents_size() + wire.bytes_contents_size();
  const auto convert = [&](auto type, const auto& field) -> absl::Status {
    if (field.size() != all) {
      return invalid("expected the contents of input '", name, "' in the field of its datatype");
    }
    return append<decltype(type)>(field, name, bytes);
  };
  switch (dtype) {
    case DType::kBool: return convert(char(), wire.bool_contents());
    case DType::kInt8: return convert(int8_t(), wire.int_contents());
    case DType::kInt16: return convert(int16_t(), wire.int_contents());
    case DType::kInt32: return convert(int32_t(), wire.int_contents());
    case DType::kInt64: return convert(int64_t(), wire.int64_contents());
    case DType::kUInt8: return convert(uint8_t(), wire.uint_contents());
    case DType::kUInt16: return convert(uint16_t(), wire.uint_contents());
    case DType::kUInt32: return convert(uint32_t(), wire.uint_contents());
    case DType::kUInt64: return convert(uint64_t(), wire.uint64_contents());
    case DType::kFloat32: return convert(float(), wire.fp32_contents());
    case DType::kFloat64: return convert(double(), wire.fp64_contents());
    default: return invalid("expected raw_input_contents for the datatype ", datatype_name(dtype));
  }
}

absl::Status append_strings(const inference::InferTensorContents& wire, const std::string& name, std::string* bytes) {
  if (wire.bool_contents_size() + wire.int_contents_size() + wire.int64_contents_size() + wire.uint_contents_size() +
          wire.uint64_contents_size() + wire.fp32_contents_size() + wire.fp64_contents_size() !=
      0) {
    return invalid("expected the contents of input '", name, "' in the field of its datatype");
  }
  for (const std::string& text : wire.bytes_contents()) append_string(text, bytes);
  return absl::OkStatus();
}

absl::Status read_input(const inference::ModelInferRequest::InferInputTensor& wire, const std::string& principal,
                        const SharedRegions* regions, const inference::ModelInferRequest& all, int* raw,
                        InferRequest* request) {
  InferInput input;
  input.name = wire.name();
  if (wire.name().size() > ModelFile::kMaxName) return invalid("expected a shorter name of an input");
  input.is_strings = wire.datatype() == kBytesDatatype;
  const std::optional<DType> dtype = input.is_strings ? DType::kUInt8 : parse_datatype(wire.datatype());
  if (!dtype) {
    return invalid("expected a datatype of numbers, BOOL or BYTES for input '", wire.name(), "', got '",
                   wire.datatype().substr(0, 20), "'");
  }
  input.dtype = *dtype;
  if (static_cast<size_t>(wire.shape_size()) > ModelFile::kMaxDims) {
    return invalid("expected at most ", ModelFile::kMaxDims, " dimensions of input '", wire.name(), "', got ",
                   wire.shape_size());
  }
  input.sizes.assign(wire.shape().begin(), wire.shape().end());
  absl::StatusOr<std::optional<Place>> place = place_of(PortKind::kInput, wire.parameters(), principal, regions);
  if (!place.ok()) return place.status();
  if (*place) {
    request->owned.emplace_back();
    const absl::Status read = (*place)->region->read((*place)->offset, (*place)->bytes, &request->owned.back());
    if (!read.ok()) return read;
    input.bytes = {request->owned.back().data(), request->owned.back().size()};
  } else if (all.raw_input_contents_size() != 0) {
    if (*raw >= all.raw_input_contents_size()) {
      return invalid("expected as many raw_input_contents as inputs, got ", all.raw_input_contents_size());
    }
    if (wire.has_contents()) return invalid("expected either contents or raw_input_contents, got both");
    const std::string& bytes = all.raw_input_contents((*raw)++);
    input.bytes = {bytes.data(), bytes.size()};
  } else {
    request->owned.emplace_back();
    std::string& owned = request->owned.back();
    const absl::Status read = input.is_strings ? append_strings(wire.contents(), wire.name(), &owned)
                                               : append_contents(*dtype, wire.contents(), wire.name(), &owned);
    if (!read.ok()) return read;
    input.bytes = {request->owned.back().data(), request->owned.back().size()};
  }
  request->inputs.push_back(std::move(input));
  return absl::OkStatus();
}

const inference::ModelInferRequest::InferRequestedOutputTensor* wanted_output(const inference::ModelInferRequest& wire,
                                                                              const std::string& name) {
  const inference::ModelInferRequest::InferRequestedOutputTensor* wanted = nullptr;
  for (const auto& each : wire.outputs()) {
    if (each.name() == name) wanted = &each;
  }
  return wanted;
}

// Where an output is to be written; none if it belongs to the response. INVALID_ARGUMENT if it does not fit there.
absl::StatusOr<std::optional<Place>> place_of_output(
    const inference::ModelInferRequest::InferRequestedOutputTensor* wanted, const InferOutput& output,
    const std::string& principal, const SharedRegions* regions) {
  if (wanted == nullptr) return std::optional<Place>();
  absl::StatusOr<std::optional<Place>> place = place_of(PortKind::kOutput, wanted->parameters(), principal, regions);
  if (place.ok() && *place && output.size > (*place)->bytes) {
    return invalid("expected shared memory of at least ", output.size, " bytes for the output '", output.name,
                   "', got ", (*place)->bytes);
  }
  return place;
}

}  // namespace

absl::StatusOr<std::vector<InferOutput>> response_outputs(const inference::ModelInferRequest& wire,
                                                          const std::string& principal, const SharedRegions* regions,
                                                          absl::Span<const InferOutput> outputs) {
  std::vector<InferOutput> sent;
  sent.reserve(outputs.size());
  for (const InferOutput& output : outputs) {
    const auto place = place_of_output(wanted_output(wire, output.name), output, principal, regions);
    if (!place.ok()) return place.status();
    if (!*place) sent.push_back(output);
  }
  return sent;
}

absl::Status set_parameter(const std::string& name, const InferParameter& value, InferRequest* request) {
  const auto* number = std::get_if<int64_t>(&value);
  const auto* flag = std::get_if<bool>(&value);
  const auto* text = std::get_if<std::string>(&value);
  if (name == "sequence_id" && (number != nullptr || text != nullptr)) {
    if (text != nullptr && text->size() > kMaxSequenceId) {
      return invalid("expected a sequence_id of at most ", kMaxSequenceId, " bytes, got ", text->size());
    }
    request->sequence = text != nullptr ? *text : *number == 0 ? "" : absl::StrCat(*number);
  } else if (name == "sequence_start" && flag != nullptr) {
    request->sequence_start = *flag;
  } else if (name == "sequence_end" && flag != nullptr) {
    request->sequence_end = *flag;
  } else if (name == "priority" && number != nullptr && *number >= 0) {
    request->priority = static_cast<uint64_t>(*number);
  } else if (name == "timeout" && number != nullptr && *number >= 0) {
    request->timeout_us = static_cast<uint64_t>(*number);
  } else if (name == "sequence_id" || name == "sequence_start" || name == "sequence_end" || name == "priority" ||
             name == "timeout") {
    return invalid("the parameter '", name, "' has a value of the wrong kind");
  } else if (name == "triton_enable_empty_final_response" || name == "binary_data_output") {
    return absl::OkStatus();
  } else {
    if (request->parameters.size() >= kMaxParameters || name.size() > kMaxParameterBytes ||
        (text != nullptr && text->size() > kMaxParameterBytes)) {
      return invalid("expected at most ", kMaxParameters, " parameters of at most ", kMaxParameterBytes, " bytes");
    }
    request->parameters[name] = value;
  }
  return absl::OkStatus();
}

absl::Status read_request_message(const inference::ModelInferRequest& wire, const std::string& principal,
                                  const SharedRegions* regions, InferRequest* request) {
  request->id = wire.id();
  request->principal = principal;
  for (const auto& [name, parameter] : wire.parameters()) {
    const absl::StatusOr<InferParameter> value = parameter_of(name, parameter);
    if (!value.ok()) return value.status();
    if (absl::Status status = set_parameter(name, *value, request); !status.ok()) return status;
  }
  if (static_cast<size_t>(wire.inputs_size()) > ModelFile::kMaxPorts ||
      static_cast<size_t>(wire.outputs_size()) > ModelFile::kMaxPorts) {
    return invalid("expected at most ", ModelFile::kMaxPorts, " inputs and outputs");
  }
  int raw = 0;
  for (const auto& input : wire.inputs()) {
    absl::Status status = read_input(input, principal, regions, wire, &raw, request);
    if (!status.ok()) return status;
  }
  if (raw != wire.raw_input_contents_size()) {
    return invalid("expected as many raw_input_contents as inputs without shared memory, got ",
                   wire.raw_input_contents_size());
  }
  absl::flat_hash_set<absl::string_view> wanted;
  for (const auto& output : wire.outputs()) {
    if (!wanted.insert(output.name()).second) {
      return invalid("expected distinct outputs, got '", output.name().substr(0, ModelFile::kMaxName), "' twice");
    }
    request->outputs.push_back({output.name(), 0});
    const auto found = output.parameters().find(kClassification);
    if (found == output.parameters().end()) continue;
    const absl::StatusOr<InferParameter> value = parameter_of(found->first, found->second);
    if (!value.ok()) return value.status();
    const auto* count = std::get_if<int64_t>(&*value);
    if (count == nullptr || *count < 1) {
      return invalid("expected a number of at least 1 as 'classification' of the output '",
                     output.name().substr(0, ModelFile::kMaxName), "'");
    }
    if (output.parameters().contains("shared_memory_region")) {
      return invalid("expected either 'classification' or shared memory for the output '",
                     output.name().substr(0, ModelFile::kMaxName), "', got both");
    }
    request->outputs.back().classes = static_cast<uint64_t>(*count);
  }
  return absl::OkStatus();
}

absl::Status write_response_message(const inference::ModelInferRequest& wire, const std::string& principal,
                                    const SharedRegions* regions, const InferResult& result,
                                    inference::ModelInferResponse* reply) {
  for (const auto& [name, value] : result.parameters) {
    inference::InferParameter& parameter = (*reply->mutable_parameters())[name];
    if (const bool* flag = std::get_if<bool>(&value)) {
      parameter.set_bool_param(*flag);
    } else if (const int64_t* integer = std::get_if<int64_t>(&value)) {
      parameter.set_int64_param(*integer);
    } else if (const double* number = std::get_if<double>(&value)) {
      parameter.set_double_param(*number);
    } else {
      parameter.set_string_param(std::get<std::string>(value));
    }
  }
  for (const InferOutput& output : result.outputs) {
    inference::ModelInferResponse::InferOutputTensor* tensor = reply->add_outputs();
    tensor->set_name(output.name);
    tensor->set_datatype(std::string(output.is_strings ? kBytesDatatype : datatype_name(output.dtype)));
    tensor->mutable_shape()->Add(output.sizes.begin(), output.sizes.end());
    const inference::ModelInferRequest::InferRequestedOutputTensor* wanted = wanted_output(wire, output.name);
    absl::StatusOr<std::optional<Place>> place = place_of_output(wanted, output, principal, regions);
    if (!place.ok()) return place.status();
    if (!*place) {
      reply->add_raw_output_contents(output.bytes().data(), output.size);
      continue;
    }
    absl::Status written = (*place)->region->write((*place)->offset, output.bytes());
    if (!written.ok()) return written;
    auto& parameters = *tensor->mutable_parameters();
    parameters["shared_memory_region"].set_string_param(wanted->parameters().at("shared_memory_region").string_param());
    parameters["shared_memory_byte_size"].set_int64_param(static_cast<int64_t>(output.size));
    if ((*place)->offset != 0) {
      parameters["shared_memory_offset"].set_int64_param(static_cast<int64_t>((*place)->offset));
    }
  }
  return absl::OkStatus();
}

}  // namespace tt::server
