// Inference: calls of the models that an engine serves, by the Open Inference Protocol. Needs no session.
//
// See docs/serving-python.md. `address`, `token` and the options for TLS are as those of Admin (client/admin.h).
#pragma once

#include <memory>
#include <string>

#include "client/connection/trust.h"
#include "inference/grpc_service.pb.h"
#include "teletensor/v1/model.pb.h"

namespace tt::client {

// Thread-safe. Calls share a connection, which the call after a failed one opens again. They wait for the engine, and
// throw Error: kValue for a request that the engine rejects, or a model that it does not have; kRuntime if it is
// overloaded or the model failed; kPermission; kConnection if it does not answer within the time.
class Inference {
 public:
  Inference(const std::string& address, const std::string& token, const TrustOptions& trust = {});
  ~Inference();
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  inference::ModelInferResponse infer(const inference::ModelInferRequest& request, double seconds) const;
  inference::ModelMetadataResponse metadata(const std::string& model, const std::string& version) const;
  inference::ModelConfigResponse config(const std::string& model, const std::string& version) const;
  inference::ModelStatisticsResponse statistics(const std::string& model, const std::string& version) const;
  inference::RepositoryIndexResponse index() const;
  // These wait until the model is loaded, or its requests have been answered, at most `seconds`.
  void load(const std::string& model, double seconds) const;
  void unload(const std::string& model, double seconds) const;
  // Adds a version of a model, whose weights are a publication of the caller; empty: there are none. Version 0: one
  // more than the largest. Returns the version, when it is ready. See v1::Models.
  int64_t publish(const teletensor::v1::PublishModelRequest& request, double seconds) const;
  // Version 0: all.
  void withdraw(const std::string& model, int64_t version, double seconds) const;
  const std::string& address() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt::client
