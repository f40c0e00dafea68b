// ModelVersion: execution of batches of requests.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/dispatch/ops.h"
#include "server/log.h"
#include "server/serving/byte_strings.h"
#include "server/serving/model_work.h"

namespace tt::server {
namespace {

using Clock = std::chrono::steady_clock;

// Bool tensors have the bytes 0 and 1 only: kernels rely on it.
void copy_values(DType dtype, absl::Span<const char> bytes, char* into) {
  if (dtype == DType::kBool) {
    std::transform(bytes.begin(), bytes.end(), into, [](char c) { return static_cast<char>(c != 0); });
  } else if (!bytes.empty()) {
    std::memcpy(into, bytes.data(), bytes.size());
  }
}

size_t bytes_of(const Tensor& tensor) { return static_cast<size_t>(tensor.numel()) * item_size(tensor.dtype()); }

// The tensor, or a copy of a part of a larger one.
Tensor dense(const Tensor& tensor) {
  if (tensor.is_contiguous() && tensor->storage->bytes() <= bytes_of(tensor)) return tensor;
  Tensor copy = empty(tensor.sizes(), tensor.dtype(), tensor.device());
  copy_into(copy, tensor);
  return copy;
}

// The states of a sequence, with copies of those that a run changes.
std::vector<Tensor> copies_in_place(const ModelEntry& entry, const std::vector<Tensor>& states) {
  std::vector<Tensor> own = states;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!entry.states[i].in_place) continue;
    own[i] = empty(states[i].sizes(), states[i].dtype(), states[i].device());
    copy_into(own[i], states[i]);
  }
  return own;
}

// Whether nobody waits for the answer of a request that runs.
bool is_unwanted(const Batcher::Job* job) {
  return (job->is_cancelled && job->is_cancelled()) || Clock::now() >= job->deadline;
}

}  // namespace

void ModelVersion::execute(size_t instance, absl::Span<Batcher::Job* const> batch) {
  std::vector<Work*> works;
  for (Batcher::Job* job : batch) works.push_back(static_cast<Work*>(job));
  const auto attempt = [&](absl::Span<Work* const> part) -> absl::Status {
    try {
      run(*instances_[instance], part);
      return absl::OkStatus();
    } catch (const Cancelled&) {
      return absl::CancelledError("[ModelInfer] nobody waits for the request's answer any more");
    } catch (const Error& error) {
      return infer_status(error);
    } catch (const std::exception& error) {
      log_line(LogLevel::kError, {}, absl::StrCat("model ", name_, "/", number_, ": internal error: ", error.what()));
    } catch (...) {
      log_line(LogLevel::kError, {}, absl::StrCat("model ", name_, "/", number_, ": an exception of unknown type"));
    }
    return absl::InternalError("[ModelInfer] internal error");
  };
  const absl::Status status = attempt(works);
  // Another request's values may be the cause.
  const bool is_of_all = status.ok() || works.size() == 1 || absl::IsCancelled(status);
  for (Work* work : works) work->status = is_of_all ? status : attempt({&work, 1});
}

Tensor ModelVersion::joined(size_t input, absl::Span<Work* const> batch, int64_t run) const {
  Sizes sizes = batch[0]->inputs[input]->sizes;
  if (settings_.max_batch != 0) sizes[0] = run;
  const DType dtype = entry_->inputs[input].dtype;
  Tensor values = empty(sizes, dtype, Device());
  char* into = values.data_as<char>();
  const char* end = into + bytes_of(values);
  for (const Work* work : batch) {
    const InferInput& each = *work->inputs[input];
    if (each.is_strings) {
      const auto width = static_cast<size_t>(each.sizes.back());
      decode_strings(each.bytes, width, into);
      into += width * elements_of(SizesView(each.sizes).first(each.sizes.size() - 1));
      continue;
    }
    copy_values(dtype, each.bytes, into);
    into += each.bytes.size();
  }
  if (into != end) std::memset(into, 0, static_cast<size_t>(end - into));
  return values;
}

Tensor ModelVersion::joined_states(const SequencePorts::State& state, absl::Span<Work* const> batch, int64_t run,
                                   Device device) const {
  const DType dtype = entry_->inputs[state.input].dtype;
  const bool is_batched = settings_.max_batch != 0;
  const size_t index = entry_->states.size() + static_cast<size_t>(&state - sequence_ports_.states.data());
  // Rows of a sequence that begins, or of none, are zero.
  const auto zeros = [&](int64_t rows, Sizes sizes) {
    if (is_batched) sizes.insert(sizes.begin(), rows);
    const Tensor host = zeros_on_host(sizes, dtype);
    return device.type == DeviceType::kCPU ? host : ops::to_device(host, device);
  };
  Tensors parts;
  parts.reserve(batch.size() + 1);
  int64_t rows = 0;
  for (const Work* work : batch) {
    const auto own = static_cast<int64_t>(work->rows);
    parts.push_back(work->states == nullptr ? zeros(own, state.sizes) : (*work->states)[index]);
    rows += own;
  }
  if (is_batched && rows < run) {
    const SizesView sizes = SizesView(parts[0].sizes()).subspan(1);
    parts.push_back(zeros(run - rows, Sizes(sizes.begin(), sizes.end())));
  }
  return parts.size() == 1 ? parts[0] : ops::cat(parts, 0);
}

std::vector<Tensor> ModelVersion::next_states(const Work& work, absl::Span<const Tensor> states,
                                              absl::Span<const Tensor> values) const {
  std::vector<Tensor> next(states.begin(), states.end());
  for (const SequencePorts::State& state : sequence_ports_.states) {
    const Tensor& value = values[state.output];
    const auto row = static_cast<int64_t>(work.first_row), rows = static_cast<int64_t>(work.rows);
    next.push_back(dense(work.rows_run == 0 ? value : ops::narrow(value, 0, row, rows)));
  }
  return next;
}

void ModelVersion::run(ModelInstance& instance, absl::Span<Work* const> batch) {
  const Clock::time_point begin = Clock::now();
  WarmUp* const warm_up = is_warming_up_ ? warm_up_.get() : nullptr;
  Cancellation unwanted;  // by all requests of the batch
  const CancellationScope cancellable(warm_up != nullptr ? warm_up->cancellation : &unwanted);
  std::optional<CancelWatch::Work> watched;
  if (watch_ != nullptr && warm_up == nullptr) {
    watched.emplace(*watch_, unwanted, [batch] {
      return std::all_of(batch.begin(), batch.end(), is_unwanted) ? CancelReason::kClient : CancelReason::kNone;
    });
  }
  const ModelInstance::Use use(instance, warm_up != nullptr ? warm_up->share.get() : nullptr,
                               warm_up != nullptr ? &warm_up->flow : nullptr);
  int64_t rows = 0;
  for (const Work* work : batch) rows += static_cast<int64_t>(work->rows);
  const bool is_batched = settings_.max_batch != 0;
  const int64_t run = is_batched ? static_cast<int64_t>(settings_.padded(static_cast<size_t>(rows))) : rows;
  // The entry's own states, of which only one request has some. A sequence keeps its old ones until its request has
  // succeeded, so a run that changes them changes copies.
  std::vector<Tensor> states;
  if (!entry_->states.empty()) {
    states = batch[0]->states == nullptr ? instance.make_states(*entry_) : copies_in_place(*entry_, *batch[0]->states);
  }
  std::vector<Tensor> inputs;
  inputs.reserve(entry_->inputs.size());
  for (size_t i = 0; i < entry_->inputs.size(); ++i) {
    const SequencePorts::State* state = sequence_ports_.state_of(i);
    inputs.push_back(state == nullptr ? joined(i, batch, run)
                                      : joined_states(*state, batch, run, instance.model().options().device));
  }
  const Clock::time_point copied = Clock::now();
  std::vector<Tensor> values = instance.run(*entry_, inputs, &states);
  const Clock::time_point computed = Clock::now();
  const std::vector<Tensor> on_device = values;
  // Later requests of a sequence change what an output may view.
  values = instance.to_host(std::move(values), entry_->states_in_place() != 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const ModelPort& port = entry_->outputs[i];
    check(ErrorKind::kRuntime, values[i].dtype() == port.dtype, "[ModelInfer] expected the output '", port.name,
          "' to be ", port.dtype, " as described, got ", values[i].dtype());
    check(ErrorKind::kRuntime, !is_batched || (values[i].dim() > 0 && values[i].size(0) == run),
          "[ModelInfer] expected the output '", port.name, "' to have ", run, " rows, as the inputs have, got ",
          values[i].meta());
  }
  BatchTimes times{copied - begin, computed - copied, Clock::now() - computed};
  size_t row = 0;
  for (Work* work : batch) {
    work->values = values;
    work->first_row = row;
    work->rows_run = batch.size() > 1 || run != rows ? static_cast<size_t>(run) : 0;
    work->batch_rows = static_cast<size_t>(rows);
    if (work->has_sequence) work->next_states = next_states(*work, states, on_device);
    work->times = times;
    row += work->rows;
  }
  statistics_.batch(static_cast<uint64_t>(rows), times);
}

}  // namespace tt::server
