// An LSTM layer over all time steps. Threads process separate sequences, so they synchronise only once per layer.
#include <algorithm>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "kernels/cpu/blas/product.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/iteration/chain.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

constexpr int64_t kRowsPerThread = 8;  // with fewer sequences, reading the weights dominates

// y = f(x) for an operator with one input; y may equal x.
template <typename T>
void map(uint16_t op, int64_t n, const T* x, T* y) {
  const ScalarArgs<T> none{};
  if constexpr (std::is_same_v<T, float>)
    row_of(op).f32(n, &x, y, none);
  else
    row_of(op).f64(n, &x, y, none);
}

// The gates of one sequence at one step: input, forget, candidate and output gate, with `n` elements each.
template <typename T>
struct Gates {
  T *input, *forget, *candidate, *output;

  Gates(T* all, int64_t n) : input(all), forget(all + n), candidate(all + 2 * n), output(all + 3 * n) {}
};

template <typename T>
TT_CLONES void add_row(T* __restrict to, const T* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

template <typename T>
TT_CLONES void next_state(const T* __restrict input, const T* __restrict forget, const T* __restrict candidate,
                          const T* __restrict before, T* __restrict state, int64_t n) {
  for (int64_t i = 0; i < n; ++i) state[i] = forget[i] * before[i] + input[i] * candidate[i];
}

template <typename T>
TT_CLONES void multiply_row(T* __restrict to, const T* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] *= from[i];
}

// Computes the gradients of the gates before their activation and of the previous state, from the gradients of the
// output and the state. `shown` is tanh(state).
template <typename T>
TT_CLONES void gate_gradients(const T* __restrict gates, const T* __restrict before, const T* __restrict shown,
                              const T* __restrict output_grad, T* __restrict state_grad, T* __restrict gate_grads,
                              int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T input_gate = gates[i], forget = gates[n + i], candidate = gates[2 * n + i], output_gate = gates[3 * n + i];
    const T dh = output_grad[i], dc = state_grad[i] + dh * output_gate * (1 - shown[i] * shown[i]);
    gate_grads[i] = dc * candidate * input_gate * (1 - input_gate);
    gate_grads[n + i] = dc * before[i] * forget * (1 - forget);
    gate_grads[2 * n + i] = dc * input_gate * (1 - candidate * candidate);
    gate_grads[3 * n + i] = dh * shown[i] * output_gate * (1 - output_gate);
    state_grad[i] = dc * forget;
  }
}

// Throws Error (RuntimeError) unless the operands' sizes match the gates: (steps, sequences, 4 * n).
void check_sizes(const Tensor& gates, const Tensor& w_hh, std::initializer_list<const Tensor*> states,
                 std::initializer_list<const Tensor*> sequences) {
  check(gates.dim() == 3 && w_hh.dim() == 2 && gates.size(2) == w_hh.size(0) && w_hh.size(0) == 4 * w_hh.size(1),
        "expected gates (steps, sequences, 4 * n) and weights (4 * n, n), got ", gates.sizes(), " and ", w_hh.sizes());
  const int64_t n = w_hh.size(1);
  for (const Tensor* t : states) {
    check(t->sizes() == SizesView(Sizes{gates.size(1), n}), "expected states (sequences, n), got ", t->sizes());
  }
  for (const Tensor* t : sequences) {
    check(t->sizes() == SizesView(Sizes{gates.size(0), gates.size(1), n}),
          "expected states (steps, sequences, n), got ", t->sizes());
  }
}

// Calls body(first, last) for ranges of sequences, in parallel.
template <typename Body>
void each_sequences(int64_t sequences, Body body) {
  parallel_for(sequences, std::max(kRowsPerThread, (sequences + num_threads() - 1) / num_threads()), body);
}

}  // namespace

void lstm_sequence(const Tensor& input_gates, const Tensor& h, const Tensor& c, const Tensor& w_hh, bool reverse,
                   Tensor& output, Tensor& states, Tensor& gates) {
  check_sizes(input_gates, w_hh, {&h, &c}, {});
  const int64_t steps = input_gates.size(0), sequences = input_gates.size(1), n = w_hh.size(1);
  if (output.numel() == 0) return;
  const Tensor in = contiguous(input_gates), h0 = contiguous(h), c0 = contiguous(c), weights = contiguous(w_hh);
  with_real(output.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Matrix transposed_weights{weights.data(), 1, n};
    each_sequences(sequences, [&](int64_t first, int64_t last) {
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t t = reverse ? steps - 1 - i : i, before = reverse ? t + 1 : t - 1;
        const int64_t row = t * sequences, row_before = before * sequences;
        const T* h_before = i == 0 ? h0.data_as<T>() : output.data_as<T>() + row_before * n;
        const T* c_before = i == 0 ? c0.data_as<T>() : states.data_as<T>() + row_before * n;
        T* all = gates.data_as<T>() + (row + first) * 4 * n;
        product({output.dtype(), last - first, 4 * n, n, {h_before + first * n, n, 1}, transposed_weights, all},
                nullptr, &weights);
        for (int64_t s = first; s < last; ++s) {
          T* own = gates.data_as<T>() + (row + s) * 4 * n;
          T *state = states.data_as<T>() + (row + s) * n, *shown = output.data_as<T>() + (row + s) * n;
          add_row(own, in.data_as<T>() + (row + s) * 4 * n, 4 * n);
          const Gates<T> g(own, n);
          map(op_id::kSigmoid, 2 * n, g.input, g.input);
          map(op_id::kTanh, n, g.candidate, g.candidate);
          map(op_id::kSigmoid, n, g.output, g.output);
          next_state(g.input, g.forget, g.candidate, c_before + s * n, state, n);
          map(op_id::kTanh, n, state, shown);
          multiply_row(shown, g.output, n);
        }
      }
    });
  });
}

void lstm_sequence_backward(const Tensor& output_grad, const Tensor& states_grad, const Tensor& c, const Tensor& w_hh,
                            const Tensor& states, const Tensor& gates, bool reverse, Tensor& entered_grad,
                            Tensor& h_grad, Tensor& c_grad) {
  check_sizes(gates, w_hh, {&c}, {&output_grad, &states_grad, &states});
  const int64_t steps = gates.size(0), sequences = gates.size(1), n = w_hh.size(1);
  if (h_grad.numel() == 0) return;
  const Tensor gh = contiguous(output_grad), gc = contiguous(states_grad), c0 = contiguous(c);
  const Tensor weights = contiguous(w_hh), all_states = contiguous(states), all_gates = contiguous(gates);
  with_real(h_grad.dtype(), [&]<typename T>(std::type_identity<T>) {
    T *dh = h_grad.data_as<T>(), *dc = c_grad.data_as<T>();
    std::fill_n(dh, sequences * n, T(0));
    std::fill_n(dc, sequences * n, T(0));
    each_sequences(sequences, [&](int64_t first, int64_t last) {
      std::vector<T> shown(static_cast<size_t>(n));
      for (int64_t i = steps; i-- > 0;) {
        const int64_t t = reverse ? steps - 1 - i : i, before = reverse ? t + 1 : t - 1;
        const int64_t row = t * sequences;
        const T* c_before = i == 0 ? c0.data_as<T>() : all_states.data_as<T>() + before * sequences * n;
        T* grads = entered_grad.data_as<T>() + row * 4 * n;
        for (int64_t s = first; s < last; ++s) {
          add_row(dh + s * n, gh.data_as<T>() + (row + s) * n, n);
          add_row(dc + s * n, gc.data_as<T>() + (row + s) * n, n);
          map(op_id::kTanh, n, all_states.data_as<T>() + (row + s) * n, shown.data());
          gate_gradients(all_gates.data_as<T>() + (row + s) * 4 * n, c_before + s * n, shown.data(), dh + s * n,
                         dc + s * n, grads + s * 4 * n, n);
        }
        product({h_grad.dtype(),
                 last - first,
                 n,
                 4 * n,
                 {grads + first * 4 * n, 4 * n, 1},
                 {weights.data(), n, 1},
                 dh + first * n},
                nullptr, &weights);
      }
    });
  });
}

}  // namespace tt::cpu
