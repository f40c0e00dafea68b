// Recurrent layers: LSTM, GRU and RNN, each one operator of the engine.
#pragma once

#include <tuple>
#include <vector>

#include "client/nn/module.h"
#include "client/nn/options.h"

namespace teletensor::nn {

/// Input is (L, N, input_size), or with batch_first (N, L, input_size), or without a batch (L, input_size).
class RecurrentBase : public Module {
 public:
  using OptionsType = RecurrentOptions;
  void reset_parameters();
  void flatten_parameters() {}  ///< Has no effect: weights need not be contiguous.
  void pretty_print(std::ostream& stream) const override;
  RecurrentOptions options;

 protected:
  RecurrentBase(const RecurrentOptions& options, const char* name, int64_t gates);
  /// The input with a batch. Throws as PyTorch does for other sizes.
  Tensor batched(const Tensor& input) const;
  Tensor state(const Tensor& given, const Tensor& input) const;
  Tensor without_batch(const Tensor& tensor, bool is_state) const;

  std::vector<Tensor> weights_;
};

class LSTMImpl : public RecurrentBase {
 public:
  LSTMImpl(int64_t input_size, int64_t hidden_size) : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& options) : RecurrentBase(options, "LSTM", 4) {}
  /// Returns the output and the last states (h, c). Undefined states are zeros.
  std::tuple<Tensor, std::tuple<Tensor, Tensor>> forward(const Tensor& input,
                                                         const std::tuple<Tensor, Tensor>& states = {});
};
TELETENSOR_MODULE(LSTM);

class GRUImpl : public RecurrentBase {
 public:
  GRUImpl(int64_t input_size, int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  explicit GRUImpl(const GRUOptions& options) : RecurrentBase(options, "GRU", 3) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& state = Tensor());
};
TELETENSOR_MODULE(GRU);

class RNNImpl : public RecurrentBase {
 public:
  RNNImpl(int64_t input_size, int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  explicit RNNImpl(const RNNOptions& options);
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& state = Tensor());
};
TELETENSOR_MODULE(RNN);

}  // namespace teletensor::nn
