// example::swiglu(x, gate) = x * gate * sigmoid(beta * gate), with its gradient, as a shared object for
// teletensord --operators. docs/cpp-operators.md explains each part.
#include <cmath>

#include "teletensor_operator.h"

namespace {

struct Memory {  // of one call
  const void *g, *x, *gate;
  void *first, *second;
  double beta;
};

template <typename T>
void forward(void* memory, int64_t begin, int64_t end) {
  const Memory& m = *static_cast<const Memory*>(memory);
  const T *x = static_cast<const T*>(m.x), *gate = static_cast<const T*>(m.gate), beta = static_cast<T>(m.beta);
  for (int64_t i = begin; i < end; ++i) static_cast<T*>(m.first)[i] = x[i] * gate[i] / (1 + std::exp(-beta * gate[i]));
}

template <typename T>
void backward(void* memory, int64_t begin, int64_t end) {
  const Memory& m = *static_cast<const Memory*>(memory);
  const T *g = static_cast<const T*>(m.g), *x = static_cast<const T*>(m.x), *gate = static_cast<const T*>(m.gate);
  for (int64_t i = begin; i < end; ++i) {
    const T beta = static_cast<T>(m.beta), s = 1 / (1 + std::exp(-beta * gate[i]));
    static_cast<T*>(m.first)[i] = g[i] * gate[i] * s;
    static_cast<T*>(m.second)[i] = g[i] * x[i] * s * (1 + beta * gate[i] * (1 - s));
  }
}

int run(const teletensor_host* host, teletensor_call* call, bool is_backward) {
  const int first = is_backward ? 1 : 0;  // the argument x; g is before it
  const auto *g = host->tensor(call, 0), *x = host->tensor(call, first), *gate = host->tensor(call, first + 1);
  const int type = x->dtype;
  if (g->dtype != type || gate->dtype != type || (type != TELETENSOR_FLOAT32 && type != TELETENSOR_FLOAT64))
    return host->fail(call, "expected tensors of float32 or of float64");  // clients may call backward, too
  Memory m{nullptr, x->data, gate->data, host->result(call, 0)->data, nullptr, host->number(call, first + 2)};
  if (is_backward) m.g = g->data, m.second = host->result(call, 1)->data;
  const bool is_float = type == TELETENSOR_FLOAT32;
  const teletensor_loop loop =
      is_backward ? (is_float ? backward<float> : backward<double>) : (is_float ? forward<float> : forward<double>);
  return host->parallel_for(call, x->numel, 4096, loop, &m);
}
int cpu(const teletensor_host* host, teletensor_call* call) { return run(host, call, false); }
int cpu_backward(const teletensor_host* host, teletensor_call* call) { return run(host, call, true); }

const teletensor_operator kOperators[] = {
    {"example::swiglu(Tensor x, Tensor gate, *, float beta=1.0) -> Tensor", "x * gate * sigmoid(beta * gate).",
     "equal(x, gate)", "same(x)", nullptr, cpu, nullptr, nullptr, "x, gate: example::swiglu_backward(g, x, gate, beta)",
     0},
    {"example::swiglu_backward(Tensor g, Tensor x, Tensor gate, float beta) -> (Tensor, Tensor)", nullptr,
     "equal(x, g); equal(x, gate)", "same(x); same(gate)", nullptr, cpu_backward, nullptr, nullptr, nullptr, 0}};
const teletensor_library kLibrary = {TELETENSOR_OPERATOR_ABI, sizeof(teletensor_operator), "swiglu 1", kOperators, 2};

}  // namespace

const teletensor_library* teletensor_operators(const teletensor_host*) { return &kLibrary; }
