// ModelVersion: requests. A request is checked, waits for its batch, and is answered with its rows of the values.
#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/serving/byte_strings.h"
#include "server/serving/datatype.h"
#include "server/serving/model_work.h"
#include "server/serving/request_inputs.h"

namespace tt::server {

using Clock = std::chrono::steady_clock;

absl::Status ModelVersion::prepare(const InferRequest& request, Work* work) const {
  if (entry_ == nullptr) return absl::UnimplementedError("[ModelInfer] the model answers streams of tokens only");
  const size_t inputs = entry_->inputs.size() - sequence_ports_.states.size() - sequence_ports_.controls.size();
  if (request.inputs.size() != inputs) {
    return invalid_request("expected ", inputs, " inputs, got ", request.inputs.size());
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
  for (size_t i = 0; i < entry_->inputs.size(); ++i) {
    const ModelPort& port = entry_->inputs[i];
    if (!sequence_ports_.has_input(i)) {
      work->inputs.push_back(nullptr);
      continue;
    }
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
    if (absl::Status status = check_input(port, *found, &work->named); !status.ok()) return status;
    work->inputs.push_back(found);
  }
  for (const auto& [name, classes] : request.outputs) {
    const auto found = std::find_if(entry_->outputs.begin(), entry_->outputs.end(),
                                    [&, &name = name](const ModelPort& port) { return port.name == name; });
    if (found == entry_->outputs.end() ||
        !sequence_ports_.has_output(static_cast<size_t>(found - entry_->outputs.begin()))) {
      return invalid_request("expected names of the model's outputs, got '", name.substr(0, ModelFile::kMaxName), "'");
    }
    if (classes != 0 && (is_string(*found) || !has_classes(found->dtype))) {
      return invalid_request("expected integers, FP32 or FP64 as the output '", name, "' for 'classification', got ",
                             is_string(*found) ? kBytesDatatype : datatype_name(found->dtype));
    }
    work->outputs.push_back({static_cast<size_t>(found - entry_->outputs.begin()), classes});
  }
  if (request.outputs.empty()) {
    for (size_t i = 0; i < entry_->outputs.size(); ++i) {
      if (sequence_ports_.has_output(i)) work->outputs.push_back({i, 0});
    }
  }
  if (request.outputs.size() > entry_->outputs.size()) return invalid_request("expected distinct outputs");
  if (settings_.max_batch != 0) {
    const auto first = std::find_if(work->inputs.begin(), work->inputs.end(), [](const auto* each) { return each; });
    if (first == work->inputs.end()) return absl::InternalError("[ModelInfer] the model has no input of requests");
    const int64_t rows = (*first)->sizes[0];
    if (rows < 1 || static_cast<uint64_t>(rows) > settings_.max_batch) {
      return invalid_request("expected a batch of 1 to ", settings_.max_batch, " rows, got ", rows);
    }
    for (const InferInput* input : work->inputs) {
      if (input == nullptr) continue;
      if (input->sizes[0] != rows) {
        return invalid_request("expected the same number of rows in all inputs, got ", rows, " and ", input->sizes[0]);
      }
      if (settings_.joins || settings_.joins_sequences)
        absl::StrAppend(&work->key, ";", to_string(SizesView(input->sizes).subspan(1)));
    }
    work->rows = static_cast<size_t>(rows);
  }
  if (absl::Status status = add_controls(request, work); !status.ok()) return status;
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

absl::Status ModelVersion::add_controls(const InferRequest& request, Work* work) const {
  for (const SequencePorts::Control& control : sequence_ports_.controls) {
    const ModelPort& port = entry_->inputs[control.input];
    absl::StatusOr<std::string> element = control_bytes(control, port.dtype, request);
    if (!element.ok()) return element.status();
    InferInput input;
    input.name = port.name;
    input.dtype = port.dtype;
    for (size_t i = 0; i < port.dims.size(); ++i) {
      const bool is_rows = i == 0 && settings_.max_batch != 0;
      const auto named = work->named.find(port.dims[i].name);
      const bool is_known = port.dims[i].size == kDynamic && named != work->named.end();
      input.sizes.push_back(is_rows ? static_cast<int64_t>(work->rows) : is_known ? named->second : 1);
    }
    constexpr size_t kMaxControls = size_t{1} << 20;
    const size_t count = elements_of(SizesView(input.sizes));
    if (count > kMaxControls) return invalid_request("expected at most ", kMaxControls, " rows of a sequence");
    std::string& bytes = work->control_values.emplace_back();
    for (size_t i = 0; i < count; ++i) bytes += *element;
    input.bytes = {bytes.data(), bytes.size()};
    if (absl::Status status = check_input(port, input, &work->named); !status.ok()) return status;
    work->inputs[control.input] = &work->controls.emplace_back(std::move(input));
  }
  return absl::OkStatus();
}

absl::Status ModelVersion::check_states(Work* work) const {
  const size_t own = entry_->states.size();
  for (size_t i = 0; i < sequence_ports_.states.size(); ++i) {
    const SequencePorts::State& state = sequence_ports_.states[i];
    const ModelPort& port = entry_->inputs[state.input];
    InferInput input;
    input.name = port.name;
    input.dtype = port.dtype;
    if (work->states != nullptr) {
      input.sizes = (*work->states)[own + i].sizes();
    } else {
      if (settings_.max_batch != 0) input.sizes.push_back(static_cast<int64_t>(work->rows));
      input.sizes.insert(input.sizes.end(), state.sizes.begin(), state.sizes.end());
    }
    if (settings_.max_batch != 0 && !input.sizes.empty() && input.sizes[0] != static_cast<int64_t>(work->rows)) {
      return invalid_request("expected ", input.sizes[0], " rows, as the sequence has, got ", work->rows);
    }
    // Only their number is read.
    input.bytes = {static_cast<const char*>(nullptr), elements_of(SizesView(input.sizes)) * item_size(port.dtype)};
    if (absl::Status status = check_input(port, input, &work->named); !status.ok()) return status;
    if (!work->key.empty()) absl::StrAppend(&work->key, ";", to_string(SizesView(input.sizes).subspan(1)));
  }
  return absl::OkStatus();
}

std::optional<std::vector<InferOutput>> ModelVersion::sized_outputs(const Work& work, bool has_run) const {
  constexpr uint64_t kMaxElements = uint64_t{1} << 48;
  std::vector<InferOutput> outputs;
  outputs.reserve(work.outputs.size());
  for (const auto& [index, classes] : work.outputs) {
    const ModelPort& port = entry_->outputs[index];
    InferOutput& output = outputs.emplace_back();
    output.name = port.name;
    output.dtype = port.dtype;
    uint64_t elements = 1;
    const size_t dims = has_run ? work.values[index].sizes().size() : port.dims.size();
    for (size_t i = 0; i < dims; ++i) {
      int64_t size = has_run ? work.values[index].sizes()[i] : port.dims[i].size;
      if (i == 0 && settings_.max_batch != 0) size = static_cast<int64_t>(work.rows);
      if (size == kDynamic) {
        const auto named = work.named.find(port.dims[i].name);
        if (named == work.named.end()) return std::nullopt;
        size = named->second;
      }
      if (size != 0 && elements > kMaxElements / static_cast<uint64_t>(size)) return std::nullopt;
      elements *= static_cast<uint64_t>(size);
      output.sizes.push_back(size);
    }
    output.size = elements * item_size(port.dtype);
    if (is_string(port) && !output.sizes.empty()) {
      constexpr uint64_t kLength = 4;
      output.sizes.pop_back();
      output.size += kLength * elements_of(SizesView(output.sizes));
      output.is_strings = true;
    } else if (classes != 0) {
      ClassSizes sized = class_sizes(port.dtype, output.sizes, settings_.max_batch != 0, classes, labels_of(index));
      output.sizes = std::move(sized.sizes);
      output.size = sized.bytes;
      output.is_bound = true;
      output.is_strings = true;
    }
  }
  return outputs;
}

absl::StatusOr<InferResult> ModelVersion::answer(const InferRequest& request, const Work& work,
                                                 const std::optional<std::vector<InferOutput>>& reserved) const {
  try {
    std::optional<std::vector<InferOutput>> sized = sized_outputs(work, true);
    if (!sized) return absl::InternalError("[ModelInfer] expected outputs of known sizes after the run");
    const auto fits = [](const InferOutput& own, const InferOutput& other) { return own.size <= other.size; };
    const bool is_reserved = reserved && std::equal(sized->begin(), sized->end(), reserved->begin(), fits);
    if (request.reserve && !is_reserved) {
      if (absl::Status status = request.reserve(*sized); !status.ok()) return status;
    }
    absl::StatusOr<InferResult> result = result_of(request, work);
    if (!result.ok()) return result;
    const bool is_bound = std::any_of(sized->begin(), sized->end(), [](const auto& output) { return output.is_bound; });
    if (request.reserve && is_bound) {
      for (size_t i = 0; i < sized->size(); ++i) {
        (*sized)[i].size = result->outputs[i].size;
        (*sized)[i].is_bound = false;
      }
      if (absl::Status status = request.reserve(*sized); !status.ok()) return status;
    }
    if (work.has_sequence) {  // the states do not change for an answer that nobody reads
      if (absl::Status status = check_wanted(request); !status.ok()) return status;
    }
    if (!request.accept) return result;
    if (absl::Status status = request.accept(*result); !status.ok()) return status;
    return result;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("[ModelInfer] memory is exhausted");
  } catch (const std::exception&) {
    return absl::InternalError("[ModelInfer] internal error");
  }
}

absl::Status ModelVersion::check_wanted(const InferRequest& request) {
  if (request.is_cancelled && request.is_cancelled()) {
    return absl::CancelledError("[ModelInfer] the request was cancelled");
  }
  if (Clock::now() < request.deadline) return absl::OkStatus();
  return absl::DeadlineExceededError("[ModelInfer] the request's time has passed");
}

absl::StatusOr<InferResult> ModelVersion::infer(const InferRequest& request) {
  const Clock::time_point begin = Clock::now();
  Work work;
  absl::Status status = prepare(request, &work);
  std::optional<std::vector<InferOutput>> reserved;
  if (status.ok() && request.reserve) {
    reserved = sized_outputs(work, false);
    if (reserved) status = request.reserve(*reserved);
  }
  absl::StatusOr<InferResult> result = InferResult();
  if (status.ok() && settings_.has_sequences) {
    if (request.sequence.empty()) {
      status = invalid_request("expected a sequence_id other than 0 for a model with sequences");
    } else if (auto sequence = begin_sequence(request); !sequence.ok()) {
      status = sequence.status();
    } else {
      bool has_succeeded = false;
      const absl::Cleanup end = [&] { end_sequence(request, *sequence, has_succeeded); };
      work.has_sequence = true;
      if ((*sequence)->has_begun && !request.sequence_start) work.states = &(*sequence)->states;
      status = check_wanted(request);
      if (status.ok()) status = check_states(&work);
      if (status.ok()) status = batcher_->run(work);
      if (status.ok()) result = answer(request, work, reserved);
      if (status.ok()) status = result.status();
      if (status.ok()) {
        (*sequence)->states.swap(work.next_states);
        has_succeeded = (*sequence)->has_begun = true;
      }
    }
  } else if (status.ok()) {
    status = batcher_->run(work);
    if (status.ok()) result = answer(request, work, reserved);
    if (status.ok()) status = result.status();
  }
  statistics_.request(status.ok(), Clock::now() - begin, work.queued, work.rows, work.times);
  if (!status.ok()) return status;
  return result;
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

absl::StatusOr<InferResult> ModelVersion::result_of(const InferRequest& request, const Work& work) const {
  InferResult result;
  uint64_t class_bytes = 0;  // of all outputs so far
  const auto check_classes = [&](uint64_t bytes) -> absl::Status {
    if (bytes <= request.class_bytes - class_bytes) return check_wanted(request);
    return absl::OutOfRangeError(absl::StrCat("[ModelInfer] expected classes of at most ", request.class_bytes,
                                              " bytes in an answer, got more"));
  };
  result.outputs.reserve(work.outputs.size());
  for (const auto& [i, classes] : work.outputs) {
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
    } else if (classes != 0) {
      absl::Status status = classify(classes, settings_.max_batch != 0, labels_of(i), check_classes, &output);
      if (!status.ok()) return status;
      class_bytes += output.size;
    }
    result.outputs.push_back(std::move(output));
  }
  return result;
}

}  // namespace tt::server
