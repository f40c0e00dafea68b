// ModelVersion: a version of a model that answers requests: a ServedModel with its instances, its scheduler, the states
// of its sequences, and its statistics.
//
// Shared by the repository and the requests in progress; the last one frees its memory. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine/device/cancellation.h"
#include "inference/grpc_service.pb.h"
#include "server/serving/cancel_watch.h"
#include "server/serving/classification.h"
#include "server/serving/infer.h"
#include "server/serving/scheduler/batcher.h"
#include "server/serving/sequence_ports.h"
#include "server/serving/served_model.h"
#include "server/serving/settings.h"
#include "server/serving/statistics.h"

namespace tt::server {

class ModelVersion {
 public:
  // What all models of an engine share.
  struct Resources {
    std::shared_ptr<Quota> quota = nullptr;  // limits the memory of all models together; null: none
    // What is charged, too, for a model that a principal has published: the quota for its memory, and the share for the
    // processors' time of its warm-up. Null: none. Empty: nobody has.
    std::function<std::pair<std::shared_ptr<Quota>, std::shared_ptr<Share>>(const std::string& principal)> payer_of =
        {};
    std::shared_ptr<FairQueues> queues = nullptr;
    std::shared_ptr<Share> share = nullptr;          // required with `queues`
    std::shared_ptr<Share> warm_up_share = nullptr;  // null: `share`
    std::shared_ptr<CancelWatch> watch = nullptr;    // ends runs whose callers do not wait any more; null: none end
    // Makes what answers requests of ModelStreamInfer with several responses, for a model whose attributes ask for it;
    // null: the model is not of that kind. Throws Error. Empty: no model is.
    std::function<std::unique_ptr<StreamingModel>(const std::shared_ptr<const ServedModel>& model,
                                                  const ModelSettings& settings)>
        make_streaming = {};
  };
  static constexpr size_t kMaxSequences = 4096, kMaxSequencesOfPrincipal = 1024;
  // Of a principal's requests with sequence_start that wait because there are as many sequences as the model may have,
  // and for how long, unless the request has a shorter timeout.
  static constexpr size_t kMaxWaitingStarts = 16;
  static constexpr std::chrono::seconds kMaxStartWait{60};

  // Loads the version `number` of the model `name` from the folder of its files, on all devices of the settings, and
  // runs it for warm-up, until the thread's work is cancelled. `model_folder` has the files of labels. Throws Error.
  static std::shared_ptr<ModelVersion> load(const std::filesystem::path& folder,
                                            const std::filesystem::path& model_folder, std::string name, int64_t number,
                                            ModelSettings settings, const Resources& resources);
  ~ModelVersion();

  // Runs the model once for a request, alone or with others. Waits. INVALID_ARGUMENT if the request does not suit the
  // model, else as Batcher::run().
  absl::StatusOr<InferResult> infer(const InferRequest& request);

  // The same for a model with several responses per request; others have one.
  absl::Status stream(const InferRequest& request, StreamingModel::Send send);
  bool has_streams() const { return streaming_ != nullptr; }
  // Null if requests have one response.
  const StreamingModel* streaming() const { return streaming_.get(); }

  // Refuses requests that have not begun.
  void stop() {
    end_waiting_starts();
    batcher_->stop();
  }
  // Refuses requests that wait until a sequence may begin: those of a version that gets no more requests, which would
  // end others. Requests that have a sequence are answered.
  void end_waiting_starts();

  const std::string& name() const { return name_; }
  int64_t number() const { return number_; }
  const ModelSettings& settings() const { return settings_; }
  const ModelFile& file() const { return models_[0]->file(); }
  const ServedModel& model() const { return *models_[0]; }
  // Null if the model has no entry for ModelInfer.
  const ModelEntry* entry() const { return entry_; }
  // Whether an input or output of the entry is BYTES for clients: the configuration calls it TYPE_STRING.
  bool is_string(const ModelPort& port) const { return strings_.contains(&port); }
  // The inputs of requests and the outputs of responses: those of the entry that sequences do not use.
  std::vector<const ModelPort*> request_inputs() const;
  std::vector<const ModelPort*> response_outputs() const;
  const ModelStatistics& statistics() const { return statistics_; }
  size_t queued() const { return batcher_->queued(); }
  size_t sequences() const;
  size_t starting() const;  // requests that wait until they may begin a sequence
  uint64_t held_bytes() const;
  // The configuration, completed by what the model's description says.
  inference::ModelConfig config() const;
  // Whether the principal may use the model.
  bool allows(const std::string& principal) const;

 private:
  struct Work;
  using SequenceKey = std::pair<std::string, std::string>;  // principal and name
  struct Sequence {
    // Of the entry, then those of sequence_ports_; used by the request for which is_busy is set.
    std::vector<Tensor> states;
    bool has_begun = false;  // a request has succeeded; used as `states`
    SequenceKey key;
    // Guarded by sequences_mutex_:
    bool is_busy = false;
    uint64_t starts = 0;  // requests with sequence_start that have succeeded
    std::chrono::steady_clock::time_point used;
    CondVar changed;  // for requests of the sequence
  };

  ModelVersion(std::string name, int64_t number, ModelSettings settings,
               std::vector<std::shared_ptr<const ServedModel>> models);
  void warm_up(std::shared_ptr<Share> share);
  // `folder` is the model's. Throws Error.
  void read_labels_of_outputs(const std::filesystem::path& folder);
  void warm_up_with(const inference::ModelWarmup& wire);
  // Runs the entry for inputs of zeros, with this size in dimensions that batches decide.
  void run_zeros(int64_t rows);
  absl::Status prepare(const InferRequest& request, Work* work) const;
  // The wanted outputs with their sizes, as the model describes them, or as they are after the run; none if the
  // description does not say it.
  std::optional<std::vector<InferOutput>> sized_outputs(const Work& work, bool has_run) const;
  const ClassLabels& labels_of(size_t output) const;
  // The answer to a request that has run, after the transport has reserved memory for it and accepted it. `reserved`
  // are the outputs for which it has.
  absl::StatusOr<InferResult> answer(const InferRequest& request, const Work& work,
                                     const std::optional<std::vector<InferOutput>>& reserved) const;
  size_t sequences_of(const std::string& principal) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequences_mutex_);
  // Whether a sequence may begin now: it exists, or there are fewer than the configuration allows, and no principal
  // with fewer sequences waits.
  bool has_place(const SequenceKey& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequences_mutex_);
  // Ends the sequence that was used least recently, of the principals with more than their share of those that the
  // configuration allows, for one with less. Null if there is none that has no request.
  std::shared_ptr<Sequence> take_place(const std::string& principal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequences_mutex_);
  // Notes that a sequence was used, and may be idle for too long some time later.
  void expect_idle(std::chrono::steady_clock::time_point used) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequences_mutex_);
  // Finds or begins a request's sequence, and reserves it: waits while another request of the sequence runs, or there
  // are too many sequences. A sequence that begins again keeps its states until the request has succeeded.
  absl::StatusOr<std::shared_ptr<Sequence>> begin_sequence(const InferRequest& request);
  // Lets the next request of the sequence run; never throws. The sequence ends if the request has succeeded and says
  // so, or none of it has succeeded: the states would be those of the start, but the model would not be told so.
  void end_sequence(const InferRequest& request, const std::shared_ptr<Sequence>& sequence, bool has_succeeded);
  // CANCELLED or DEADLINE_EXCEEDED if nobody waits for the request's answer any more.
  static absl::Status check_wanted(const InferRequest& request);
  void execute(size_t instance, absl::Span<Batcher::Job* const> batch);
  // Throws Error.
  void run(ModelInstance& instance, absl::Span<Work* const> batch);
  // The inputs of the controls, by the inputs that the request has.
  absl::Status add_controls(const InferRequest& request, Work* work) const;
  // INVALID_ARGUMENT unless the states have sizes that suit the request.
  absl::Status check_states(Work* work) const;
  // A copy of the requests' values for an input, with `run` rows, of which the last ones are zero.
  Tensor joined(size_t input, absl::Span<Work* const> batch, int64_t run) const;
  // The same for an input that is a state of the requests' sequences, on `device`.
  Tensor joined_states(const SequencePorts::State& state, absl::Span<Work* const> batch, int64_t run,
                       Device device) const;
  // A request's rows of the next states, as tensors of their own. `states` are those of the entry.
  std::vector<Tensor> next_states(const Work& work, absl::Span<const Tensor> states,
                                  absl::Span<const Tensor> values) const;
  absl::StatusOr<InferResult> result_of(const InferRequest& request, const Work& work) const;

  const std::string name_;
  const int64_t number_;
  const ModelSettings settings_;
  const std::vector<std::shared_ptr<const ServedModel>> models_;  // by group of instances
  const ModelEntry* const entry_;                                 // of models_[0]
  std::set<const ModelPort*> strings_;                            // of entry_
  SequencePorts sequence_ports_;                                  // of entry_
  std::map<size_t, ClassLabels> labels_;                          // by output of entry_
  std::vector<std::unique_ptr<ModelInstance>> instances_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<StreamingModel> streaming_;  // null: requests have one response
  ModelStatistics statistics_;
  // During warm-up: how runs are cancelled, and whose time they take.
  struct WarmUp {
    Cancellation* cancellation;
    std::shared_ptr<Share> share;  // null: the models'
    Flow flow;
  };
  std::unique_ptr<WarmUp> warm_up_;
  std::shared_ptr<CancelWatch> watch_;  // may be null
  std::atomic<bool> is_warming_up_ = false;
  mutable Mutex sequences_mutex_;
  CondVar sequences_changed_;  // for requests that wait until they may begin a sequence
  // Before which no sequence has been idle for too long.
  std::chrono::steady_clock::time_point next_idle_ ABSL_GUARDED_BY(sequences_mutex_) =
      std::chrono::steady_clock::time_point::max();
  std::map<SequenceKey, std::shared_ptr<Sequence>> sequences_ ABSL_GUARDED_BY(sequences_mutex_);
  // By principal, the requests that wait until they may begin a sequence.
  std::map<std::string, size_t> starting_ ABSL_GUARDED_BY(sequences_mutex_);
  bool takes_waiting_starts_ ABSL_GUARDED_BY(sequences_mutex_) = true;
};

}  // namespace tt::server
