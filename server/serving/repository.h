// ModelRepository: the models of a folder, and which of their versions are served.
//
//   DIR/NAME/VERSION/{program.pb, model.safetensors}   a native model, or a file to be converted (model_converter.h)
//   DIR/NAME/config.json or config.pbtxt               optional (settings.h)
//
// One thread reads the folder at the start and, if it is asked to, every few seconds, and starts a thread for each
// model that has to be loaded (model_loads.h): no model delays another, and no lock is held while one is loaded. A
// version whose files have changed is loaded and warmed up beside the one that serves, and takes its place once it is
// ready; requests in progress end with the one they began with, whose memory is freed after the last. A version that
// fails to load changes nothing but the reason in the index; it is tried again when its files change. Thread-safe.
// Files are untrusted.
#pragma once

#include <chrono>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/audit.h"
#include "server/serving/model_converter.h"
#include "server/serving/model_loads.h"
#include "server/serving/model_version.h"

namespace tt::server {

class ModelRepository {
 public:
  struct Options {
    std::filesystem::path folder;
    std::chrono::milliseconds poll{0};                // 0: models are loaded at the start and by load()
    std::chrono::milliseconds load_timeout{600'000};  // of loading and warming up a model
    ModelConverter::Options converter;
    ModelVersion::Resources resources;
    AuditLog* audit = nullptr;  // records changes; null: does not; outlives this object
  };
  static constexpr size_t kMaxModels = 1024, kMaxVersions = 256, kMaxFiles = 4096;

  explicit ModelRepository(Options options);
  ~ModelRepository();
  ModelRepository(const ModelRepository&) = delete;
  ModelRepository& operator=(const ModelRepository&) = delete;

  // Starts loading. Call once.
  void start();
  // Whether every model that was there at the start is loaded or has failed. Models that principals have published, and
  // one that has been loading for ModelLoads::kSlowLoad, do not count: the others serve without them.
  bool ready() const;
  // Returns a version that serves: with an empty text, the one with the largest number. NOT_FOUND if there is no such
  // model or version, UNAVAILABLE with the reason if it is not loaded.
  absl::StatusOr<std::shared_ptr<ModelVersion>> find(const std::string& name, const std::string& version) const;
  // Refuses requests from now on, those that wait in queues too. Requests that run continue.
  void stop();
  // The numbers of a model's versions that serve, ascending.
  std::vector<int64_t> versions(const std::string& name) const;
  // All versions that serve.
  std::vector<std::shared_ptr<ModelVersion>> all() const;

  struct Entry {
    std::string name;
    std::string version;  // empty for a model without versions
    bool ready = false;
    std::string reason;                        // why it is not ready, or why its newest files are not
    std::vector<std::string> principals = {};  // who may use the model; empty: everybody
    bool allows(const std::string& principal) const;
  };
  std::vector<Entry> index() const;

  // Loads a model, or again if its files have changed, and serves it until unload(). `config` replaces the file's
  // configuration until the next load(); empty: none does. Waits, while `is_wanted` returns true (model_loads.h).
  // `principal` is for the audit log.
  absl::Status load(const std::string& name, const std::string& config, const std::string& principal,
                    ModelLoads::IsWanted is_wanted = {});
  // A version that is not in the repository's folder yet.
  struct NewVersion {
    std::string name;
    int64_t number = 0;
    std::filesystem::path folder;       // with its files
    std::optional<std::string> config;  // a new configuration of the model; null: that of its folder, if it has one
    std::string owner;                  // of the model
    std::string principal;              // for the audit log
    std::shared_ptr<Share> share;       // pays for warming it up; null: the models' share
  };
  // Loads the version and warms it up; then calls `install`, which moves its files to their place and may throw Error,
  // and serves it. A version that cannot be loaded leaves no trace. Waits as load() does.
  absl::Status add(const NewVersion& version, absl::FunctionRef<void()> install, ModelLoads::IsWanted is_wanted);
  // Whether the index shows the model to a principal, by its newest valid configuration. True if there is no such
  // model.
  bool allows(const std::string& principal, const std::string& name) const;
  // Forgets a model whose folder is being removed, and ends its load; requests in progress continue.
  void remove(const std::string& name, const std::string& principal);
  // Requests in progress continue; a load ends.
  absl::Status unload(const std::string& name, const std::string& principal);

 private:
  struct Slot {
    std::shared_ptr<ModelVersion> serving;  // null: none
    std::string fingerprint;                // of the files that were loaded, or have failed
    std::string reason;                     // empty: they were loaded
  };
  struct Model {
    bool is_wanted = true;
    std::optional<inference::ModelConfig> override;  // of load()
    std::string reason;                              // why the configuration is not used
    std::vector<std::string> principals;             // of the newest valid configuration
    std::map<int64_t, Slot> slots;
    std::string tried;        // fingerprint of the folder at the last update()
    uint64_t generation = 0;  // changes with load(), unload() and remove()
  };
  // What the folder has of a model.
  struct Found {
    std::string config;                       // fingerprint
    std::map<int64_t, std::string> versions;  // fingerprints
    std::string fingerprint() const;          // of all
  };
  // A model that has to be loaded.
  struct Waiting {
    Found found;
    std::optional<std::string> owner;
    bool is_first = false;  // was there at the start, and has no owner
  };
  // A thread that loads a model.
  struct Loader {
    std::thread thread;
    std::unique_ptr<ModelLoads::Load> load;  // used by the thread
    bool has_ended = false;
    bool is_first = false;
    ModelLoads::Clock::time_point since;
  };

  void run();
  // Queues the models of the folder that have changed, and drops those that are gone.
  void read_changes() ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts a thread for each queued model for which there is a place, and joins those that have ended.
  void start_loads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::map<std::string, Found> read_folder() const;
  std::optional<Found> read_model(const std::string& name) const;
  // Loads and drops versions of a model until they are those of the folder. Returns the first failure.
  absl::Status update(ModelLoads::Load& load, const std::string& name, const Found& found) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status update_version(ModelLoads::Load& load, const std::string& name, uint64_t generation, int64_t number,
                              const std::string& fingerprint, const ModelSettings& settings)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Converts the files of a version's folder if necessary, loads them, and warms the model up; null if that failed.
  std::shared_ptr<ModelVersion> load_version(ModelLoads::Load& load, const std::string& name, int64_t number,
                                             const std::filesystem::path& folder, const ModelSettings& settings,
                                             const ModelVersion::Resources& resources, absl::Status* status) const;
  // The model, which is added if it does not exist.
  Model& model_of(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null if the model was loaded, unloaded or removed by a call meanwhile.
  Model* current(const std::string& name, uint64_t generation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // RESOURCE_EXHAUSTED if there are kMaxModels others.
  absl::Status check_room(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Marks a model as wanted, with another configuration or none. Fails as check_room().
  absl::Status want(const std::string& name, std::optional<inference::ModelConfig> override)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether any version of the model serves.
  bool serves(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // What a version of the model shares with others. A model with an owner is charged to the owner, too.
  ModelVersion::Resources resources_of(const std::optional<std::string>& owner) const;
  // The owner of a model, by which its loads are counted; nothing if it has none or that cannot be read.
  std::optional<std::string> owner_of(const std::string& name) const;
  void record(const char* event, const std::string& name, const std::string& principal, const absl::Status& status,
              const std::string& reason) const;

  const Options options_;
  const ModelConverter converter_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by model
  std::list<Loader> loaders_ ABSL_GUARDED_BY(mutex_);
  uint64_t generations_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_read_ ABSL_GUARDED_BY(mutex_) = false;  // the folder, once
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  const std::shared_ptr<CancelWatch> watch_;  // of loads, and of the runs of all versions
  ModelLoads loads_;
  std::thread thread_;
};

}  // namespace tt::server
