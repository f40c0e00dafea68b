#include "server/serving/repository.h"

#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/schema/error.h"
#include "server/log.h"
#include "server/serving/owner.h"
#include "server/text.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxReason = 1000;

bool is_model_name(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
         });
}

// Positive, without leading zeros.
std::optional<int64_t> version_of(absl::string_view text) {
  int64_t number = 0;
  if (text.empty() || text.size() > 18 || text[0] == '0' || !absl::ascii_isdigit(static_cast<unsigned char>(text[0])) ||
      !absl::SimpleAtoi(text, &number)) {
    return std::nullopt;
  }
  return number;
}

// A version that serves no more requests than those that it has, if there is one.
std::shared_ptr<ModelVersion> retired(std::shared_ptr<ModelVersion> version) {
  if (version) version->end_waiting_starts();
  return version;
}

// What shows that a file was replaced or written; empty if there is none.
std::string fingerprint_of(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  return absl::StrCat(path.filename().native(), ":", status.st_ino, ":", status.st_size, ":", status.st_mtim.tv_sec,
                      ".", status.st_mtim.tv_nsec, ";");
}

std::string fingerprint_of_all(const fs::path& folder) {
  std::vector<std::string> all;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    if (all.size() == ModelRepository::kMaxFiles) break;
    if (std::string file = fingerprint_of(each->path()); !file.empty()) all.push_back(std::move(file));
  }
  std::sort(all.begin(), all.end());
  std::string fingerprint;
  for (const std::string& file : all) fingerprint += file;
  return fingerprint;
}

// Names of a folder's files, for messages.
std::string names_in(const fs::path& folder) {
  constexpr size_t kMaxNames = 8;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    if (names.size() == kMaxNames) break;
    names.push_back(valid_utf8(each->path().filename().native(), kMaxNameBytes));
  }
  std::sort(names.begin(), names.end());
  return names.empty() ? "no file" : absl::StrJoin(names, ", ");
}

// Calls `load`, whatever it throws.
template <typename Load>
absl::Status status_of(Load load) {
  try {
    load();
    return absl::OkStatus();
  } catch (const Error& error) {
    return absl::FailedPreconditionError(error.message().substr(0, kMaxReason));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("[model] internal error: ", std::string(error.what()).substr(0, 200)));
  }
}

}  // namespace

ModelRepository::ModelRepository(Options options) : options_(std::move(options)), converter_(options_.converter) {}

ModelRepository::~ModelRepository() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void ModelRepository::start() {
  thread_ = std::thread([this] { run(); });
}

bool ModelRepository::ready() const {
  MutexLock lock(mutex_);
  return ready_;
}

void ModelRepository::run() {
  for (;;) {
    for (const auto& [name, found] : read_folder()) {
      {
        MutexLock lock(mutex_);
        if (stopping_) return;
        // Without polling, a model is read once.
        if (ready_ && options_.poll.count() == 0) continue;
      }
      MutexLock loading(loading_mutex_);
      update(name, found).IgnoreError();  // the index has the reason
    }
    // Models whose folders have been removed.
    std::vector<std::string> known;
    {
      MutexLock lock(mutex_);
      for (const auto& [name, model] : models_) known.push_back(name);
    }
    for (const std::string& name : known) {
      std::error_code error;
      if (fs::exists(options_.folder / name, error) || error) continue;
      MutexLock loading(loading_mutex_);
      update(name, std::nullopt).IgnoreError();
    }
    MutexLock lock(mutex_);
    ready_ = true;
    changed_.notify_all();
    if (stopping_ || options_.poll.count() == 0) return;
    changed_.wait_for(mutex_, options_.poll, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
    if (stopping_) return;
  }
}

std::map<std::string, ModelRepository::Found> ModelRepository::read_folder() const {
  std::map<std::string, Found> all;
  std::error_code error;
  for (fs::directory_iterator each(options_.folder, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().native();
    if (!is_model_name(name) || all.size() == kMaxModels) continue;
    if (std::optional<Found> found = read_model(name)) all[name] = *std::move(found);
  }
  if (error) {
    static LogLimit limit(1, std::chrono::seconds(60));
    limit.warn(absl::StrCat("cannot read the model repository ", options_.folder.native(), ": ", error.message()));
  }
  return all;
}

std::optional<ModelRepository::Found> ModelRepository::read_model(const std::string& name) const {
  std::error_code error;
  const fs::path folder = options_.folder / name;
  if (!fs::is_directory(folder, error)) return std::nullopt;
  Found found;
  found.config = fingerprint_of(folder / "config.json") + fingerprint_of(folder / "config.pbtxt");
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    const std::optional<int64_t> number = version_of(each->path().filename().native());
    std::error_code ignored;
    if (!number || !fs::is_directory(each->path(), ignored) || found.versions.size() == kMaxVersions) continue;
    found.versions[*number] = fingerprint_of_all(each->path());
  }
  return found;
}

void ModelRepository::record(const char* event, const std::string& name, const std::string& principal,
                             const absl::Status& status, const std::string& reason) const {
  if (options_.audit == nullptr) return;
  options_.audit->record({.event = event,
                          .principal = principal,
                          .outcome = status,
                          .reason = reason.empty() ? name : absl::StrCat(name, ": ", reason)});
}

absl::Status ModelRepository::update(const std::string& name, const std::optional<Found>& found) {
  std::optional<inference::ModelConfig> override;
  {
    MutexLock lock(mutex_);
    Model& model = models_[name];
    if (!model.is_wanted && found) return absl::OkStatus();
    override = model.override;
  }
  std::vector<std::shared_ptr<ModelVersion>> dropped;  // destroyed outside of the lock
  if (!found) {
    MutexLock lock(mutex_);
    for (auto& [number, slot] : models_[name].slots) dropped.push_back(retired(std::move(slot.serving)));
    models_.erase(name);
    spdlog::info("model {} was removed", name);
    return absl::OkStatus();
  }
  ModelSettings settings;
  const absl::Status configured = status_of(
      [&] { settings = override ? settings_of(*override, name) : read_settings(options_.folder / name, name); });
  {
    MutexLock lock(mutex_);
    Model& model = models_[name];
    const bool is_new = model.reason != configured.message();
    model.reason = std::string(configured.message());
    if (!configured.ok()) {
      if (is_new) spdlog::warn("model {} is not loaded: {}", name, model.reason);
      return configured;
    }
    model.principals = settings.principals;
  }
  std::vector<int64_t> numbers;
  for (const auto& [number, fingerprint] : found->versions) numbers.push_back(number);
  const std::vector<int64_t> served = settings.served(numbers);
  const auto fingerprint_of_version = [&](int64_t number) {
    return absl::StrCat(override ? override->SerializeAsString() : found->config, "|", found->versions.at(number));
  };
  absl::Status result;
  for (const int64_t number : served) {
    const absl::Status status = update_version(name, number, fingerprint_of_version(number), settings);
    if (result.ok()) result = status;
  }
  // The newest version that can be loaded, if those that were chosen cannot, as after a start.
  for (auto each = numbers.rbegin(); each != numbers.rend() && !settings.chooses_versions() && !serves(name); ++each) {
    if (std::find(served.begin(), served.end(), *each) != served.end()) continue;
    update_version(name, *each, fingerprint_of_version(*each), settings).IgnoreError();  // its slot has the reason
  }
  MutexLock lock(mutex_);
  Model& model = models_[name];
  if (model.slots.empty() && served.empty()) model.reason = "[model] expected a folder of a version, such as 1";
  // A version that is not served any more leaves when the others serve; if the newest one has failed, the one that
  // served before stays.
  const bool any = std::any_of(served.begin(), served.end(), [&](int64_t n) { return model.slots[n].serving; });
  for (auto each = model.slots.begin(); each != model.slots.end();) {
    const bool is_tried = each->second.serving || found->versions.contains(each->first);
    const bool stays =
        std::find(served.begin(), served.end(), each->first) != served.end() || (!any && !served.empty() && is_tried);
    if (!stays) dropped.push_back(retired(std::move(each->second.serving)));
    each = stays ? std::next(each) : model.slots.erase(each);
  }
  return result;
}

bool ModelRepository::serves(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto model = models_.find(name);
  return model != models_.end() && std::any_of(model->second.slots.begin(), model->second.slots.end(),
                                               [](const auto& slot) { return slot.second.serving != nullptr; });
}

ModelVersion::Resources ModelRepository::resources_of(const std::string& name) const {
  ModelVersion::Resources resources = options_.resources;
  const std::optional<std::string> owner = owner_of_model(options_.folder / name);
  if (!owner || !resources.quota_of) return resources;
  if (std::shared_ptr<Quota> quota = resources.quota_of(*owner)) {
    resources.quota = std::make_shared<Quota>(*owner, QuotaLimits{},
                                              std::vector<std::shared_ptr<Quota>>{resources.quota, std::move(quota)});
  }
  return resources;
}

absl::Status ModelRepository::update_version(const std::string& name, int64_t number, const std::string& fingerprint,
                                             const ModelSettings& settings) {
  {
    MutexLock lock(mutex_);
    const Slot& slot = models_[name].slots[number];
    if (slot.fingerprint == fingerprint) {
      return slot.reason.empty() ? absl::OkStatus() : absl::FailedPreconditionError(slot.reason);
    }
  }
  std::shared_ptr<ModelVersion> version;
  const fs::path folder = options_.folder / name / std::to_string(number);
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = status_of([&] {
    fs::path native = folder;
    std::error_code error;
    if (!fs::exists(folder / ServedModel::kDescription, error)) {
      const fs::path source = ModelConverter::find_source(folder);
      check(ErrorKind::kFileNotFound, !source.empty(), "[model] expected ", ServedModel::kDescription,
            ", or one .onnx or .pt2 file, in the folder ", name, "/", number, ", got ", names_in(folder));
      native = converter_.convert(source);
    }
    version = ModelVersion::load(native, name, number, settings, resources_of(name));
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const std::string label = absl::StrCat(name, "/", number);
  record("model.load", label, "", status, "");
  if (status.ok()) {
    spdlog::info("model {} serves, loaded in {:.2f} s", label, took.count());
  } else {
    spdlog::warn("model {} is not loaded: {}", label, std::string(status.message()));
  }
  {
    MutexLock lock(mutex_);
    Slot& slot = models_[name].slots[number];
    slot.fingerprint = fingerprint;
    slot.reason = std::string(status.message());
    if (status.ok()) std::swap(slot.serving, version);
  }
  if (status.ok()) retired(version);
  return status;  // the previous version is destroyed, unless requests still use it
}

absl::StatusOr<std::shared_ptr<ModelVersion>> ModelRepository::find(const std::string& name,
                                                                    const std::string& version) const {
  MutexLock lock(mutex_);
  if (stopped_) return absl::UnavailableError("the server is shutting down");
  const auto model = models_.find(name);
  if (model == models_.end()) {
    if (!ready_) return absl::UnavailableError("the models are being loaded");
    return absl::NotFoundError(absl::StrCat("expected the name of a model, got '", name.substr(0, kMaxNameBytes), "'"));
  }
  const auto reason_of = [&](const Slot* slot) {
    if (!model->second.is_wanted) return std::string("it was unloaded");
    return slot != nullptr && !slot->reason.empty() ? slot->reason : model->second.reason;
  };
  if (version.empty()) {
    for (auto slot = model->second.slots.rbegin(); slot != model->second.slots.rend(); ++slot) {
      if (slot->second.serving) return slot->second.serving;
    }
    const Slot* last = model->second.slots.empty() ? nullptr : &model->second.slots.rbegin()->second;
    return absl::UnavailableError(absl::StrCat("the model '", name, "' is not ready: ", reason_of(last)));
  }
  const std::optional<int64_t> number = version_of(version);
  const auto slot = number ? model->second.slots.find(*number) : model->second.slots.end();
  if (slot == model->second.slots.end()) {
    return absl::NotFoundError(
        absl::StrCat("expected a version of the model '", name, "', got '", version.substr(0, 20), "'"));
  }
  if (slot->second.serving) return slot->second.serving;
  return absl::UnavailableError(
      absl::StrCat("version ", version, " of the model '", name, "' is not ready: ", reason_of(&slot->second)));
}

void ModelRepository::stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  for (const auto& version : all()) version->stop();
}

std::vector<int64_t> ModelRepository::versions(const std::string& name) const {
  MutexLock lock(mutex_);
  std::vector<int64_t> numbers;
  const auto model = models_.find(name);
  if (model == models_.end()) return numbers;
  for (const auto& [number, slot] : model->second.slots) {
    if (slot.serving) numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::shared_ptr<ModelVersion>> ModelRepository::all() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<ModelVersion>> all;
  for (const auto& [name, model] : models_) {
    for (const auto& [number, slot] : model.slots) {
      if (slot.serving) all.push_back(slot.serving);
    }
  }
  return all;
}

std::vector<ModelRepository::Entry> ModelRepository::index() const {
  MutexLock lock(mutex_);
  std::vector<Entry> entries;
  for (const auto& [name, model] : models_) {
    if (model.slots.empty())
      entries.push_back({name, "", false, model.is_wanted ? model.reason : "unloaded", model.principals});
    for (const auto& [number, slot] : model.slots) {
      entries.push_back({name, std::to_string(number), slot.serving != nullptr,
                         slot.reason.empty() ? model.reason : slot.reason, model.principals});
    }
  }
  return entries;
}

absl::Status ModelRepository::load(const std::string& name, const std::string& config, const std::string& principal) {
  std::optional<inference::ModelConfig> override;
  if (!config.empty()) {
    const absl::Status parsed = status_of([&] { override = parse_config(config); });
    if (!parsed.ok()) return absl::InvalidArgumentError(parsed.message());
  }
  const std::optional<Found> found = is_model_name(name) ? read_model(name) : std::nullopt;
  if (!found) {
    return absl::NotFoundError(
        absl::StrCat("expected a folder of the repository, got the model '", name.substr(0, kMaxNameBytes), "'"));
  }
  MutexLock loading(loading_mutex_);
  {
    MutexLock lock(mutex_);
    if (!models_.contains(name) && models_.size() >= kMaxModels) {
      return absl::ResourceExhaustedError(absl::StrCat("expected at most ", kMaxModels, " models"));
    }
    Model& model = models_[name];
    model.is_wanted = true;
    model.override = std::move(override);
    for (auto& [number, slot] : model.slots) {
      if (!slot.reason.empty()) slot.fingerprint.clear();  // is tried again
    }
  }
  const absl::Status status = update(name, found);
  record("model.load_requested", name, principal, status, "");
  return status;
}

bool ModelRepository::Entry::allows(const std::string& principal) const {
  return principals.empty() || std::find(principals.begin(), principals.end(), principal) != principals.end();
}

bool ModelRepository::allows(const std::string& principal, const std::string& name) const {
  MutexLock lock(mutex_);
  const auto model = models_.find(name);
  return model == models_.end() || Entry{.principals = model->second.principals}.allows(principal);
}

void ModelRepository::remove(const std::string& name, const std::string& principal) {
  Model removed;  // destroyed outside of the lock
  MutexLock loading(loading_mutex_);
  MutexLock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) return;
  removed = std::move(model->second);
  models_.erase(model);
  for (const auto& [number, slot] : removed.slots) retired(slot.serving);
  lock.unlock();
  record("model.remove", name, principal, absl::OkStatus(), "");
  spdlog::info("model {} was removed", name);
}

absl::Status ModelRepository::unload(const std::string& name, const std::string& principal) {
  std::map<int64_t, Slot> dropped;  // destroyed outside of the lock
  MutexLock loading(loading_mutex_);
  MutexLock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) {
    return absl::NotFoundError(absl::StrCat("expected the name of a model, got '", name.substr(0, kMaxNameBytes), "'"));
  }
  model->second.is_wanted = false;
  dropped = std::move(model->second.slots);
  model->second.slots.clear();
  for (const auto& [number, slot] : dropped) retired(slot.serving);
  lock.unlock();
  record("model.unload", name, principal, absl::OkStatus(), "");
  spdlog::info("model {} was unloaded", name);
  return absl::OkStatus();
}

}  // namespace tt::server
