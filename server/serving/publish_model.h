// ModelPublisher: models that principals publish from their sessions, as versions in the repository's folder.
//
// The weights are a publication of the caller (server/session/publications.h): their bytes go from the engine's memory
// to the folder, without passing a client. A published model belongs to the principal in its file `.owner`, who alone,
// besides operators, may add or remove its versions. Models that others have put in the folder have no owner, and only
// operators may add to them. What a principal has published is limited in number and bytes. It remains after a restart.
// Thread-safe; functions wait for the disk, and for models to be loaded.
#pragma once

#include <cstdint>
#include <filesystem>
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
      : repository_(repository), publications_(publications), folder_(std::move(folder)) {}

  // INVALID_ARGUMENT if the request is malformed, PERMISSION_DENIED if the model belongs to somebody else,
  // ALREADY_EXISTS if the version exists, RESOURCE_EXHAUSTED if a limit would be exceeded, else what loading returns.
  absl::StatusOr<int64_t> publish(const Principal& caller, const teletensor::v1::PublishModelRequest& request);
  absl::Status withdraw(const Principal& caller, const teletensor::v1::WithdrawModelRequest& request);

 private:
  // Throw Error.
  int64_t add(const Principal& caller, const teletensor::v1::PublishModelRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void remove(const Principal& caller, const teletensor::v1::WithdrawModelRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void check_limits(const Principal& caller, const std::string& name, uint64_t bytes) const;

  ModelRepository& repository_;
  Publications& publications_;
  const std::filesystem::path folder_;
  Mutex mutex_;  // held while the folder changes
};

}  // namespace tt::server
