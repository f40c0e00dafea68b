#include "server/serving/repository.h"

#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "engine/schema/error.h"
#include "server/log.h"
#include "server/serving/owner.h"
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
    names.push_back(printable(each->path().filename().native(), kMaxNameBytes));
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

std::string ModelRepository::Found::fingerprint() const {
  std::string all = config;
  for (const auto& [number, files] : versions) absl::StrAppend(&all, "|", number, "=", files);
  return all;
}

ModelRepository::ModelRepository(Options options)
    : options_(std::move(options)),
      converter_(options_.converter),
      watch_(std::make_shared<CancelWatch>()),
      loads_(*watch_, options_.load_timeout, [this] {
        MutexLock lock(mutex_);
        changed_.notify_all();
      }) {}

ModelRepository::~ModelRepository() {
  loads_.stop();
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  std::list<Loader> loaders;
  {
    MutexLock lock(mutex_);
    loaders.swap(loaders_);
  }
  for (Loader& loader : loaders) loader.thread.join();
}

void ModelRepository::start() {
  thread_ = std::thread([this] { run(); });
}

bool ModelRepository::ready() const {
  MutexLock lock(mutex_);
  const auto slow = ModelLoads::Clock::now() - ModelLoads::kSlowLoad;
  return has_read_ &&
         std::none_of(waiting_.begin(), waiting_.end(), [](const auto& each) { return each.second.is_first; }) &&
         std::none_of(loaders_.begin(), loaders_.end(), [&](const Loader& loader) {
           return loader.is_first && !loader.has_ended && loader.since > slow;
         });
}

void ModelRepository::run() {
  auto next = ModelLoads::Clock::now();
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (ModelLoads::Clock::now() >= next && (!has_read_ || options_.poll.count() != 0)) {
      {
        MutexUnlock unlocked(mutex_);
        read_changes();
      }
      has_read_ = true;
      next = ModelLoads::Clock::now() + options_.poll;
      if (stopping_) return;
    }
    start_loads();
    if (waiting_.empty() && options_.poll.count() == 0) {
      changed_.wait(mutex_);
      continue;
    }
    // A load that becomes slow makes place for a model that waits.
    const auto again = ModelLoads::Clock::now() + std::chrono::seconds(1);
    changed_.wait_until(mutex_, options_.poll.count() == 0 ? again : waiting_.empty() ? next : std::min(next, again));
  }
}

void ModelRepository::read_changes() {
  std::map<std::string, Waiting> all;
  for (auto& [name, found] : read_folder()) all[name] = {std::move(found), owner_of(name)};
  std::vector<std::string> gone;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, model] : models_) {
      if (!all.contains(name)) gone.push_back(name);
    }
  }
  std::erase_if(gone, [&](const std::string& name) {
    std::error_code error;
    return fs::exists(options_.folder / name, error) || error;  // added since, or cannot be read
  });
  for (const std::string& name : gone) remove(name, "");
  MutexLock lock(mutex_);
  std::map<std::string, Waiting> before;
  before.swap(waiting_);
  for (auto& [name, waiting] : all) {
    const auto model = models_.find(name);
    if (model != models_.end() && (!model->second.is_wanted || model->second.tried == waiting.found.fingerprint())) {
      continue;
    }
    const auto old = before.find(name);
    waiting.is_first = has_read_ ? old != before.end() && old->second.is_first : !waiting.owner;
    waiting_[name] = std::move(waiting);
  }
}

void ModelRepository::start_loads() {
  for (auto each = loaders_.begin(); each != loaders_.end();) {
    if (each->has_ended) each->thread.join();
    each = each->has_ended ? loaders_.erase(each) : std::next(each);
  }
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const auto& [name, waiting] = *each;
    std::unique_ptr<ModelLoads::Load> load = loads_.try_begin(name, waiting.owner.value_or(""));
    if (!load) {
      ++each;
      continue;
    }
    Loader& loader = loaders_.emplace_back();
    loader.load = std::move(load);
    loader.is_first = waiting.is_first;
    loader.since = ModelLoads::Clock::now();
    try {
      loader.thread = std::thread([this, &loader, name = name] {
        // Read again: a version may have been published or removed while the model waited. The index has the reason.
        if (const std::optional<Found> found = read_model(name)) update(*loader.load, name, *found).IgnoreError();
        loader.load = nullptr;
        MutexLock lock(mutex_);
        loader.has_ended = true;
        changed_.notify_all();
      });
    } catch (const std::system_error& error) {
      spdlog::warn("model {} is not loaded yet: no thread: {}", name, error.what());
      load = std::move(loader.load);
      loaders_.pop_back();
      const MutexUnlock unlocked(mutex_);
      load = nullptr;
      return;
    }
    each = waiting_.erase(each);
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

std::optional<std::string> ModelRepository::owner_of(const std::string& name) const {
  try {
    return owner_of_model(options_.folder / name);
  } catch (const Error&) {  // the file is too large: nobody's
    return std::nullopt;
  }
}

ModelRepository::Model& ModelRepository::model_of(const std::string& name) {
  const auto [found, is_new] = models_.try_emplace(name);
  if (is_new) found->second.generation = ++generations_;
  return found->second;
}

ModelRepository::Model* ModelRepository::current(const std::string& name, uint64_t generation) {
  const auto found = models_.find(name);
  return found == models_.end() || found->second.generation != generation ? nullptr : &found->second;
}

absl::Status ModelRepository::update(ModelLoads::Load& load, const std::string& name, const Found& found) {
  const absl::Status ended = absl::CancelledError("[model] the model was unloaded or removed meanwhile");
  std::optional<inference::ModelConfig> override;
  uint64_t generation = 0;
  {
    MutexLock lock(mutex_);
    const Model& model = model_of(name);
    if (!model.is_wanted) return absl::OkStatus();
    override = model.override;
    generation = model.generation;
  }
  std::vector<std::shared_ptr<ModelVersion>> dropped;  // destroyed outside of the lock
  ModelSettings settings;
  const absl::Status configured = status_of(
      [&] { settings = override ? settings_of(*override, name) : read_settings(options_.folder / name, name); });
  {
    MutexLock lock(mutex_);
    Model* const model = current(name, generation);
    if (model == nullptr) return ended;
    const bool is_new = model->reason != configured.message();
    model->reason = std::string(configured.message());
    if (!configured.ok()) {
      model->tried = found.fingerprint();
      if (is_new) spdlog::warn("model {} is not loaded: {}", name, model->reason);
      return configured;
    }
    model->principals = settings.principals;
  }
  std::vector<int64_t> numbers;
  numbers.reserve(found.versions.size());
  for (const auto& [number, fingerprint] : found.versions) numbers.push_back(number);
  const std::vector<int64_t> served = settings.served(numbers);
  const auto fingerprint_of_version = [&](int64_t number) {
    return absl::StrCat(override ? override->SerializeAsString() : found.config, "|", found.versions.at(number));
  };
  absl::Status result;
  for (const int64_t number : served) {
    const absl::Status status =
        update_version(load, name, generation, number, fingerprint_of_version(number), settings);
    if (result.ok()) result = status;
  }
  // The newest version that can be loaded, if those that were chosen cannot, as after a start.
  for (auto each = numbers.rbegin(); each != numbers.rend() && !settings.chooses_versions() && !serves(name); ++each) {
    if (std::find(served.begin(), served.end(), *each) != served.end()) continue;
    // Its slot has the reason.
    update_version(load, name, generation, *each, fingerprint_of_version(*each), settings).IgnoreError();
  }
  MutexLock lock(mutex_);
  Model* const current_model = current(name, generation);
  if (current_model == nullptr) return ended;
  Model& model = *current_model;
  if (load.cancellation().reason() == CancelReason::kClient) return load.status();  // is tried again
  model.tried = found.fingerprint();
  if (model.slots.empty() && served.empty()) model.reason = "[model] expected a folder of a version, such as 1";
  // A version that is not served any more leaves when the others serve; if the newest one has failed, the one that
  // served before stays.
  const bool any = std::any_of(served.begin(), served.end(), [&](int64_t n) { return model.slots[n].serving; });
  for (auto each = model.slots.begin(); each != model.slots.end();) {
    const bool is_tried = each->second.serving || found.versions.contains(each->first);
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

ModelVersion::Resources ModelRepository::resources_of(const std::optional<std::string>& owner) const {
  ModelVersion::Resources resources = options_.resources;
  resources.watch = watch_;
  if (!owner || !resources.payer_of) return resources;
  auto [quota, share] = resources.payer_of(*owner);
  if (quota) {
    resources.quota = std::make_shared<Quota>(*owner, QuotaLimits{},
                                              std::vector<std::shared_ptr<Quota>>{resources.quota, std::move(quota)});
  }
  resources.warm_up_share = std::move(share);
  return resources;
}

std::shared_ptr<ModelVersion> ModelRepository::load_version(ModelLoads::Load& load, const std::string& name,
                                                            int64_t number, const fs::path& folder,
                                                            const ModelSettings& settings,
                                                            const ModelVersion::Resources& resources,
                                                            absl::Status* status) const {
  std::shared_ptr<ModelVersion> version;
  const CancellationScope cancellable(&load.cancellation());
  const auto begin = ModelLoads::Clock::now();
  *status = status_of([&] {
    fs::path native = folder;
    std::error_code error;
    if (!fs::exists(folder / ServedModel::kDescription, error)) {
      const fs::path source = ModelConverter::find_source(folder);
      check(ErrorKind::kFileNotFound, !source.empty(), "[model] expected ", ServedModel::kDescription,
            ", or one .onnx or .pt2 file, in the folder ", name, "/", number, ", got ", names_in(folder));
      native = converter_.convert(source);
    }
    version = ModelVersion::load(native, options_.folder / name, name, number, settings, resources);
  });
  if (absl::Status ended = load.status(); !ended.ok()) *status = std::move(ended);
  const std::chrono::duration<double> took = ModelLoads::Clock::now() - begin;
  const std::string label = absl::StrCat(name, "/", number);
  record("model.load", label, "", *status, "");
  if (status->ok()) {
    spdlog::info("model {} serves, loaded in {:.2f} s", label, took.count());
  } else {
    spdlog::warn("model {} is not loaded: {}", label, std::string(status->message()));
  }
  return status->ok() ? version : nullptr;
}

absl::Status ModelRepository::update_version(ModelLoads::Load& load, const std::string& name, uint64_t generation,
                                             int64_t number, const std::string& fingerprint,
                                             const ModelSettings& settings) {
  const absl::Status ended = absl::CancelledError("[model] the model was unloaded or removed meanwhile");
  {
    MutexLock lock(mutex_);
    Model* const model = current(name, generation);
    if (model == nullptr) return ended;
    const Slot& slot = model->slots[number];
    if (slot.fingerprint == fingerprint) {
      return slot.reason.empty() ? absl::OkStatus() : absl::FailedPreconditionError(slot.reason);
    }
  }
  absl::Status status;
  std::shared_ptr<ModelVersion> version =
      load_version(load, name, number, options_.folder / name / std::to_string(number), settings,
                   resources_of(owner_of(name)), &status);
  {
    MutexLock lock(mutex_);
    Model* const model = current(name, generation);
    if (model == nullptr) return ended;
    Slot& slot = model->slots[number];
    if (load.cancellation().reason() != CancelReason::kClient) slot.fingerprint = fingerprint;
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
    if (!has_read_ || waiting_.contains(name) || loads_.has(name))
      return absl::UnavailableError("the models are being loaded");
    return absl::NotFoundError(absl::StrCat("expected the name of a model, got '", name.substr(0, kMaxNameBytes), "'"));
  }
  const auto reason_of = [&](const Slot* slot) {
    if (!model->second.is_wanted) return std::string("it was unloaded");
    if (loads_.has(name)) return std::string("it is being loaded");
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
  loads_.stop();
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

absl::Status ModelRepository::check_room(const std::string& name) const {
  if (models_.contains(name) || models_.size() < kMaxModels) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("expected at most ", kMaxModels, " models"));
}

absl::Status ModelRepository::want(const std::string& name, std::optional<inference::ModelConfig> override) {
  if (const absl::Status room = check_room(name); !room.ok()) return room;
  Model& model = model_of(name);
  model.is_wanted = true;
  model.override = std::move(override);
  model.generation = ++generations_;
  for (auto& [number, slot] : model.slots) {
    if (!slot.reason.empty()) slot.fingerprint.clear();  // is tried again
  }
  return absl::OkStatus();
}

absl::Status ModelRepository::load(const std::string& name, const std::string& config, const std::string& principal,
                                   ModelLoads::IsWanted is_wanted) {
  std::optional<inference::ModelConfig> override;
  if (!config.empty()) {
    const absl::Status parsed = status_of([&] { override = parse_config(config); });
    if (!parsed.ok()) return absl::InvalidArgumentError(parsed.message());
  }
  if (!is_model_name(name) || !read_model(name)) {
    return absl::NotFoundError(
        absl::StrCat("expected a folder of the repository, got the model '", name.substr(0, kMaxNameBytes), "'"));
  }
  const auto update_it = [&]() -> absl::Status {
    auto load = loads_.begin(name, owner_of(name).value_or(""), std::move(is_wanted));
    if (!load.ok()) return load.status();
    const std::optional<Found> found = read_model(name);
    if (!found) return absl::NotFoundError(absl::StrCat("the folder of the model '", name, "' was removed"));
    {
      MutexLock lock(mutex_);
      if (absl::Status status = want(name, std::move(override)); !status.ok()) return status;
    }
    return update(**load, name, *found);
  };
  const absl::Status status = update_it();
  record("model.load_requested", name, principal, status, "");
  return status;
}

absl::Status ModelRepository::add(const NewVersion& version, absl::FunctionRef<void()> install,
                                  ModelLoads::IsWanted is_wanted) {
  const std::string& name = version.name;
  auto load = loads_.begin(name, version.owner, std::move(is_wanted));
  if (!load.ok()) return load.status();
  {
    MutexLock lock(mutex_);
    if (const absl::Status room = check_room(name); !room.ok()) return room;  // before the files are installed
  }
  const std::optional<Found> before = read_model(name);
  std::vector<int64_t> numbers;
  for (const auto& [number, files] : before ? before->versions : std::map<int64_t, std::string>()) {
    numbers.push_back(number);
  }
  numbers.insert(std::upper_bound(numbers.begin(), numbers.end(), version.number), version.number);
  ModelSettings settings;
  absl::Status status = status_of([&] {
    settings =
        version.config ? settings_of(parse_config(*version.config), name) : read_settings(options_.folder / name, name);
  });
  if (!status.ok()) return status;
  std::shared_ptr<ModelVersion> loaded;
  const std::vector<int64_t> served = settings.served(numbers);
  if (std::find(served.begin(), served.end(), version.number) != served.end()) {
    ModelVersion::Resources resources = resources_of(version.owner);
    if (version.share) resources.warm_up_share = version.share;
    loaded = load_version(**load, name, version.number, version.folder, settings, resources, &status);
    if (!status.ok()) return status;
  }
  if (status = status_of(install); !status.ok()) return status;
  const std::optional<Found> found = read_model(name);
  if (!found || !found->versions.contains(version.number)) {
    return absl::CancelledError("[model] the model was removed meanwhile");
  }
  Slot previous;  // destroyed outside of the lock
  {
    MutexLock lock(mutex_);
    // Set by remove() and unload() before they take the lock.
    if ((*load)->cancellation().reason() == CancelReason::kEnded) return (*load)->status();
    if (status = want(name, std::nullopt); !status.ok()) return status;
    if (loaded) {
      Slot now{std::move(loaded), absl::StrCat(found->config, "|", found->versions.at(version.number)), ""};
      previous = std::exchange(model_of(name).slots[version.number], std::move(now));
      retired(previous.serving);
    }
  }
  update(**load, name, *found).IgnoreError();  // the index has the reasons of other versions
  record("model.load_requested", name, version.principal, absl::OkStatus(), "");
  return absl::OkStatus();
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
  loads_.cancel(name);
  MutexLock lock(mutex_);
  waiting_.erase(name);
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
  loads_.cancel(name);
  MutexLock lock(mutex_);
  waiting_.erase(name);
  const auto model = models_.find(name);
  if (model == models_.end()) {
    return absl::NotFoundError(absl::StrCat("expected the name of a model, got '", name.substr(0, kMaxNameBytes), "'"));
  }
  model->second.is_wanted = false;
  model->second.generation = ++generations_;
  dropped = std::move(model->second.slots);
  model->second.slots.clear();
  for (const auto& [number, slot] : dropped) retired(slot.serving);
  lock.unlock();
  record("model.unload", name, principal, absl::OkStatus(), "");
  spdlog::info("model {} was unloaded", name);
  return absl::OkStatus();
}

}  // namespace tt::server
