// Functions called by the composites of recurrent layers, in addition to operators.
//
// Weights are listed per layer and direction: w_ih, w_hh, then b_ih and b_hh (with biases), then w_hr (with
// projections). For a packed input, `batch_sizes` has the number of sequences at each step; otherwise it is empty.
// Throws Error if the lists are inconsistent.
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

// Compute one step. `input_product` is the product of the input with w_ih, plus b_ih.
Tensors lstm_step(const Tensor& input_product, const Tensors& hx, const Tensor& w_hh, const Tensor& b_hh,
                  const Tensor& w_hr);
Tensor gru_step(const Tensor& input_product, const Tensor& hx, const Tensor& w_hh, const Tensor& b_hh);

}  // namespace tt::composites
