// ModelPublisher: models that principals publish from their sessions, as versions in the repository's folder.
//
// The weights are a publication of the caller (server/session/publications.h): their bytes go from the engine's memory
// to the folder, without passing a client. A published model belongs to the principal in its file `.owner`, who alone,
// besides operators, may add or remove its versions. Models that others have put in the folder have no owner, and only
// operators may add to them. What a principal has published is limited in number and bytes. It remains after a restart.
// A new version's files are in a folder of their own, whose name begins with kPart, until it is loaded and warmed up,
// so that an unfinished version is never served. Thread-safe; functions wait for the disk, and for models to be loaded,
// while `is_wanted` returns true (model_loads.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/serving/repository.h"
#include "server/session/principal.h"
#include "server/session/publications.h"
#include "teletensor/v1/model.pb.h"

namespace tt::server {

class ModelPublisher {
 public:
  // Per principal that is no operator.
  static constexpr size_t kMaxModels = 64, kMaxVersions = 64;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 30;

  // The references outlive the object. `folder` is the repository's.
  ModelPublisher(ModelRepository& repository, Publications& publications, std::filesystem::path folder)
      : repository_(repository), publications_(publications), folder_(std::move(folder)) {
    remove_parts();
  }

  // INVALID_ARGUMENT if the request is malformed, PERMISSION_DENIED if the model belongs to somebody else,
  // ALREADY_EXISTS if the version exists, RESOURCE_EXHAUSTED if a limit would be exceeded, else what loading returns.
  absl::StatusOr<int64_t> publish(const Principal& caller, const teletensor::v1::PublishModelRequest& request,
                                  ModelLoads::IsWanted is_wanted);
  absl::Status withdraw(const Principal& caller, const teletensor::v1::WithdrawModelRequest& request);

 private:
  static constexpr const char* kPart = ".new-";
  // A version that is being published.
  struct Part {
    std::string name, principal;
    int64_t version = 0;
    uint64_t bytes = 0;
    std::filesystem::path folder;
  };

  // Throw Error.
  int64_t add(const Principal& caller, const teletensor::v1::PublishModelRequest& request,
              ModelLoads::IsWanted is_wanted) ABSL_LOCKS_EXCLUDED(mutex_);
  void remove(const Principal& caller, const teletensor::v1::WithdrawModelRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  // Chooses the version's number, and reserves it and its bytes until the part is erased from parts_.
  std::list<Part>::iterator reserve(const Principal& caller, const teletensor::v1::PublishModelRequest& request,
                                    uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves a part's files to the model's folder. `config`: its new configuration; empty: none.
  void install(const Principal& caller, const Part& part, const std::string& config) ABSL_LOCKS_EXCLUDED(mutex_);
  void check_limits(const Principal& caller, const std::string& name, uint64_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the folders of parts whose process has ended.
  void remove_parts() const;

  ModelRepository& repository_;
  Publications& publications_;
  const std::filesystem::path folder_;
  Mutex mutex_;  // held while versions are chosen, moved into the folder and removed from it
  std::list<Part> parts_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_part_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tt::server
