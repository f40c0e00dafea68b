// EngineStatus: what the engine holds and does, as the Admin service and the HTTP listener report it. Of an engine with
// workers, what they report together; of one that places sessions in other engines, how loaded those are. Thread-safe.
#pragma once

#include <chrono>

#include "absl/status/statusor.h"
#include "server/admin/sampler.h"
#include "server/serving/repository.h"
#include "server/session/principal.h"
#include "server/session/sessions.h"
#include "server/workers/remote_engines.h"
#include "server/workers/workers.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::server {

class EngineStatus {
 public:
  // All must outlive the object. `workers` or `engines` serve the sessions; null: this process does. `models`: null if
  // the engine serves none.
  EngineStatus(const Sessions& sessions, const Sampler& sampler, const Workers* workers = nullptr,
               const RemoteEngines* engines = nullptr, const ModelRepository* models = nullptr)
      : sessions_(sessions), sampler_(sampler), workers_(workers), engines_(engines), models_(models) {}

  // With workers, waits for up to a second for those that do not answer.
  v1::StatusReply complete() const;
  // For a caller with the role user, omits what reveals the programs and principals of others.
  v1::StatusReply reply_to(const Principal& caller) const;
  // The samples of all sessions. FAILED_PRECONDITION if none are taken, UNAVAILABLE if a worker does not answer.
  absl::StatusOr<v1::ProfileReply> profile() const;
  // Null if the engine serves none.
  const ModelRepository* models() const { return models_; }

 private:
  const Sessions& sessions_;
  const Sampler& sampler_;
  const Workers* const workers_;
  const RemoteEngines* const engines_;
  const ModelRepository* const models_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace tt::server
