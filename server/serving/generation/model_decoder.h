// ModelDecoder: a Decoder that runs the entries "prefill" and "step" of a served model (docs/serving-python.md,
// "Generation").
//
// Both entries have the same states, which they change in place: the cache, with a slot per sequence.
//   prefill: tokens int64[1, length], length int64[1], slot int64[1] -> logits float32[1, vocabulary]. Tokens behind
//            the length are padding.
//   step:    tokens int64[rows], positions int64[rows], window int64[window] -> logits float32[rows, vocabulary]. Row i
//            is slot i. `window` counts from 0; all positions are smaller than its size. Rows of slots without a
//            sequence are ignored.
// The attributes "generation.slots" and "generation.max_length" are the cache's limits. Sizes are rounded up, so that
// few of them have to be compiled.
#pragma once

#include <memory>
#include <vector>

#include "server/serving/generation/decoder.h"
#include "server/serving/served_model.h"

namespace tt::server::generation {

class ModelDecoder final : public Decoder {
 public:
  static constexpr int64_t kMaxSlots = 256;

  // Whether a model has these entries.
  static bool is_decoder(const ModelFile& file);
  // Allocates the cache, charged to the model's account. Throws Error (ValueError) if an entry or attribute is missing
  // or has another form.
  explicit ModelDecoder(std::shared_ptr<const ServedModel> model);
  ~ModelDecoder() override;

  DecoderLimits limits() const override { return limits_; }
  absl::Span<const float> prefill(int64_t slot, absl::Span<const int64_t> tokens) override;
  absl::Span<const float> step(absl::Span<const Next> next) override;

 private:
  // Runs an entry, and copies the first `rows` rows of its logits to logits_.
  void run(const ModelEntry& entry, const std::vector<Tensor>& inputs, int64_t rows);

  const std::shared_ptr<const ServedModel> model_;
  const ModelEntry& prefill_;
  const ModelEntry& step_;
  const DecoderLimits limits_;
  ModelInstance instance_;
  std::vector<Tensor> states_;
  std::vector<float> logits_, ordered_;
};

}  // namespace tt::server::generation
