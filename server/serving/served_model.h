// ServedModel: a loaded version of a model: its description, and its weights in the memory of a device.
//
// The weights are read-only for the engine: no request can change them. Their bytes, and those of running requests, are
// charged to the account of this version. ModelInstance runs its entries, through the engine's Programs, passes and
// executor, as an instruction run_program of a session does. ServedModel is immutable after loading and thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "engine/device/device_queue.h"
#include "engine/memory/account.h"
#include "engine/program/slot_table.h"
#include "engine/session/context.h"
#include "engine/tensor/tensor.h"
#include "server/serving/model_file.h"
#include "server/serving/scheduler/thread_tuner.h"

namespace tt::server {

class ServedModel {
 public:
  struct Options {
    std::string name;                              // "resnet/3", for messages
    Device device;                                 // of the weights and the computation
    uint64_t memory_limit = 0;                     // bytes of the version; 0: no limit
    std::shared_ptr<Quota> quota = nullptr;        // of all models, or of the principal that owns the model; null: none
    std::shared_ptr<FairQueues> queues = nullptr;  // divide processors and GPUs; null: they are not divided
    std::shared_ptr<Share> share = nullptr;        // the models' part of it; required with `queues`
  };
  static constexpr const char* kDescription = "program.pb";
  static constexpr const char* kWeights = "model.safetensors";

  // Reads both files of a version's folder; no symbolic link is followed. A model without weights needs no weights'
  // file. Throws Error.
  static std::shared_ptr<const ServedModel> load(const std::filesystem::path& folder, Options options);

  const ModelFile& file() const { return file_; }
  const Options& options() const { return options_; }
  const std::shared_ptr<Account>& account() const { return account_; }
  uint64_t weight_bytes() const { return weight_bytes_; }
  FairQueue* processors() const { return options_.queues ? &options_.queues->processors : nullptr; }
  // In the order of the entry's weights. `entry` is one of file().entries.
  const std::vector<Tensor>& weights_of(const ModelEntry& entry) const { return weights_.at(entry.name); }

 private:
  ServedModel(ModelFile file, Options options);
  void load_weights(const std::filesystem::path& path);

  const ModelFile file_;
  const Options options_;
  const std::shared_ptr<Account> account_;
  std::map<std::string, std::vector<Tensor>> weights_;  // by entry
  uint64_t weight_bytes_ = 0;
};

// The contents of a regular file, of at most `max_bytes`; no symbolic link is followed. Throws Error.
std::string read_model_file(const std::filesystem::path& path, uint64_t max_bytes);

// A new tensor of zeros on the CPU.
Tensor zeros_on_host(SizesView sizes, DType dtype);

// Runs a model's entries, one at a time. Several instances of a model run concurrently and share its weights. Its
// functions throw Error; memory and streams belong to the instance. Used by one thread at a time: while a Use exists.
class ModelInstance {
 public:
  explicit ModelInstance(std::shared_ptr<const ServedModel> model);
  ~ModelInstance();
  ModelInstance(const ModelInstance&) = delete;
  ModelInstance& operator=(const ModelInstance&) = delete;

  const ServedModel& model() const { return *model_; }

  // Makes the instance current on this thread, with a turn of the processors, while it exists. Tensors may be created,
  // run() called, and tensors of the instance destroyed meanwhile.
  class Use {
   public:
    // `share` pays for the turn, of which `flow` is a part, and which is one in the background; null: the model's share
    // and the instance's flow.
    explicit Use(ModelInstance& instance, Share* share = nullptr, Flow* flow = nullptr);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    ModelInstance& instance_;
    ContextScope context_;
    Turn turn_;
  };

  // Runs an entry once. `inputs` are those of a request, on any device; `states` are all states of the entry, on the
  // model's device, of which run() replaces those that the Program returns. Returns the outputs on the model's device.
  // Requires a Use. Does not wait for a GPU. What a request may have wrong about sizes is checked by the caller
  // (check_inputs()), except the entry's requirements.
  std::vector<Tensor> run(const ModelEntry& entry, absl::Span<const Tensor> inputs, std::vector<Tensor>* states);
  // New states, zero.
  std::vector<Tensor> make_states(const ModelEntry& entry);
  // Returns the values as contiguous tensors on the CPU, with `copies` always as new ones. Waits for the device; throws
  // Error if a kernel has found an error in what they depend on.
  std::vector<Tensor> to_host(std::vector<Tensor> values, bool copies = false);

 private:
  const std::vector<Tensor>& weights_of(const ModelEntry& entry);

  const std::shared_ptr<const ServedModel> model_;
  Flow flow_;  // of its runs' turns
  Context context_;
  ThreadTuner tuner_;
  std::map<std::string, std::vector<Tensor>> weights_;  // by entry: tensors of this instance over the model's storages
  SlotTable no_slots_;
  // Signatures of inputs that satisfy the requirements of their entry.
  std::vector<std::string> accepted_;
};

}  // namespace tt::server
