// What the composites of recurrent layers call beside operators.
//
// Weights come a layer and direction after the other: w_ih, w_hh, with biases b_ih and b_hh, with projections
// w_hr. `batch_sizes` is empty, or says how many of a packed input's sequences reach each step. Throws Error
// where the lists do not fit each other.
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

Tensors lstm_layers(const Tensor& input, const Tensors& hx, const Tensors& params, SizesView batch_sizes,
                    bool has_biases, int64_t num_layers, double dropout, bool bidirectional, bool batch_first);
Tensors gru_layers(const Tensor& input, const Tensor& hx, const Tensors& params, SizesView batch_sizes, bool has_biases,
                   int64_t num_layers, double dropout, bool bidirectional, bool batch_first);
Tensors rnn_layers(const Tensor& input, const Tensor& hx, const Tensors& params, SizesView batch_sizes,
                   std::string_view nonlinearity, bool has_biases, int64_t num_layers, double dropout,
                   bool bidirectional, bool batch_first);

// One step; `entered` is the input's product with its weights.
Tensors lstm_step(const Tensor& entered, const Tensors& hx, const Tensor& w_hh, const Tensor& b_hh, const Tensor& w_hr);
Tensor gru_step(const Tensor& entered, const Tensor& hx, const Tensor& w_hh, const Tensor& b_hh);

}  // namespace tt::composites
