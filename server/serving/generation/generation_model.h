// GenerationModel: answers requests of ModelStreamInfer with tokens, for a loaded version of a decoder model.
//
// A request has the input `tokens`, INT64 of [n] or [1, n], perhaps `stop_tokens`, INT64 of [m], and the parameters
// max_tokens, temperature, top_k, top_p and seed. It is answered by one response per token: the output `token`, INT64
// of [1], and the parameters index, triton_final_response and, in the last one, finish_reason ("stop", "length").
// Requests are untrusted. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "server/serving/generation/scheduler.h"
#include "server/serving/infer.h"
#include "server/serving/served_model.h"
#include "server/serving/settings.h"

namespace tt::server::generation {

class GenerationModel final : public StreamingModel {
 public:
  static constexpr size_t kDefaultWaiting = 256;

  // Null if the model has no entries for generation. Throws Error as ModelDecoder does. The settings' queue limits how
  // many requests wait.
  static std::unique_ptr<StreamingModel> make(const std::shared_ptr<const ServedModel>& model,
                                              const ModelSettings& settings);
  explicit GenerationModel(std::unique_ptr<Decoder> decoder, size_t max_waiting = kDefaultWaiting)
      : scheduler_(std::move(decoder), max_waiting) {}

  absl::Status stream(const InferRequest& request, Send send) override;
  Counters counters() const override;

 private:
  Scheduler scheduler_;
};

// Reads a request. Throws Error (ValueError).
Request parse_request(const InferRequest& wire, const DecoderLimits& limits);

}  // namespace tt::server::generation
