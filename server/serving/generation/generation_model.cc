#include "server/serving/generation/generation_model.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <variant>

#include "base/mutex.h"
#include "engine/schema/error.h"
#include "server/serving/generation/model_decoder.h"

namespace tt::server::generation {
namespace {

constexpr std::chrono::milliseconds kCancelInterval{50};  // between two looks whether the client has gone

int64_t integer(const std::string& name, const InferParameter& parameter) {
  const auto* value = std::get_if<int64_t>(&parameter);
  check(ErrorKind::kValue, value != nullptr, "[generation] expected an integer as the parameter ", name);
  return *value;
}

double number(const std::string& name, const InferParameter& parameter) {
  if (const auto* value = std::get_if<double>(&parameter)) return *value;
  const auto* text = std::get_if<std::string>(&parameter);  // of clients that send no floating-point numbers
  if (text == nullptr) return static_cast<double>(integer(name, parameter));
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  check(ErrorKind::kValue, !text->empty() && end == text->c_str() + text->size(),
        "[generation] expected a number as the parameter ", name);
  return value;
}

std::vector<int64_t> integers(const InferInput& input, int64_t largest) {
  check(ErrorKind::kValue, input.dtype == DType::kInt64, "[generation] expected INT64 as the input ", input.name);
  const bool is_row = input.sizes.size() == 2 && input.sizes[0] == 1;
  check(ErrorKind::kValue, input.sizes.size() == 1 || is_row, "[generation] expected the shape [n] or [1, n] of ",
        input.name, ", got ", to_string(input.sizes));
  const int64_t count = input.sizes.back();
  check(ErrorKind::kValue, count >= 0 && count <= largest, "[generation] expected at most ", largest, " values of ",
        input.name, ", got ", count);
  std::vector<int64_t> values(static_cast<size_t>(count));
  check(ErrorKind::kValue, input.bytes.size() == values.size() * sizeof(int64_t), "[generation] expected ",
        values.size() * sizeof(int64_t), " bytes of ", input.name, ", got ", input.bytes.size());
  if (!values.empty()) std::memcpy(values.data(), input.bytes.data(), input.bytes.size());
  return values;
}

void set_parameter(const std::string& name, const InferParameter& parameter, Request* request) {
  SamplingParameters& sampling = request->sampling;
  if (name == "max_tokens") {
    request->max_tokens = integer(name, parameter);
  } else if (name == "temperature") {
    sampling.temperature = number(name, parameter);
  } else if (name == "top_k") {
    sampling.top_k = integer(name, parameter);
  } else if (name == "top_p") {
    sampling.top_p = number(name, parameter);
  } else if (name == "seed") {
    sampling.seed = static_cast<uint64_t>(integer(name, parameter));
  } else {
    // Of the protocol: the last response is never empty unless the request is cancelled.
    check(ErrorKind::kValue, name == "triton_enable_empty_final_response",
          "[generation] expected the parameters max_tokens, temperature, top_k, top_p and seed, got ",
          name.substr(0, 100));
  }
}

// Events on their way from the scheduler's thread to that of a request. At most as many as the request has tokens.
class Events {
 public:
  bool push(const Event& event) {
    MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
    return !is_abandoned_;
  }
  // Returns false if there is none within the interval.
  bool pop(Event* event) {
    MutexLock lock(mutex_);
    if (events_.empty()) changed_.wait_for(mutex_, kCancelInterval);
    if (events_.empty()) return false;
    *event = std::move(events_.front());
    events_.pop_front();
    return true;
  }
  void abandon() {
    MutexLock lock(mutex_);
    is_abandoned_ = true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  bool is_abandoned_ ABSL_GUARDED_BY(mutex_) = false;
};

InferResult result_of(const Event& event) {
  InferResult result;
  const bool is_final = event.finish != Finish::kNone;
  result.parameters["triton_final_response"] = is_final;
  if (is_final) result.parameters["finish_reason"] = std::string(name(event.finish));
  if (event.token < 0) return result;
  result.parameters["index"] = event.index;
  InferOutput output;
  output.name = "token";
  output.dtype = DType::kInt64;
  output.sizes = {1};
  output.owned.assign(reinterpret_cast<const char*>(&event.token), sizeof event.token);
  output.size = output.owned.size();
  result.outputs.push_back(std::move(output));
  return result;
}

}  // namespace

Request parse_request(const InferRequest& wire, const DecoderLimits& limits) {
  Request request;
  request.max_tokens = limits.max_length;
  request.deadline = wire.deadline;
  bool has_prompt = false;
  for (const InferInput& input : wire.inputs) {
    if (input.name == "tokens" && !has_prompt) {
      has_prompt = true;
      request.prompt = integers(input, limits.max_length);
    } else {
      check(ErrorKind::kValue, input.name == "stop_tokens",
            "[generation] expected the input tokens, once, and perhaps stop_tokens, got ", input.name.substr(0, 100));
      request.stop_tokens = integers(input, Scheduler::kMaxStopTokens);
    }
  }
  for (const InferRequest::Output& output : wire.outputs) {
    check(ErrorKind::kValue, output.name == "token" && output.classes == 0, "[generation] expected the values of the ",
          "output token, got ", output.name.substr(0, 100), output.classes == 0 ? "" : " with 'classification'");
  }
  for (const auto& [name, parameter] : wire.parameters) set_parameter(name, parameter, &request);
  return request;
}

std::unique_ptr<StreamingModel> GenerationModel::make(const std::shared_ptr<const ServedModel>& model,
                                                      const ModelSettings& settings) {
  if (!ModelDecoder::is_decoder(model->file())) return nullptr;
  const size_t waiting = settings.batching.max_queue == 0 ? kDefaultWaiting : settings.batching.max_queue;
  return std::make_unique<GenerationModel>(std::make_unique<ModelDecoder>(model), waiting);
}

StreamingModel::Counters GenerationModel::counters() const {
  const SchedulerCounters now = scheduler_.counters();
  return {now.tokens, now.prompt_tokens, now.steps, now.running, now.waiting};
}

absl::Status GenerationModel::stream(const InferRequest& wire, Send send) {
  Request request;
  try {
    request = parse_request(wire, scheduler_.limits());
  } catch (const Error& error) {
    return infer_status(error);
  }
  const auto events = std::make_shared<Events>();
  uint64_t number = 0;
  absl::Status status = scheduler_.submit(
      std::move(request), [events](const Event& event) { return events->push(event); }, &number);
  if (!status.ok()) return status;
  const auto leave = [&] {
    events->abandon();
    scheduler_.cancel(number);
  };
  for (;;) {
    Event event;
    if (!events->pop(&event)) {
      if (!wire.is_cancelled || !wire.is_cancelled()) continue;
      leave();
      return absl::CancelledError("[generation] the request was cancelled");
    }
    if (event.finish == Finish::kError) return event.status;
    if (event.finish == Finish::kCancelled) return absl::UnavailableError("[generation] the model is being unloaded");
    if (!send(result_of(event))) {
      leave();
      return absl::OkStatus();
    }
    if (event.finish != Finish::kNone) return absl::OkStatus();
  }
}

}  // namespace tt::server::generation
