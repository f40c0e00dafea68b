#include "server/serving/publish_model.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file_descriptor.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "formats/safetensors.h"
#include "server/serving/infer.h"
#include "server/serving/model_file.h"
#include "server/serving/owner.h"
#include "server/serving/served_model.h"
#include "server/serving/settings.h"

namespace tt::server {
namespace {

namespace fs = std::filesystem;
using teletensor::v1::PublishModelRequest;
using teletensor::v1::WithdrawModelRequest;

constexpr const char* kConfig = "config.json";
constexpr int64_t kMaxVersion = 1'000'000'000;

// A new file, which is complete on the disk after finish().
class NewFile {
 public:
  explicit NewFile(const fs::path& path)
      : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    check(static_cast<bool>(file_), "[serve] cannot create a file: ", std::strerror(errno));
  }
  void append(const void* data, size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = write(file_.get(), at, size);
      if (written < 0 && errno == EINTR) continue;
      check(written > 0, "[serve] cannot write a file: ", std::strerror(errno));
      at += written;
      size -= static_cast<size_t>(written);
    }
  }
  void finish() { check(fsync(file_.get()) == 0, "[serve] cannot write a file: ", std::strerror(errno)); }

 private:
  FileDescriptor file_;
};

void write_file(const fs::path& path, const std::string& text) {
  NewFile file(path);
  file.append(text.data(), text.size());
  file.finish();
}

void replace_file(const fs::path& path, const std::string& text) {
  const fs::path part = path.parent_path() / absl::StrCat(".new-", path.filename().native());
  std::error_code ignored;
  fs::remove(part, ignored);
  write_file(part, text);
  fs::rename(part, path);
}

// The numbers of a model's versions.
std::set<int64_t> versions_of(const fs::path& model) {
  std::set<int64_t> versions;
  std::error_code error;
  for (fs::directory_iterator each(model, error), end; !error && each != end; each.increment(error)) {
    int64_t number = 0;
    const std::string text = each->path().filename().native();
    if (absl::SimpleAtoi(text, &number) && number > 0 && std::to_string(number) == text) versions.insert(number);
  }
  return versions;
}

uint64_t bytes_of(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    std::error_code unreadable;
    if (each->is_regular_file(unreadable)) bytes += each->file_size(unreadable);
  }
  return bytes;
}

// The configuration, checked. If it restricts who may use the model, the caller may.
std::string config_for(const Principal& caller, const std::string& name, const std::string& json) {
  inference::ModelConfig config = parse_config(json);
  auto& parameters = *config.mutable_parameters();
  if (const auto found = parameters.find("principals"); found != parameters.end() && !caller.name.empty()) {
    found->second.set_string_value(absl::StrCat(found->second.string_value(), ",", caller.name));
  }
  settings_of(config, name);
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto status = google::protobuf::util::MessageToJsonString(config, &text, options);
  check(ErrorKind::kValue, status.ok(), "[serve] the configuration cannot be stored");
  return text;
}

// What an entry of the model reads, by name.
std::set<std::string> weights_of(const ModelFile& model) {
  std::set<std::string> names;
  for (const ModelEntry& entry : model.entries) names.insert(entry.weights.begin(), entry.weights.end());
  return names;
}

// Writes the tensors that the model reads.
void write_weights(const fs::path& path, const Publication& weights, const std::set<std::string>& names) {
  nlohmann::ordered_json header;
  std::vector<const PublishedTensor*> tensors;
  uint64_t end = 0;
  for (const PublishedTensor& tensor : weights.tensors) {
    if (!names.contains(tensor.key)) continue;
    const TensorMeta& meta = tensor.meta;
    const uint64_t begin = end;
    end += static_cast<uint64_t>(meta.numel()) * item_size(meta.dtype);
    header[tensor.key] = {{"dtype", safetensors_name(meta.dtype)},
                          {"shape", std::vector<int64_t>(meta.sizes.begin(), meta.sizes.end())},
                          {"data_offsets", {begin, end}}};
    tensors.push_back(&tensor);
  }
  check(ErrorKind::kValue, tensors.size() == names.size(), "[serve] expected the model's ", names.size(),
        " weights in the publication, found ", tensors.size());
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t size = text.size();
  NewFile file(path);
  file.append(&size, sizeof size);
  file.append(text.data(), text.size());
  Context context;
  const ContextScope scope(&context);
  for (const PublishedTensor* each : tensors) {
    Tensor tensor(new TensorImpl(each->meta, weights.storages.at(each->storage)));
    if (tensor.device().type != DeviceType::kCPU || !tensor.is_contiguous()) {
      const Tensor host = empty(tensor.sizes(), tensor.dtype(), Device());
      copy_into(host, tensor);
      context.finish_device_work();
      tensor = host;
    }
    if (tensor.numel() != 0)
      file.append(tensor.data(), static_cast<size_t>(tensor.numel()) * item_size(tensor.dtype()));
  }
  file.finish();
}

// Who has published the model; nothing if there is no such model. Throws Error (PermissionError) unless the caller may
// change it.
std::optional<std::string> owner_of(const Principal& caller, const fs::path& model) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(model, error))) return std::nullopt;
  const std::optional<std::string> owner = owner_of_model(model);
  const bool may = caller.role == Role::kOperator || (owner && *owner == caller.name);
  check(ErrorKind::kPermission, may, "[serve] a model of this name exists, and was not published by you");
  return owner.value_or("");
}

// A load that has ended early, with its status.
struct Ended {
  absl::Status status;
};

absl::Status status_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kPermission: return absl::PermissionDeniedError(error.message());
    case ErrorKind::kValue:
    case ErrorKind::kType: return absl::InvalidArgumentError(error.message());
    case ErrorKind::kFileNotFound: return absl::NotFoundError(error.message());
    case ErrorKind::kOutOfMemory: return absl::ResourceExhaustedError(error.message());
    case ErrorKind::kNotImplemented: return absl::UnimplementedError(error.message());
    default: return absl::InternalError(error.message());
  }
}

}  // namespace

void ModelPublisher::check_limits(const Principal& caller, const std::string& name, uint64_t bytes) const {
  if (caller.role == Role::kOperator) return;
  std::set<std::string> models;
  std::error_code error;
  for (fs::directory_iterator each(folder_, error), end; !error && each != end; each.increment(error)) {
    const std::string other = each->path().filename().native();
    if (other.starts_with(kPart) || owner_of_model(each->path()) != caller.name) continue;
    if (other != name) models.insert(other);
    bytes += bytes_of(each->path());
  }
  for (const Part& part : parts_) {
    if (part.principal != caller.name) continue;
    if (part.name != name) models.insert(part.name);
    bytes += part.bytes;
  }
  check(ErrorKind::kOutOfMemory, models.size() < kMaxModels, "[serve] expected at most ", kMaxModels,
        " published models of a principal");
  check(ErrorKind::kOutOfMemory, bytes <= kMaxBytes, "[serve] expected published models of at most ", kMaxBytes,
        " bytes of a principal, got ", bytes);
}

std::list<ModelPublisher::Part>::iterator ModelPublisher::reserve(const Principal& caller,
                                                                  const PublishModelRequest& request, uint64_t bytes) {
  const std::string& name = request.name();
  MutexLock lock(mutex_);
  owner_of(caller, folder_ / name);
  std::set<int64_t> versions = versions_of(folder_ / name);
  for (const Part& part : parts_) {
    if (part.name != name) continue;
    check(ErrorKind::kPermission, caller.role == Role::kOperator || part.principal == caller.name,
          "[serve] a model of this name is being published by another principal");
    versions.insert(part.version);
  }
  const int64_t version = request.version() != 0 ? request.version() : (versions.empty() ? 1 : *versions.rbegin() + 1);
  check(ErrorKind::kValue, !versions.contains(version), "[serve] version ", version, " of the model exists");
  check(ErrorKind::kOutOfMemory, versions.size() < kMaxVersions, "[serve] expected at most ", kMaxVersions,
        " versions of a model; withdraw some");
  check_limits(caller, name, bytes);
  fs::path folder = folder_ / absl::StrCat(kPart, getpid(), "-", ++last_part_);
  return parts_.insert(parts_.end(), {name, caller.name, version, bytes, std::move(folder)});
}

void ModelPublisher::install(const Principal& caller, const Part& part, const std::string& config) {
  MutexLock lock(mutex_);
  const fs::path model = folder_ / part.name;
  if (!owner_of(caller, model)) {
    fs::rename(part.folder, model);  // with its owner and its configuration
    return;
  }
  const std::string version = std::to_string(part.version);
  const std::optional<std::string> before = read_small(model / kConfig, ModelSettings::kMaxBytes);
  if (!config.empty()) replace_file(model / kConfig, config);
  std::error_code error;
  fs::rename(part.folder / version, model / version, error);
  if (!error) return;
  if (!config.empty() && before) replace_file(model / kConfig, *before);
  if (!config.empty() && !before) fs::remove(model / kConfig);
  fail(ErrorKind::kRuntime, "[serve] cannot move the version to the folder of its model: ", error.message());
}

int64_t ModelPublisher::add(const Principal& caller, const PublishModelRequest& request,
                            ModelLoads::IsWanted is_wanted) {
  Publications::check_name(request.name());
  check(ErrorKind::kValue, request.version() >= 0 && request.version() <= kMaxVersion,
        "[serve] expected a version from 1 to ", kMaxVersion, ", got ", request.version());
  const std::set<std::string> names = weights_of(parse_model(request.model()));
  const std::string config = request.config().empty() ? "" : config_for(caller, request.name(), request.config());
  std::shared_ptr<const Publication> weights;
  if (!names.empty()) weights = publications_.find({publications_.owner(caller)}, request.weights(), "");
  const auto part = reserve(caller, request, (weights ? weights->bytes() : 0) + request.model().size());
  const absl::Cleanup end = [&] {
    std::error_code ignored;
    fs::remove_all(part->folder, ignored);
    MutexLock lock(mutex_);
    parts_.erase(part);
  };
  const fs::path folder = part->folder / std::to_string(part->version);
  fs::create_directory(part->folder);
  fs::create_directory(folder);
  write_file(part->folder / kOwnerFile, caller.name);
  if (!config.empty()) write_file(part->folder / kConfig, config);
  if (weights) write_weights(folder / ServedModel::kWeights, *weights, names);
  write_file(folder / ServedModel::kDescription, request.model());
  const ModelRepository::NewVersion version{
      .name = part->name,
      .number = part->version,
      .folder = folder,
      .config = config.empty() ? std::nullopt : std::make_optional(config),
      .owner = owner_of(caller, folder_ / part->name).value_or(caller.name),
      .principal = caller.name,
      .share = caller.share,
  };
  const absl::Status status = repository_.add(
      version, [&] { install(caller, *part, config); }, std::move(is_wanted));
  if (absl::IsCancelled(status) || absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) throw Ended{status};
  check(ErrorKind::kValue, status.ok(), "[serve] the model cannot be loaded: ", status.message());
  return part->version;
}

void ModelPublisher::remove(const Principal& caller, const WithdrawModelRequest& request) {
  Publications::check_name(request.name());
  const fs::path model = folder_ / request.name();
  {
    MutexLock lock(mutex_);
    const std::optional<std::string> owner = owner_of(caller, model);
    const std::set<int64_t> versions = owner ? versions_of(model) : std::set<int64_t>();
    check(ErrorKind::kFileNotFound, owner && (request.version() == 0 || versions.contains(request.version())),
          "[serve] there is no such model or version");
    if (request.version() == 0 || versions.size() == 1) {
      fs::remove_all(model);
      repository_.remove(request.name(), caller.name);
      return;
    }
    fs::remove_all(model / std::to_string(request.version()));
  }
  // To the end, also if the caller does not wait: the version's files are gone.
  const absl::Status status = repository_.load(request.name(), "", caller.name);
  if (absl::IsCancelled(status) || absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) throw Ended{status};
  check(status.ok(), "[serve] ", status.message());
}

void ModelPublisher::remove_parts() const {
  std::error_code error;
  for (fs::directory_iterator each(folder_, error), end; !error && each != end; each.increment(error)) {
    const std::string file = each->path().filename();
    absl::string_view name = file;
    pid_t process = 0;
    if (!absl::ConsumePrefix(&name, kPart) || !absl::SimpleAtoi(name.substr(0, name.find('-')), &process)) continue;
    std::error_code ignored;
    if (process == getpid() || kill(process, 0) != 0) fs::remove_all(each->path(), ignored);
  }
}

// Returns the result of `change`, or the status of its exception.
template <typename Change>
static auto guarded(Change change) -> absl::StatusOr<decltype(change())> {
  try {
    return change();
  } catch (const Error& error) {
    return status_of(error);
  } catch (const Ended& ended) {
    return ended.status;
  } catch (const fs::filesystem_error& error) {
    return absl::InternalError(absl::StrCat("[serve] the repository's folder: ", error.code().message()));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("[serve] internal error: ", error.what()));
  }
}

absl::StatusOr<int64_t> ModelPublisher::publish(const Principal& caller, const PublishModelRequest& request,
                                                ModelLoads::IsWanted is_wanted) {
  return guarded([&] { return add(caller, request, std::move(is_wanted)); });
}

absl::Status ModelPublisher::withdraw(const Principal& caller, const WithdrawModelRequest& request) {
  const auto end = [&] {
    remove(caller, request);
    return true;
  };
  return guarded(end).status();
}

}  // namespace tt::server
