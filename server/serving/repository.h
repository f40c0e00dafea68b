// ModelRepository: the models of a folder, and which of their versions are served.
//
//   DIR/NAME/VERSION/{program.pb, model.safetensors}   a native model, or a file to be converted (model_converter.h)
//   DIR/NAME/config.json or config.pbtxt               optional (settings.h)
//
// One thread reads the folder at the start and, if it is asked to, every few seconds. A version whose files have
// changed is loaded and warmed up beside the one that serves, and takes its place once it is ready; requests in
// progress end with the one they began with, whose memory is freed after the last. A version that fails to load changes
// nothing but the reason in the index; it is tried again when its files change. Thread-safe. Files are untrusted.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/audit.h"
#include "server/serving/model_converter.h"
#include "server/serving/model_version.h"

namespace tt::server {

class ModelRepository {
 public:
  struct Options {
    std::filesystem::path folder;
    std::chrono::milliseconds poll{0};  // 0: models are loaded at the start and by load()
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
  // Whether every model that was there at the start is loaded or has failed.
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
  // configuration until the next load(); empty: none does. Waits. `principal` is for the audit log.
  absl::Status load(const std::string& name, const std::string& config, const std::string& principal);
  // Whether the index shows the model to a principal, by its newest valid configuration. True if there is no such
  // model.
  bool allows(const std::string& principal, const std::string& name) const;
  // Forgets a model whose folder is being removed; requests in progress continue.
  void remove(const std::string& name, const std::string& principal);
  // Requests in progress continue.
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
  };
  // What the folder has of a model.
  struct Found {
    std::string config;                       // fingerprint
    std::map<int64_t, std::string> versions;  // fingerprints
  };

  void run();
  std::map<std::string, Found> read_folder() const;
  std::optional<Found> read_model(const std::string& name) const;
  // Loads and drops versions of a model until they are those of the folder. Returns the first failure.
  absl::Status update(const std::string& name, const std::optional<Found>& found) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status update_version(const std::string& name, int64_t number, const std::string& fingerprint,
                              const ModelSettings& settings) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether any version of the model serves.
  bool serves(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // What a version of the model shares with others. A published model is charged to its owner, too.
  ModelVersion::Resources resources_of(const std::string& name) const;
  void record(const char* event, const std::string& name, const std::string& principal, const absl::Status& status,
              const std::string& reason) const;

  const Options options_;
  const ModelConverter converter_;
  Mutex loading_mutex_;  // held while versions are loaded; acquired before mutex_
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mutex_);
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tt::server
