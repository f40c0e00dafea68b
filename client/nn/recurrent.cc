#include "client/nn/recurrent.h"

#include <cmath>
#include <ostream>

#include "client/api/creation.h"
#include "client/api/operators.h"
#include "client/nn/init.h"

namespace teletensor::nn {

RecurrentBase::RecurrentBase(const RecurrentOptions& options, const char* name, int64_t gates)
    : Module(name), options(options) {
  if (options.hidden_size() <= 0) throw ValueError("hidden_size must be greater than zero");
  if (options.num_layers() <= 0) throw ValueError("num_layers must be greater than zero");
  const int64_t rows = gates * options.hidden_size(), directions = options.bidirectional() ? 2 : 1;
  for (int64_t layer = 0; layer < options.num_layers(); ++layer) {
    const int64_t entering = layer == 0 ? options.input_size() : options.hidden_size() * directions;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      weights_.push_back(register_parameter("weight_ih" + suffix, empty({rows, entering})));
      weights_.push_back(register_parameter("weight_hh" + suffix, empty({rows, options.hidden_size()})));
      if (!options.bias()) continue;
      weights_.push_back(register_parameter("bias_ih" + suffix, empty(rows)));
      weights_.push_back(register_parameter("bias_hh" + suffix, empty(rows)));
    }
  }
  reset_parameters();
}

void RecurrentBase::reset_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(options.hidden_size()));
  for (const Tensor& weight : weights_) init::uniform_(weight, -bound, bound);
}

void RecurrentBase::pretty_print(std::ostream& stream) const {
  stream << name() << '(' << options.input_size() << ", " << options.hidden_size()
         << ", num_layers=" << options.num_layers() << ')';
}

Tensor RecurrentBase::batched(const Tensor& input) const {
  if (input.dim() != 2 && input.dim() != 3) {
    throw ValueError(name() + ": Expected input to be 2D or 3D, got " + std::to_string(input.dim()) + "D instead");
  }
  if (input.size(-1) != options.input_size()) {
    throw RuntimeError("input.size(-1) must be equal to input_size. Expected " + std::to_string(options.input_size()) +
                       ", got " + std::to_string(input.size(-1)));
  }
  return input.dim() == 3 ? input : input.unsqueeze(options.batch_first() ? 0 : 1);
}

Tensor RecurrentBase::state(const Tensor& given, const Tensor& input) const {
  const bool single = input.dim() == 2;
  const int64_t batch = single ? 1 : input.size(options.batch_first() ? 0 : 1);
  const int64_t layers = options.num_layers() * (options.bidirectional() ? 2 : 1);
  if (!given.defined()) return input.new_zeros({layers, batch, options.hidden_size()});
  const Tensor state = single && given.dim() == 2 ? given.unsqueeze(1) : given;
  const IntArrayRef expected = {layers, batch, options.hidden_size()};
  if (!(state.sizes() == expected)) {
    throw RuntimeError("Expected hidden size (" + std::to_string(layers) + ", " + std::to_string(batch) + ", " +
                       std::to_string(options.hidden_size()) + "), got " + tt::to_string(given.sizes().span()));
  }
  return state;
}

Tensor RecurrentBase::without_batch(const Tensor& tensor, bool is_state) const {
  return tensor.squeeze(is_state || !options.batch_first() ? 1 : 0);
}

std::tuple<Tensor, std::tuple<Tensor, Tensor>> LSTMImpl::forward(const Tensor& input,
                                                                 const std::tuple<Tensor, Tensor>& states) {
  const Tensor h = state(std::get<0>(states), input), c = state(std::get<1>(states), input);
  auto [output, h_n, c_n] = ops::lstm(batched(input), {h, c}, weights_, {}, options.bias(), options.num_layers(),
                                      options.dropout(), is_training(), options.bidirectional(), options.batch_first());
  if (input.dim() == 3) return {output, {h_n, c_n}};
  return {without_batch(output, false), {without_batch(h_n, true), without_batch(c_n, true)}};
}

std::tuple<Tensor, Tensor> GRUImpl::forward(const Tensor& input, const Tensor& given) {
  auto [output, h_n] = ops::gru(batched(input), state(given, input), weights_, {}, options.bias(), options.num_layers(),
                                options.dropout(), is_training(), options.bidirectional(), options.batch_first());
  if (input.dim() == 3) return {output, h_n};
  return {without_batch(output, false), without_batch(h_n, true)};
}

RNNImpl::RNNImpl(const RNNOptions& options) : RecurrentBase(options, "RNN", 1) {
  if (options.nonlinearity() != "tanh" && options.nonlinearity() != "relu") {
    throw ValueError("Unknown nonlinearity '" + options.nonlinearity() + "'. Select from 'tanh' or 'relu'.");
  }
}
std::tuple<Tensor, Tensor> RNNImpl::forward(const Tensor& input, const Tensor& given) {
  auto [output, h_n] =
      ops::rnn(batched(input), state(given, input), weights_, {}, options.nonlinearity(), options.bias(),
               options.num_layers(), options.dropout(), is_training(), options.bidirectional(), options.batch_first());
  if (input.dim() == 3) return {output, h_n};
  return {without_batch(output, false), without_batch(h_n, true)};
}

}  // namespace teletensor::nn
