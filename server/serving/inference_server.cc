#include "server/serving/inference_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/serving/byte_strings.h"
#include "server/serving/datatype.h"
#include "server/serving/infer_messages.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

constexpr const char* kExtensions[] = {"sequence",           "model_repository", "statistics",    "model_configuration",
                                       "binary_tensor_data", "parameters",       "classification"};

absl::Status shared_memory_refused() {
  return absl::PermissionDeniedError("shared memory requires an engine with --model-shared-memory");
}

void describe_ports(const ModelVersion& version, const std::vector<const ModelPort*>& ports,
                    google::protobuf::RepeatedPtrField<inference::ModelMetadataResponse::TensorMetadata>* wire) {
  for (const ModelPort* port : ports) {
    inference::ModelMetadataResponse::TensorMetadata* tensor = wire->Add();
    tensor->set_name(port->name);
    const bool is_string = version.is_string(*port);
    tensor->set_datatype(std::string(is_string ? kBytesDatatype : datatype_name(port->dtype)));
    for (size_t i = 0; i < port->dims.size() - (is_string ? 1 : 0); ++i) tensor->add_shape(port->dims[i].size);
  }
}

void begin_reply(const ModelVersion& version, const inference::ModelInferRequest& request,
                 inference::ModelInferResponse* reply) {
  reply->set_model_name(version.name());
  reply->set_model_version(std::to_string(version.number()));
  reply->set_id(request.id());
}

}  // namespace

absl::StatusOr<Principal> InferenceServer::caller(const Auth::Credentials& credentials, Right right) const {
  if (right == Right::kNone) return Principal();
  if (right == Right::kInfer && options_.open && credentials.authorization.empty()) return Principal();
  absl::StatusOr<Principal> caller = auth_.caller(credentials);
  if (!caller.ok()) return caller;
  const bool may = right == Right::kInfer ? caller->role != Role::kObserver : caller->role == Role::kOperator;
  if (may) return caller;
  return absl::PermissionDeniedError(absl::StrCat("this requires a token of the role ",
                                                  right == Right::kInfer ? "user or operator" : "operator", ", got ",
                                                  role_name(caller->role)));
}

namespace {

// Bytes that a request's inputs copy from shared memory, which its own size does not show.
uint64_t shared_bytes(const inference::ModelInferRequest& request) {
  constexpr uint64_t kMax = uint64_t{1} << 62;
  uint64_t bytes = 0;
  for (const auto& input : request.inputs()) {
    const auto size = input.parameters().find("shared_memory_byte_size");
    if (size == input.parameters().end()) continue;
    const uint64_t each = size->second.has_uint64_param()
                              ? size->second.uint64_param()
                              : static_cast<uint64_t>(std::max<int64_t>(size->second.int64_param(), 0));
    bytes = std::min(kMax, bytes + std::min(kMax, each));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<InferenceServer::Inflight> InferenceServer::begin_shared(const Principal& caller,
                                                                        const std::string& address,
                                                                        const inference::ModelInferRequest& request) {
  const uint64_t bytes = shared_bytes(request);
  if (bytes <= options_.request_bytes) return begin(bytes, charged_caller(caller, address), InflightUse::kRequest);
  return absl::OutOfRangeError(absl::StrCat("[ModelInfer] expected inputs in shared memory of at most ",
                                            options_.request_bytes, " bytes, got ", bytes));
}

std::string InferenceServer::charged_caller(const Principal& caller, absl::string_view address) {
  return caller.name.empty() ? absl::StrCat("address ", address) : caller.name;  // no name has a space
}

absl::Status InferenceServer::begin_answer(uint64_t bytes, Inflight* charged, uint64_t more, absl::string_view caller) {
  if (bytes > options_.inflight_bytes) {
    return absl::OutOfRangeError(absl::StrCat("[ModelInfer] expected an answer that takes at most ",
                                              options_.inflight_bytes, " bytes of memory, got one of ", bytes));
  }
  const uint64_t half = options_.inflight_bytes / 2;
  *charged = {};
  absl::StatusOr<Inflight> inflight = begin(bytes + std::min(more, half - std::min(bytes, half)), caller);
  if (!inflight.ok()) return inflight.status();
  *charged = *std::move(inflight);
  return absl::OkStatus();
}

absl::StatusOr<std::string> InferenceServer::decompress(ContentCoding coding, absl::Span<const absl::string_view> parts,
                                                        uint64_t max_bytes, Inflight* charged) {
  Inflight copied;  // while the result grows, it exists twice
  return decompressed(coding, parts, max_bytes, [&](uint64_t bytes) {
    absl::StatusOr<Inflight> inflight = begin(bytes);
    if (!inflight.ok()) return inflight.status();
    copied = std::move(*charged);
    *charged = *std::move(inflight);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::shared_ptr<ModelVersion>> InferenceServer::find(const Principal& caller, const std::string& name,
                                                                    const std::string& version) const {
  if (caller.role != Role::kOperator && !repository_.allows(caller.name, name)) {
    return absl::NotFoundError(absl::StrCat("expected the name of a model, got '", name.substr(0, 128), "'"));
  }
  absl::StatusOr<std::shared_ptr<ModelVersion>> found = repository_.find(name, version);
  if (found.ok() && caller.role != Role::kOperator && !(*found)->allows(caller.name)) {
    return absl::NotFoundError(absl::StrCat("expected the name of a model, got '", name.substr(0, 128), "'"));
  }
  return found;
}

bool InferenceServer::ready(const Principal& caller, const std::string& name, const std::string& version) const {
  return find(caller, name, version).ok();
}

void InferenceServer::describe(inference::ServerMetadataResponse* reply) const {
  reply->set_name("teletensor");
  reply->set_version(kVersion);
  for (const char* extension : kExtensions) reply->add_extensions(extension);
  if (options_.shared_memory) reply->add_extensions("system_shared_memory");
}

absl::Status InferenceServer::describe(const Principal& caller, const inference::ModelMetadataRequest& request,
                                       inference::ModelMetadataResponse* reply) const {
  const auto version = find(caller, request.name(), request.version());
  if (!version.ok()) return version.status();
  reply->set_name((*version)->name());
  for (const int64_t number : repository_.versions(request.name())) reply->add_versions(std::to_string(number));
  reply->set_platform((*version)->file().platform);
  describe_ports(**version, (*version)->request_inputs(), reply->mutable_inputs());
  describe_ports(**version, (*version)->response_outputs(), reply->mutable_outputs());
  return absl::OkStatus();
}

absl::Status InferenceServer::describe(const Principal& caller, const inference::ModelConfigRequest& request,
                                       inference::ModelConfigResponse* reply) const {
  const auto version = find(caller, request.name(), request.version());
  if (!version.ok()) return version.status();
  *reply->mutable_config() = (*version)->config();
  return absl::OkStatus();
}

absl::Status InferenceServer::describe(const Principal& caller, const inference::ModelStatisticsRequest& request,
                                       inference::ModelStatisticsResponse* reply) const {
  std::vector<std::shared_ptr<ModelVersion>> versions;
  if (!request.name().empty() && !request.version().empty()) {
    auto version = find(caller, request.name(), request.version());
    if (!version.ok()) return version.status();
    versions.push_back(*std::move(version));
  } else {
    if (!request.name().empty()) {
      if (auto version = find(caller, request.name(), ""); !version.ok()) return version.status();
    }
    for (auto& version : repository_.all()) {
      const bool is_wanted = request.name().empty() || version->name() == request.name();
      const bool is_allowed = caller.role == Role::kOperator || version->allows(caller.name);
      if (is_wanted && is_allowed) versions.push_back(std::move(version));
    }
  }
  for (const auto& version : versions) {
    inference::ModelStatistics* wire = reply->add_model_stats();
    wire->set_name(version->name());
    wire->set_version(std::to_string(version->number()));
    version->statistics().describe(wire);
    inference::MemoryUsage* memory = wire->add_memory_usage();
    memory->set_type(version->model().options().device.type == DeviceType::kCPU ? "CPU" : "GPU");
    memory->set_id(version->model().options().device.index);
    memory->set_byte_size(version->held_bytes());
  }
  return absl::OkStatus();
}

absl::Status InferenceServer::describe(const Principal& caller, const inference::RepositoryIndexRequest& request,
                                       inference::RepositoryIndexResponse* reply) const {
  for (const ModelRepository::Entry& entry : repository_.index()) {
    if (request.ready() && !entry.ready) continue;
    if (caller.role != Role::kOperator && !entry.allows(caller.name)) continue;
    inference::RepositoryIndexResponse::ModelIndex* model = reply->add_models();
    model->set_name(entry.name);
    model->set_version(entry.version);
    model->set_state(entry.ready ? "READY" : "UNAVAILABLE");
    model->set_reason(entry.reason);
  }
  return absl::OkStatus();
}

absl::Status InferenceServer::load(const Principal& caller, const inference::RepositoryModelLoadRequest& request,
                                   ModelLoads::IsWanted is_wanted) {
  std::string config;
  for (const auto& [name, parameter] : request.parameters()) {
    if (name != "config" || parameter.parameter_choice_case() != inference::ModelRepositoryParameter::kStringParam) {
      return absl::UnimplementedError(absl::StrCat("[RepositoryModelLoad] expected the parameter config only, got '",
                                                   name.substr(0, 100),
                                                   "': files of a model are written to the repository's folder"));
    }
    config = parameter.string_param();
    if (config.size() > ModelSettings::kMaxBytes) {
      return absl::InvalidArgumentError(absl::StrCat("[RepositoryModelLoad] expected a configuration of at most ",
                                                     ModelSettings::kMaxBytes, " bytes"));
    }
  }
  return repository_.load(request.model_name(), config, caller.name, std::move(is_wanted));
}

absl::Status InferenceServer::unload(const Principal& caller, const inference::RepositoryModelUnloadRequest& request) {
  for (const auto& [name, parameter] : request.parameters()) {
    if (name == "unload_dependents") continue;  // a model has none
    return absl::InvalidArgumentError(
        absl::StrCat("[RepositoryModelUnload] expected no parameters, got '", name.substr(0, 100), "'"));
  }
  return repository_.unload(request.model_name(), caller.name);
}

absl::Status InferenceServer::describe(const Principal& caller,
                                       const inference::SystemSharedMemoryStatusRequest& request,
                                       inference::SystemSharedMemoryStatusResponse* reply) {
  if (!options_.shared_memory) return absl::OkStatus();  // there are no regions
  if (!request.name().empty()) {
    if (const auto region = regions_.find(caller.name, request.name()); !region.ok()) return region.status();
  }
  for (const auto& [name, region] : regions_.list(caller.name)) {
    if (!request.name().empty() && name != request.name()) continue;
    inference::SystemSharedMemoryStatusResponse::RegionStatus& wire = (*reply->mutable_regions())[name];
    wire.set_name(name);
    wire.set_key(region->key());
    wire.set_offset(region->offset());
    wire.set_byte_size(region->bytes());
  }
  return absl::OkStatus();
}

absl::Status InferenceServer::add(const Principal& caller, bool is_local,
                                  const inference::SystemSharedMemoryRegisterRequest& request) {
  if (!options_.shared_memory) return shared_memory_refused();
  if (!is_local) return absl::PermissionDeniedError("shared memory requires a client on the engine's host");
  return regions_.add(caller.name, request.name(), request.key(), request.offset(), request.byte_size());
}

absl::Status InferenceServer::remove(const Principal& caller,
                                     const inference::SystemSharedMemoryUnregisterRequest& request) {
  if (options_.shared_memory) regions_.remove(caller.name, request.name());
  return absl::OkStatus();
}

absl::Status InferenceServer::describe(const inference::TraceSettingRequest& request,
                                       inference::TraceSettingResponse* reply) const {
  for (const auto& [name, value] : request.settings()) {
    if (value.value_size() != 0) {
      return absl::UnimplementedError("[TraceSetting] spans are configured by the daemon's options --otlp*");
    }
  }
  (*reply->mutable_settings())["trace_level"].add_value("OFF");
  return absl::OkStatus();
}

absl::Status InferenceServer::describe(const inference::LogSettingsRequest& request,
                                       inference::LogSettingsResponse* reply) const {
  if (!request.settings().empty()) {
    return absl::UnimplementedError("[LogSettings] the log is configured by the daemon's options --log-*");
  }
  const auto logs = [](spdlog::level::level_enum level) { return spdlog::should_log(level); };
  const auto setting = [&](const std::string& name) -> auto& { return (*reply->mutable_settings())[name]; };
  setting("log_file").set_string_param("");
  setting("log_info").set_bool_param(logs(spdlog::level::info));
  setting("log_warning").set_bool_param(logs(spdlog::level::warn));
  setting("log_error").set_bool_param(logs(spdlog::level::err));
  setting("log_verbose_level").set_uint32_param(logs(spdlog::level::debug) ? 1 : 0);
  return absl::OkStatus();
}

absl::StatusOr<ModelShares::Place> InferenceServer::enter(const ModelVersion& version, const Principal& caller,
                                                          const InferRequest& request) {
  ModelShares& places = request.transport == Transport::kRest ? *rest_places_ : *grpc_places_;
  return places.enter(version.name(), charged_caller(caller, request.address));
}

absl::Status InferenceServer::infer(const Principal& caller, const inference::ModelInferRequest& request,
                                    InferRequest limits, inference::ModelInferResponse* reply,
                                    ModelShares::Place* place, absl::FunctionRef<absl::Status()> finish) {
  const auto version = find(caller, request.model_name(), request.model_version());
  if (!version.ok()) return version.status();
  absl::StatusOr<ModelShares::Place> entered = enter(**version, caller, limits);
  if (!entered.ok()) return entered.status();
  *place = *std::move(entered);
  const absl::StatusOr<Inflight> shared = begin_shared(caller, limits.address, request);
  if (!shared.ok()) return shared.status();
  if (absl::Status status = read_request_message(request, caller.name, regions(), &limits); !status.ok()) {
    return status;
  }
  if ((*version)->has_streams() && (*version)->entry() == nullptr) {
    return absl::UnimplementedError("[ModelInfer] the model generates its responses: use ModelStreamInfer");
  }
  return infer(**version, caller, request, std::move(limits), reply, finish);
}

absl::Status InferenceServer::infer(ModelVersion& version, const Principal& caller,
                                    const inference::ModelInferRequest& request, InferRequest limits,
                                    inference::ModelInferResponse* reply, absl::FunctionRef<absl::Status()> finish) {
  begin_reply(version, request, reply);
  // Without parameters, no output is written to shared memory.
  const bool has_places = std::any_of(request.outputs().begin(), request.outputs().end(),
                                      [](const auto& output) { return output.parameters_size() != 0; });
  if (has_places) {
    limits.reserve = [this, &caller, &request,
                      reserve = std::move(limits.reserve)](absl::Span<const InferOutput> outputs) -> absl::Status {
      const auto sent = response_outputs(request, caller.name, regions(), outputs);
      if (!sent.ok() || !reserve) return sent.status();
      return reserve(*sent);
    };
  }
  limits.accept = [this, &caller, &request, reply, &finish](const InferResult& result) {
    const absl::Status status = write_response_message(request, caller.name, regions(), result, reply);
    return status.ok() ? finish() : status;
  };
  return version.infer(limits).status();
}

absl::Status InferenceServer::stream(const Principal& caller, const inference::ModelInferRequest& request,
                                     InferRequest limits,
                                     absl::FunctionRef<bool(inference::ModelInferResponse*)> send) {
  const auto version = find(caller, request.model_name(), request.model_version());
  if (!version.ok()) return version.status();
  const absl::StatusOr<ModelShares::Place> place = enter(**version, caller, limits);
  if (!place.ok()) return place.status();
  const absl::StatusOr<Inflight> shared = begin_shared(caller, limits.address, request);
  if (!shared.ok()) return shared.status();
  if (absl::Status status = read_request_message(request, caller.name, regions(), &limits); !status.ok()) {
    return status;
  }
  if (!(*version)->has_streams()) {
    inference::ModelInferResponse reply;
    absl::Status status = infer(**version, caller, request, std::move(limits), &reply, [] { return absl::OkStatus(); });
    if (status.ok()) send(&reply);
    return status;
  }
  absl::Status written;
  const absl::Status status = (*version)->stream(limits, [&](InferResult result) {
    inference::ModelInferResponse reply;
    begin_reply(**version, request, &reply);
    written = write_response_message(request, caller.name, regions(), result, &reply);
    return written.ok() && send(&reply);
  });
  return written.ok() ? status : written;
}

}  // namespace tt::server
