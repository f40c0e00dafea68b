#include "server/serving/rest.h"

#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/text.h"
#include "server/serving/rest_infer.h"
#include "server/serving/rest_json.h"

namespace tt::server {
namespace {

using nlohmann::json;
using Right = InferenceServer::Right;

int http_status(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return 200;
    case absl::StatusCode::kInvalidArgument: return 400;
    case absl::StatusCode::kUnauthenticated: return 401;
    case absl::StatusCode::kPermissionDenied: return 403;
    case absl::StatusCode::kNotFound: return 404;
    case absl::StatusCode::kAlreadyExists: return 409;
    case absl::StatusCode::kOutOfRange: return 413;
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

// Replaces the body by the compressed one, which is charged meanwhile; does nothing if there is no room for it, because
// the inference has been done.
void compress(InferenceServer& server, ContentCoding coding, RestResponse* response) {
  const auto inflight = server.begin(compressed_bound(response->body.size()));
  if (!inflight.ok()) return;
  std::string body = compressed(coding, response->body);
  if (body.empty()) return;  // memory is exhausted
  response->body = std::move(body);
  response->coding = coding;
}

RestResponse answer_model(InferenceServer& server, const Principal& caller, const RestRequest& request,
                          const ModelPath& path) {
  const bool is_post = request.method == "POST";
  if (path.action == "infer" && is_post) {
    RestResponse response = answer_infer(server, caller, request, path.model, path.version);
    if (request.accepts != ContentCoding::kIdentity) compress(server, request.accepts, &response);
    response.charged.shrink(response.body.size());
    return response;
  }
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
      if (!model.reason().empty()) each["reason"] = printable(model.reason());
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
    require_ok(server.load(caller, wire, [&] { return !request.is_cancelled || !request.is_cancelled(); }));
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

// Answers a request with a compressed body, whose contents are charged while it is in progress.
RestResponse answer_compressed(InferenceServer& server, const Principal& caller, const RestRequest& request) {
  InferenceServer::Inflight charged;
  const auto body = server.decompress(request.coding, {request.body}, server.options().request_bytes, &charged);
  require_ok(body.status());
  RestRequest plain = request;
  plain.coding = ContentCoding::kIdentity;
  plain.body = *body;
  plain.contents = &charged;
  return answer(server, caller, plain);
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
    const bool has_body = request.method == "POST" || !request.body.empty();
    return request.coding == ContentCoding::kIdentity || !has_body ? answer(server, *caller, request)
                                                                   : answer_compressed(server, *caller, request);
  } catch (const Refused& refused) {
    return error_response(refused.status);
  } catch (const std::exception&) {
    return error_response(absl::InternalError("internal error"));
  }
}

}  // namespace tt::server
