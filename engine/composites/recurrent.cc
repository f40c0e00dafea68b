#include "engine/composites/recurrent.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "engine/dispatch/ops.h"

namespace tt::composites {
namespace {

// The weights of one layer in one direction; absent ones are undefined.
struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;

  Weights(const Tensors& params, bool has_biases, bool has_projection, size_t which) {
    const size_t each = (has_biases ? 4 : 2) + (has_projection ? 1 : 0), from = which * each;
    w_ih = params[from];
    w_hh = params[from + 1];
    if (has_biases) {
      b_ih = params[from + 2];
      b_hh = params[from + 3];
    }
    if (has_projection) w_hr = params[from + each - 1];
  }
};

// Computes one step: maps `input_product` (the step's input times w_ih, plus b_ih) and the states (h, and for an LSTM
// c) to the next states.
using Step = absl::FunctionRef<Tensors(const Tensor& input_product, const Tensors& states, const Weights& weights)>;

Tensor rows(const Tensor& t, int64_t from, int64_t to) { return ops::narrow(t, 0, from, to - from); }

// The states of the sequences that are still running, and the last states of those that have ended.
class States {
 public:
  States(Tensors initial, int64_t running) : initial_(std::move(initial)), now_(initial_), running_(running) {
    for (Tensor& state : now_) state = rows(state, 0, running);
  }
  const Tensors& now() const { return now_; }
  void set(Tensors next) { now_ = std::move(next); }
  // Changes the number of running sequences to `count`: the shortest ones end (sequences are sorted by decreasing
  // length), or further ones begin.
  void resize(int64_t count) {
    if (count < running_) {
      for (size_t i = 0; i < now_.size(); ++i) {
        if (ended_.size() <= i) ended_.emplace_back();
        ended_[i].insert(ended_[i].begin(), rows(now_[i], count, running_));
        now_[i] = rows(now_[i], 0, count);
      }
    } else if (count > running_) {
      for (size_t i = 0; i < now_.size(); ++i) {
        now_[i] = ops::cat(Tensors{now_[i], rows(initial_[i], running_, count)}, 0);
      }
    }
    running_ = count;
  }
  // The last states of all sequences, in order.
  Tensors last() const {
    Tensors all;
    for (size_t i = 0; i < now_.size(); ++i) {
      if (ended_.empty()) {
        all.push_back(now_[i]);
        continue;
      }
      Tensors parts = ended_[i];
      parts.insert(parts.begin(), now_[i]);
      all.push_back(ops::cat(parts, 0));
    }
    return all;
  }

 private:
  Tensors initial_, now_;
  std::vector<Tensors> ended_;  // for each state, the last values of the ended sequences
  int64_t running_;
};

// Runs one layer in one direction over (steps, batch, features) or packed rows. Returns outputs in the same layout, and
// the last states.
std::pair<Tensor, Tensors> run_layer(const Tensor& input, const Tensors& initial, const Weights& weights,
                                     SizesView batch_sizes, bool backwards, Step step) {
  const Tensor input_product = ops::linear(input, weights.w_ih, weights.b_ih);
  const bool packed = !batch_sizes.empty();
  Tensors steps = packed ? ops::split_with_sizes(input_product, batch_sizes, 0) : ops::unbind(input_product, 0);
  const int64_t first = packed ? backwards ? batch_sizes.back() : batch_sizes.front() : initial[0].size(0);
  States states(initial, first);
  Tensors outputs(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const size_t t = backwards ? steps.size() - 1 - i : i;
    if (packed) states.resize(batch_sizes[t]);
    states.set(step(steps[t], states.now(), weights));
    outputs[t] = states.now()[0];
  }
  return {packed ? ops::cat(outputs, 0) : ops::stack(outputs, 0), states.last()};
}

// Whether lstm_sequence, a CPU operator, can run the layer: sequences of one length, all tensors of one dtype.
bool runs_as_sequence(const Tensor& input, const Tensors& hx, const Weights& w, SizesView batch_sizes) {
  const DType dtype = input.dtype();
  if (hx.size() != 2 || !batch_sizes.empty() || w.w_hr) return false;
  if (input.device().type != DeviceType::kCPU || (dtype != DType::kFloat32 && dtype != DType::kFloat64)) return false;
  if (input.dim() != 3 || w.w_ih.dim() != 2 || w.w_hh.dim() != 2) return false;
  const int64_t n = w.w_hh.size(1);
  if (w.w_ih.size(0) != 4 * n || w.w_hh.size(0) != 4 * n || n == 0 || input.size(1) == 0) return false;
  const auto fits = [&](const Tensor& t, SizesView sizes) { return t.dtype() == dtype && t.sizes() == sizes; };
  return fits(hx[0], Sizes{input.size(1), n}) && fits(hx[1], Sizes{input.size(1), n}) && w.w_hh.dtype() == dtype &&
         w.w_ih.dtype() == dtype && (!w.b_ih || (fits(w.b_ih, Sizes{4 * n}) && fits(w.b_hh, Sizes{4 * n})));
}

// Runs an LSTM layer in one direction with lstm_sequence. Returns the output and the last states. Uses one product for
// the inputs of all steps.
std::pair<Tensor, Tensors> run_sequence(const Tensor& input, const Tensors& initial, const Weights& w, bool backwards) {
  const Tensor bias = w.b_ih ? ops::add(w.b_ih, w.b_hh) : Tensor();
  const Tensor input_product = ops::linear(input, w.w_ih, bias);
  const Tensors all = ops::lstm_sequence(input_product, initial[0], initial[1], w.w_hh, backwards);
  const int64_t last = backwards ? 0 : input.size(0) - 1;
  return {all[0], {ops::select(all[0], 0, last), ops::select(all[1], 0, last)}};
}

// Runs all layers. Returns the outputs, then each state stacked by layer and direction.
Tensors run_layers(const Tensor& input, const Tensors& hx, const Tensors& params, SizesView batch_sizes,
                   bool has_biases, int64_t num_layers, double dropout, bool bidirectional, bool batch_first,
                   Step step) {
  const int64_t directions = bidirectional ? 2 : 1;
  const auto each = static_cast<int64_t>(params.size()) / (num_layers * directions);
  const bool has_projection = each % 2 == 1;
  check(each * num_layers * directions == static_cast<int64_t>(params.size()) &&
            each == (has_biases ? 4 : 2) + has_projection,
        "the number of weights does not match ", num_layers, " layers in ", directions, " directions, got ",
        params.size());
  const bool swap = batch_first && batch_sizes.empty();
  Tensor x = swap ? ops::transpose(input, 0, 1) : input;
  check(batch_sizes.empty() ? x.size(0) > 0 : true, "Expected sequence length to be larger than 0 in RNN");
  std::vector<Tensors> last(hx.size());
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    Tensors outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t which = layer * directions + direction;
      const Weights weights(params, has_biases, has_projection, static_cast<size_t>(which));
      Tensors initial;
      for (const Tensor& state : hx) initial.push_back(ops::select(state, 0, which));
      const bool sequence = runs_as_sequence(x, initial, weights, batch_sizes);
      auto [output, states] = sequence ? run_sequence(x, initial, weights, direction == 1)
                                       : run_layer(x, initial, weights, batch_sizes, direction == 1, step);
      outputs.push_back(output);
      for (size_t i = 0; i < states.size(); ++i) last[i].push_back(states[i]);
    }
    x = directions == 1 ? outputs[0] : ops::cat(outputs, -1);
    if (dropout > 0 && layer + 1 < num_layers) x = ops::dropout(x, dropout, true);
  }
  Tensors results{swap ? ops::transpose(x, 0, 1) : x};
  for (const Tensors& states : last) results.push_back(ops::stack(states, 0));
  return results;
}

}  // namespace

namespace {

// Splits the last dimension into `count` gates. Throws Error if its size is not a multiple of `count`.
Tensors split_gates(const Tensor& gates, int64_t count) {
  check(gates.dim() > 0 && gates.size(-1) % count == 0, "expected weights for ", count, " gates, got gates of sizes ",
        gates.sizes());
  return ops::chunk(gates, count, -1);
}

}  // namespace

Tensors lstm_step(const Tensor& input_product, const Tensors& hx, const Tensor& w_hh, const Tensor& b_hh,
                  const Tensor& w_hr) {
  const Tensors gates = split_gates(ops::add(input_product, ops::linear(hx[0], w_hh, b_hh)), 4);
  const Tensor state = ops::lstm_state(gates[0], gates[1], gates[2], hx[1]);
  const Tensor output = ops::lstm_exit(gates[3], state);
  return {w_hr ? ops::linear(output, w_hr, Operand()) : output, state};
}

Tensor gru_step(const Tensor& input_product, const Tensor& hx, const Tensor& w_hh, const Tensor& b_hh) {
  const Tensors in = split_gates(input_product, 3), kept = split_gates(ops::linear(hx, w_hh, b_hh), 3);
  const Tensor reset = ops::sigmoid(ops::add(in[0], kept[0])), update = ops::sigmoid(ops::add(in[1], kept[1]));
  const Tensor candidate = ops::tanh(ops::addcmul(in[2], reset, kept[2]));
  return ops::lerp(candidate, hx, update);
}

Tensors lstm_layers(const Tensor& input, const Tensors& hx, const Tensors& params, SizesView batch_sizes,
                    bool has_biases, int64_t num_layers, double dropout, bool bidirectional, bool batch_first) {
  return run_layers(input, hx, params, batch_sizes, has_biases, num_layers, dropout, bidirectional, batch_first,
                    [](const Tensor& input_product, const Tensors& states, const Weights& w) {
                      return lstm_step(input_product, states, w.w_hh, w.b_hh, w.w_hr);
                    });
}

Tensors gru_layers(const Tensor& input, const Tensor& hx, const Tensors& params, SizesView batch_sizes, bool has_biases,
                   int64_t num_layers, double dropout, bool bidirectional, bool batch_first) {
  return run_layers(input, {hx}, params, batch_sizes, has_biases, num_layers, dropout, bidirectional, batch_first,
                    [](const Tensor& input_product, const Tensors& states, const Weights& w) {
                      return Tensors{gru_step(input_product, states[0], w.w_hh, w.b_hh)};
                    });
}

Tensors rnn_layers(const Tensor& input, const Tensor& hx, const Tensors& params, SizesView batch_sizes,
                   std::string_view nonlinearity, bool has_biases, int64_t num_layers, double dropout,
                   bool bidirectional, bool batch_first) {
  const bool relu = nonlinearity == "relu";
  check(ErrorKind::kValue, relu || nonlinearity == "tanh", "Unknown nonlinearity '", nonlinearity, "'");
  return run_layers(input, {hx}, params, batch_sizes, has_biases, num_layers, dropout, bidirectional, batch_first,
                    [&](const Tensor& input_product, const Tensors& states, const Weights& w) {
                      const Tensor sum = ops::add(input_product, ops::linear(states[0], w.w_hh, w.b_hh));
                      return Tensors{relu ? ops::relu(sum) : ops::tanh(sum)};
                    });
}

}  // namespace tt::composites
