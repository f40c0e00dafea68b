// GenerationModel: answers requests of ModelStreamInfer with tokens, for a loaded version of a decoder model.
//
// A request has the input `tokens`, INT64 of [n] or [1, n], perhaps `stop_tokens`, INT64 of [m], and the parameters
// max_tokens, temperature, top_k, top_p and seed. It is answered by one response per token: the output `token`, INT64
// of [1], and the parameters index, triton_final_response and, in the last one, finish_reason ("stop", "length",
// "cancelled"). A request that is invalid or fails is answered by one response with an error message. Requests are
// untrusted. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "server/serving/generation/scheduler.h"
#include "server/serving/served_model.h"

namespace tt::server::generation {

class GenerationModel {
 public:
  static constexpr size_t kDefaultWaiting = 256;

  // Throws Error as ModelDecoder does. `max_waiting` as of Scheduler.
  explicit GenerationModel(std::shared_ptr<const ServedModel> model, size_t max_waiting = kDefaultWaiting);

  // Called on the model's thread, for one response after the other, until one of which triton_final_response is true or
  // that has an error message. Must not wait. Returns false if nobody reads the responses any more.
  using Write = std::function<bool(const inference::ModelStreamInferResponse& response)>;
  // Returns a number for cancel(). `write` is not called if this fails.
  absl::Status submit(const inference::ModelInferRequest& request, Write write, uint64_t* number);
  void cancel(uint64_t number) { scheduler_.cancel(number); }
  SchedulerCounters counters() const { return scheduler_.counters(); }

 private:
  Scheduler scheduler_;
};

// Reads a request. Throws Error (ValueError).
Request parse_request(const inference::ModelInferRequest& wire, const DecoderLimits& limits);

}  // namespace tt::server::generation
