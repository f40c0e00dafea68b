// ModelVersion: requests. A request is checked, waits for its batch, and is answered with its rows of the values.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/serving/byte_strings.h"
#include "server/serving/datatype.h"
#include "server/serving/model_work.h"
#include "server/serving/request_inputs.h"

namespace tt::server {

using Clock = std::chrono::steady_clock;

absl::Status ModelVersion::prepare(const InferRequest& request, Work* work) const {
  if (entry_ == nullptr) return absl::UnimplementedError("[ModelInfer] the model answers streams of tokens only");
  if (request.inputs.size() != entry_->inputs.size()) {
    return invalid_request("expected ", entry_->inputs.size(), " inputs, got ", request.inputs.size());
  }
  if (!request.parameters.empty()) {
    return invalid_request(
        "expected no parameters but sequence_id, sequence_start, sequence_end, priority and timeout, got '",
        request.parameters.begin()->first.substr(0, 100), "'");
  }
  if ((!request.sequence.empty() || request.sequence_start || request.sequence_end) && !settings_.has_sequences) {
    return invalid_request(
        "expected no sequence_id, sequence_start or sequence_end, because the model has no sequence_batching");
  }
  NamedSizes named;
  for (const ModelPort& port : entry_->inputs) {
    const InferInput* found = nullptr;
    for (const InferInput& input : request.inputs) {
      if (input.name != port.name) continue;
      if (found != nullptr) return invalid_request("expected distinct inputs, got '", port.name, "' twice");
      found = &input;
    }
    if (found == nullptr) return invalid_request("expected the input '", port.name, "', which is missing");
    if (is_string(port)) {
      absl::StatusOr<InferInput> widened = with_width(port, *found);
      if (!widened.ok()) return widened.status();
      work->strings.push_back(*std::move(widened));
      found = &work->strings.back();
    } else if (found->is_strings) {
      return invalid_request("expected the datatype ", datatype_name(port.dtype), " for input '", port.name, "', got ",
                             kBytesDatatype);
    }
    if (absl::Status status = check_input(port, *found, &named); !status.ok()) return status;
    work->inputs.push_back(found);
  }
  for (const std::string& name : request.outputs) {
    const auto found = std::find_if(entry_->outputs.begin(), entry_->outputs.end(),
                                    [&](const ModelPort& port) { return port.name == name; });
    if (found == entry_->outputs.end()) {
      return invalid_request("expected names of the model's outputs, got '", name.substr(0, ModelFile::kMaxName), "'");
    }
    work->outputs.push_back(static_cast<size_t>(found - entry_->outputs.begin()));
  }
  if (request.outputs.empty()) {
    for (size_t i = 0; i < entry_->outputs.size(); ++i) work->outputs.push_back(i);
  }
  if (request.outputs.size() > entry_->outputs.size()) return invalid_request("expected distinct outputs");
  if (settings_.max_batch != 0) {
    const int64_t rows = work->inputs[0]->sizes[0];
    if (rows < 1 || static_cast<uint64_t>(rows) > settings_.max_batch) {
      return invalid_request("expected a batch of 1 to ", settings_.max_batch, " rows, got ", rows);
    }
    for (const InferInput* input : work->inputs) {
      if (input->sizes[0] != rows) {
        return invalid_request("expected the same number of rows in all inputs, got ", rows, " and ", input->sizes[0]);
      }
      if (settings_.joins) absl::StrAppend(&work->key, ";", to_string(SizesView(input->sizes).subspan(1)));
    }
    work->rows = static_cast<size_t>(rows);
  }
  if (request.priority > settings_.batching.levels) {
    return invalid_request("expected a priority of at most ", settings_.batching.levels, ", got ", request.priority);
  }
  work->level = request.priority == 0 ? settings_.default_level : request.priority - 1;
  const Clock::time_point now = Clock::now();
  if (settings_.default_timeout.count() != 0) work->give_up = now + settings_.default_timeout;
  if (request.timeout_us != 0 && settings_.allow_timeout_override) {
    constexpr uint64_t kMaxTimeout = uint64_t{1} << 40;
    work->give_up = now + std::chrono::microseconds(std::min(request.timeout_us, kMaxTimeout));
  }
  work->deadline = request.deadline;
  work->is_cancelled = request.is_cancelled;
  return absl::OkStatus();
}

absl::StatusOr<InferResult> ModelVersion::infer(const InferRequest& request) {
  const Clock::time_point begin = Clock::now();
  Work work;
  absl::Status status = prepare(request, &work);
  if (status.ok() && settings_.has_sequences) {
    if (request.sequence.empty()) {
      status = invalid_request("expected a sequence_id other than 0 for a model with sequences");
    } else if (auto sequence = begin_sequence(request); !sequence.ok()) {
      status = sequence.status();
    } else {
      work.key.clear();
      work.states = &(*sequence)->states;
      work.begins = work.states->empty();
      status = batcher_->run(work);
      end_sequence(request, *sequence);
    }
  } else if (status.ok()) {
    status = batcher_->run(work);
  }
  statistics_.request(status.ok(), Clock::now() - begin, work.queued, work.rows, work.times);
  if (!status.ok()) return status;
  return result_of(request, work);
}

absl::Status ModelVersion::stream(const InferRequest& request, StreamingModel::Send send) {
  if (!streaming_) {
    absl::StatusOr<InferResult> result = infer(request);
    if (!result.ok()) return result.status();
    send(*std::move(result));
    return absl::OkStatus();
  }
  const Clock::time_point begin = Clock::now();
  const absl::Status status = streaming_->stream(request, send);
  statistics_.request(status.ok(), Clock::now() - begin, {}, 1, {});
  return status;
}

absl::StatusOr<InferResult> ModelVersion::result_of(const InferRequest&, const Work& work) const {
  InferResult result;
  for (const size_t i : work.outputs) {
    const Tensor& values = work.values[i];
    InferOutput output;
    output.name = entry_->outputs[i].name;
    output.dtype = values.dtype();
    output.sizes = values.sizes();
    output.values = values;
    output.size = static_cast<size_t>(values.numel()) * item_size(values.dtype());
    if (work.rows_run != 0) {
      const size_t row = output.size / work.rows_run;
      output.sizes[0] = static_cast<int64_t>(work.rows);
      output.offset = row * work.first_row;
      output.size = row * work.rows;
    }
    if (is_string(entry_->outputs[i])) {
      if (output.sizes.empty()) {
        return absl::InternalError(
            absl::StrCat("[ModelInfer] expected strings as the output '", output.name, "', got a number"));
      }
      const auto width = static_cast<size_t>(output.sizes.back());
      output.sizes.pop_back();
      output.owned = width == 0 ? std::string(4 * elements_of(SizesView(output.sizes)), '\0')
                                : encode_strings(output.bytes(), width);
      output.values = Tensor();
      output.offset = 0;
      output.size = output.owned.size();
      output.is_strings = true;
    }
    result.outputs.push_back(std::move(output));
  }
  return result;
}

}  // namespace tt::server
