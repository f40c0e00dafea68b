// InferenceServer: the calls of the Open Inference Protocol, independent of the transport.
//
// The gRPC service and the HTTP listener check who calls, convert, and use it. Messages are untrusted. Functions return
// NOT_FOUND for unknown models, UNAVAILABLE for those that are not loaded, and INVALID_ARGUMENT for what a request has
// wrong. A model that the caller may not use is reported as one that does not exist. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/rpc/auth.h"
#include "server/serving/content_coding.h"
#include "server/serving/infer.h"
#include "server/serving/inflight.h"
#include "server/serving/model_shares.h"
#include "server/serving/repository.h"
#include "server/serving/shared_regions.h"

namespace tt::server {

class InferenceServer {
 public:
  struct Options {
    bool open = false;                            // inference requires no token
    bool shared_memory = false;                   // clients on this host may register shared memory
    uint64_t request_bytes = uint64_t{64} << 20;  // of a request
    uint64_t inflight_bytes = uint64_t{1} << 30;  // of all requests in progress
    // Until a response of a stream is accepted by its client's window; later the stream is ended.
    std::chrono::milliseconds send_timeout{60'000};
  };
  // Requests that a transport can have in progress, of one address half as many: CallAdmission's calls, and the
  // connections of the HTTP listener.
  static constexpr size_t kGrpcPlaces = 512, kRestPlaces = 1024;
  // All references outlive the object.
  InferenceServer(ModelRepository& repository, const Auth& auth, const Options& options)
      : repository_(repository),
        auth_(auth),
        options_(options),
        inflight_(std::make_shared<InflightBytes>(options.inflight_bytes)),
        grpc_places_(std::make_shared<ModelShares>(kGrpcPlaces, kGrpcPlaces / 2)),
        rest_places_(std::make_shared<ModelShares>(kRestPlaces, kRestPlaces / 2)) {}

  const Options& options() const { return options_; }
  ModelRepository& repository() { return repository_; }
  const ModelRepository& repository() const { return repository_; }
  // Null if shared memory is not allowed.
  SharedRegions* regions() { return options_.shared_memory ? &regions_ : nullptr; }

  // What a call needs: nothing (probes), a user's or operator's token unless the server is open, or an operator's.
  enum class Right { kNone, kInfer, kManage };
  absl::StatusOr<Principal> caller(const Auth::Credentials& credentials, Right right) const;

  using Inflight = tt::server::Inflight;
  // What an answer keeps until it has been sent: the count of its memory, and the place of its request.
  struct Kept {
    Inflight charged;
    ModelShares::Place place;
  };
  // See InflightBytes.
  absl::StatusOr<Inflight> begin(uint64_t bytes, absl::string_view caller = "",
                                 InflightUse use = InflightUse::kAnswer) {
    return inflight_->begin(bytes, caller, use);
  }
  // A place for a stream over gRPC, which it needs also between its requests.
  absl::StatusOr<ModelShares::Place> begin_stream(const std::string& caller) { return grpc_places_->enter("", caller); }
  // Counts the memory of an answer to `caller` while `charged` exists, which is replaced. OUT_OF_RANGE if there would
  // be no room for it if it were alone, so that sending the request again is useless, else as begin(). `more` bytes are
  // the most that parts of unknown sizes take; they are counted as far as the whole is at most half of inflight_bytes.
  absl::Status begin_answer(uint64_t bytes, Inflight* charged, uint64_t more = 0, absl::string_view caller = "");
  // Who is charged for requests and answers: the principal, or without one the address.
  static std::string charged_caller(const Principal& caller, absl::string_view address);

  // A request's bytes, at most `max_bytes`, of which `parts` are the compressed form. They are counted while `charged`
  // exists, which is replaced. OUT_OF_RANGE if they are more, INVALID_ARGUMENT if they are damaged.
  absl::StatusOr<std::string> decompress(ContentCoding coding, absl::Span<const absl::string_view> parts,
                                         uint64_t max_bytes, Inflight* charged);

  absl::StatusOr<std::shared_ptr<ModelVersion>> find(const Principal& caller, const std::string& name,
                                                     const std::string& version) const;
  bool ready() const { return repository_.ready(); }
  // Whether a model is ready; no error if it does not exist.
  bool ready(const Principal& caller, const std::string& name, const std::string& version) const;
  void describe(inference::ServerMetadataResponse* reply) const;
  absl::Status describe(const Principal& caller, const inference::ModelMetadataRequest& request,
                        inference::ModelMetadataResponse* reply) const;
  absl::Status describe(const Principal& caller, const inference::ModelConfigRequest& request,
                        inference::ModelConfigResponse* reply) const;
  absl::Status describe(const Principal& caller, const inference::ModelStatisticsRequest& request,
                        inference::ModelStatisticsResponse* reply) const;
  absl::Status describe(const Principal& caller, const inference::RepositoryIndexRequest& request,
                        inference::RepositoryIndexResponse* reply) const;
  // Waits while `is_wanted` returns true (model_loads.h).
  absl::Status load(const Principal& caller, const inference::RepositoryModelLoadRequest& request,
                    ModelLoads::IsWanted is_wanted);
  absl::Status unload(const Principal& caller, const inference::RepositoryModelUnloadRequest& request);
  absl::Status describe(const Principal& caller, const inference::SystemSharedMemoryStatusRequest& request,
                        inference::SystemSharedMemoryStatusResponse* reply);
  // `is_local`: the caller is on this host.
  absl::Status add(const Principal& caller, bool is_local, const inference::SystemSharedMemoryRegisterRequest& request);
  absl::Status remove(const Principal& caller, const inference::SystemSharedMemoryUnregisterRequest& request);
  // Settings are those of the daemon's options: they can be read, but not changed.
  absl::Status describe(const inference::TraceSettingRequest& request, inference::TraceSettingResponse* reply) const;
  absl::Status describe(const inference::LogSettingsRequest& request, inference::LogSettingsResponse* reply) const;

  // Runs a request. `limits` has when the request's time ends, and how memory for the answer is reserved: of outputs
  // that the reply contains, not of those in shared memory. The rest is read from `request`. `place` gets the request's
  // place among those of its transport, which should be kept until the answer has been sent. `finish` is called when
  // the reply is complete, before the states of a sequence change: an error ends the request, and the states stay as
  // they were. It must not throw.
  absl::Status infer(
      const Principal& caller, const inference::ModelInferRequest& request, InferRequest limits,
      inference::ModelInferResponse* reply, ModelShares::Place* place,
      absl::FunctionRef<absl::Status()> finish = [] { return absl::OkStatus(); });
  // The same for a model with any number of responses: calls `send` for each, which may move from it. Memory is
  // reserved for models with one response.
  absl::Status stream(const Principal& caller, const inference::ModelInferRequest& request, InferRequest limits,
                      absl::FunctionRef<bool(inference::ModelInferResponse*)> send);

 private:
  // The same for a request that has been read into `limits`.
  absl::Status infer(ModelVersion& version, const Principal& caller, const inference::ModelInferRequest& request,
                     InferRequest limits, inference::ModelInferResponse* reply,
                     absl::FunctionRef<absl::Status()> finish);
  // A place for a request among those of its transport.
  absl::StatusOr<ModelShares::Place> enter(const ModelVersion& version, const Principal& caller,
                                           const InferRequest& request);
  // As begin(), for what a request's inputs have in shared memory.
  absl::StatusOr<Inflight> begin_shared(const Principal& caller, const std::string& address,
                                        const inference::ModelInferRequest& request);

  ModelRepository& repository_;
  const Auth& auth_;
  const Options options_;
  SharedRegions regions_;
  const std::shared_ptr<InflightBytes> inflight_;
  const std::shared_ptr<ModelShares> grpc_places_, rest_places_;
};

}  // namespace tt::server
