// ModelVersion: the runs that make a model ready before its first request.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "server/serving/model_version.h"

namespace tt::server {
namespace {

Sizes zero_sizes(const ModelPort& port, int64_t rows) {
  Sizes sizes;
  for (size_t i = 0; i < port.dims.size(); ++i) {
    const ModelPort::Dim& dim = port.dims[i];
    sizes.push_back(dim.size != kDynamic ? dim.size : i == 0 ? rows : std::max<int64_t>(dim.min, 1));
  }
  return sizes;
}

// Whether the model can be run without knowing what its dynamic sizes mean: only a batch's rows are dynamic.
bool has_static_rows(const ModelEntry& entry, bool is_batched) {
  return std::all_of(entry.inputs.begin(), entry.inputs.end(), [&](const ModelPort& port) {
    return std::all_of(port.dims.begin() + (is_batched ? 1 : 0), port.dims.end(),
                       [](const ModelPort::Dim& dim) { return dim.size != kDynamic; });
  });
}

}  // namespace

void ModelVersion::warm_up(std::shared_ptr<Share> share) {
  if (entry_ == nullptr || !settings_.warms_up) return;
  warm_up_ = std::make_unique<WarmUp>();
  warm_up_->cancellation = Cancellation::current();
  warm_up_->share = std::move(share);
  is_warming_up_ = true;
  const absl::Cleanup ended = [this] { is_warming_up_ = false; };
  if (settings_.config.model_warmup_size() != 0) {
    for (const inference::ModelWarmup& each : settings_.config.model_warmup()) warm_up_with(each);
    return;
  }
  const bool is_batched = settings_.max_batch != 0;
  if (!has_static_rows(*entry_, is_batched)) return;
  run_zeros(1);
  if (!is_batched) return;
  for (const size_t rows : settings_.batching.preferred) run_zeros(static_cast<int64_t>(rows));
  if (settings_.padding != ModelSettings::Padding::kPowersOfTwo) return;
  for (size_t rows = 2; rows < 2 * settings_.max_batch; rows *= 2) {
    run_zeros(static_cast<int64_t>(std::min(rows, settings_.max_batch)));
  }
}

void ModelVersion::run_zeros(int64_t rows) {
  for (size_t i = 0; i < instances_.size(); ++i) {
    ModelInstance& instance = *instances_[i];
    const ModelInstance::Use use(instance, warm_up_->share.get(), &warm_up_->flow);
    std::vector<Tensor> inputs;
    inputs.reserve(entry_->inputs.size());
    for (const ModelPort& port : entry_->inputs) {
      inputs.push_back(zeros_on_host(zero_sizes(port, rows), port.dtype));
    }
    std::vector<Tensor> states = instance.make_states(*entry_);
    instance.to_host(instance.run(*entry_, inputs, &states));
  }
}

void ModelVersion::warm_up_with(const inference::ModelWarmup& wire) {
  InferRequest request;
  uint64_t bytes_in_all = 0;
  const bool is_batched = settings_.max_batch != 0;
  for (const auto& [name, input] : wire.inputs()) {
    const auto port = std::find_if(entry_->inputs.begin(), entry_->inputs.end(),
                                   [&, &name = name](const ModelPort& p) { return p.name == name; });
    check(ErrorKind::kValue, port != entry_->inputs.end(), "[model] model_warmup names the input '", name,
          "', which the model does not have");
    Sizes sizes;
    if (is_batched) sizes.push_back(std::max<int64_t>(wire.batch_size(), 1));
    sizes.insert(sizes.end(), input.dims().begin(), input.dims().end());
    uint64_t elements = 1;
    constexpr uint64_t kMaxWarmupElements = uint64_t{1} << 28, kMaxWarmupBytes = uint64_t{1} << 29;
    for (const int64_t size : sizes) {
      check(ErrorKind::kValue,
            size >= 0 && static_cast<uint64_t>(size) <= kMaxWarmupElements &&
                elements * static_cast<uint64_t>(size) <= kMaxWarmupElements,
            "[model] expected sizes of model_warmup with at most ", kMaxWarmupElements, " elements, got ",
            SizesView(sizes));
      elements *= static_cast<uint64_t>(size);
    }
    const size_t item = is_string(*port) ? 4 : item_size(port->dtype);  // an empty string is its length
    bytes_in_all += elements * item;
    check(ErrorKind::kValue, bytes_in_all <= kMaxWarmupBytes, "[model] expected inputs of model_warmup of at most ",
          kMaxWarmupBytes, " bytes together");
    // Random bits are no sensible values of most dtypes; what warms up is the run.
    request.owned.emplace_back(elements * item, '\0');
    const std::string& bytes = request.owned.back();
    request.inputs.push_back({name, port->dtype, sizes, {bytes.data(), bytes.size()}, is_string(*port)});
  }
  request.sequence = settings_.has_sequences ? "warm-up" : "";
  request.sequence_start = request.sequence_end = settings_.has_sequences;
  request.is_cancelled = cancel_requested;  // while it waits in the model's queue
  for (uint32_t i = 0; i < std::clamp<uint32_t>(wire.count(), 1, 100); ++i) {
    const absl::StatusOr<InferResult> result = infer(request);
    check(ErrorKind::kValue, result.ok(), "[model] model_warmup '", wire.name(),
          "' has failed: ", std::string(result.status().message()));
  }
}

}  // namespace tt::server
