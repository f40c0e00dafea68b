// The operators of the tests of this folder.
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "teletensor_operator.h"

namespace {

using Host = const teletensor_host*;
using Call = teletensor_call*;

int64_t as_int(double value) { return static_cast<int64_t>(value); }

// a + scale * b, broadcast, of float32, float64 and int64.
template <typename T>
int add_elements(Host host, Call call) {
  const teletensor_tensor *a = host->tensor(call, 0), *b = host->tensor(call, 1), *out = host->result(call, 0);
  const double scale = host->number(call, 2);
  for (int64_t i = 0; i < out->numel; ++i) {
    int64_t left = i, at_a = 0, at_b = 0;
    for (int64_t d = out->dim - 1; d >= 0; --d) {
      const int64_t index = left % out->sizes[d];
      left /= out->sizes[d];
      const int64_t da = d - (out->dim - a->dim), db = d - (out->dim - b->dim);
      if (da >= 0 && a->sizes[da] > 1) at_a += index * a->strides[da];
      if (db >= 0 && b->sizes[db] > 1) at_b += index * b->strides[db];
    }
    static_cast<T*>(out->data)[i] =
        static_cast<T>(static_cast<const T*>(a->data)[at_a] + scale * static_cast<const T*>(b->data)[at_b]);
  }
  return 0;
}
int scaled_add(Host host, Call call) {
  if (host->tensor(call, 0)->dtype != host->tensor(call, 1)->dtype) return host->fail(call, "expected one dtype");
  switch (host->tensor(call, 0)->dtype) {
    case TELETENSOR_FLOAT32: return add_elements<float>(host, call);
    case TELETENSOR_FLOAT64: return add_elements<double>(host, call);
    case TELETENSOR_INT64: return add_elements<int64_t>(host, call);
    default: return host->fail(call, "expected float32, float64 or int64");
  }
}

// x ** 3 of float64, whose gradient is an operator with a gradient of its own.
int cube(Host host, Call call) {
  const teletensor_tensor *x = host->tensor(call, 0), *out = host->result(call, 0);
  if (x->dtype != TELETENSOR_FLOAT64) return host->fail(call, "expected float64");
  for (int64_t i = 0; i < x->numel; ++i) {
    const double v = static_cast<const double*>(x->data)[i];
    static_cast<double*>(out->data)[i] = v * v * v;
  }
  return 0;
}
int cube_backward(Host host, Call call) {
  const teletensor_tensor *g = host->tensor(call, 0), *x = host->tensor(call, 1), *out = host->result(call, 0);
  if (g->dtype != TELETENSOR_FLOAT64 || x->dtype != TELETENSOR_FLOAT64) return host->fail(call, "expected float64");
  for (int64_t i = 0; i < x->numel; ++i) {
    const double v = static_cast<const double*>(x->data)[i];
    static_cast<double*>(out->data)[i] = static_cast<const double*>(g->data)[i] * 3 * v * v;
  }
  return 0;
}

// The elements of a, times[0] + ... times: the rule is a function.
int repeat_rule(Host host, Call call) {
  const teletensor_tensor* x = host->tensor(call, 0);
  if (x->dim != 1) return host->fail(call, "expected a vector");
  int64_t total = 0;
  for (int64_t i = 0; i < host->length(call, 1); ++i) total += host->integers(call, 1)[i];
  const int64_t sizes[] = {total, x->sizes[0]};
  return host->set_result(call, 0, sizes, 2, x->dtype);
}
int repeat(Host host, Call call) {
  const teletensor_tensor *x = host->tensor(call, 0), *out = host->result(call, 0);
  if (x->dtype != TELETENSOR_FLOAT32) return host->fail(call, "expected float32");
  for (int64_t i = 0; i < out->numel; ++i)
    static_cast<float*>(out->data)[i] = static_cast<const float*>(x->data)[i % x->sizes[0]];
  return 0;
}

// The lengths and numbers of every kind of argument, and which ones are None.
int describe(Host host, Call call) {
  auto* out = static_cast<double*>(host->result(call, 0)->data);
  out[0] = static_cast<double>(host->tensor(call, 0)->numel);
  out[1] = host->is_none(call, 1) ? -1 : static_cast<double>(host->tensor(call, 1)->numel);
  out[2] = 0;
  for (int64_t i = 0; i < host->length(call, 2); ++i)
    out[2] += static_cast<double>(host->list_tensor(call, 2, i)->numel);
  out[3] = static_cast<double>(host->integer(call, 3));
  out[4] = host->number(call, 4);
  out[5] = static_cast<double>(host->integer(call, 5));
  out[6] = host->is_none(call, 6) ? -1 : host->number(call, 6);
  out[7] = static_cast<double>(host->length(call, 7));
  out[8] = host->length(call, 8) > 0 ? host->numbers(call, 8)[0] : -1;
  out[9] = host->length(call, 9) > 0 ? host->text(call, 9)[0] : -1;
  out[10] = static_cast<double>(host->integer(call, 10));
  out[11] = host->number(call, 11);
  return 0;
}

// The strides that the kernel sees.
int strides(Host host, Call call) {
  const teletensor_tensor* x = host->tensor(call, 0);
  for (int64_t d = 0; d < x->dim; ++d) static_cast<int64_t*>(host->result(call, 0)->data)[d] = x->strides[d];
  return 0;
}

int throwing(Host, Call) { throw std::runtime_error("thrown on purpose"); }
int throwing_int(Host, Call) { throw 7; }
int throwing_rule(Host, Call) { throw std::runtime_error("thrown by a rule"); }
int failing(Host, Call) { return 3; }
int nothing(Host, Call) { return 0; }
int negative_rule(Host host, Call call) {
  const int64_t sizes[] = {-1};
  return host->set_result(call, 0, sizes, 1, TELETENSOR_FLOAT32);
}
int huge_rule(Host host, Call call) {
  const int64_t sizes[] = {int64_t{1} << 40, int64_t{1} << 20};
  return host->set_result(call, 0, sizes, 2, TELETENSOR_FLOAT32);
}
int overflowing_rule(Host host, Call call) {
  const int64_t sizes[] = {int64_t{1} << 40, int64_t{1} << 40};
  return host->set_result(call, 0, sizes, 2, TELETENSOR_FLOAT32);
}
int dtype_rule(Host host, Call call) { return host->set_result(call, 0, nullptr, 0, 99); }

int greedy(Host host, Call call) {  // as many bytes as the argument says
  return host->allocate(call, host->integer(call, 1)) == nullptr;
}

int endless(Host host, Call call) {  // until it is cancelled
  volatile double sum = 0;
  while (!host->cancelled(call)) sum = sum + 1;
  return 1;
}
void add_one(void* context, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) static_cast<float*>(context)[i] += 1;
}
int parallel(Host host, Call call) {
  const teletensor_tensor *x = host->tensor(call, 0), *out = host->result(call, 0);
  if (x->dtype != TELETENSOR_FLOAT32) return host->fail(call, "expected float32");
  for (int64_t i = 0; i < x->numel; ++i) static_cast<float*>(out->data)[i] = static_cast<const float*>(x->data)[i];
  return host->parallel_for(call, x->numel, 16, add_one, out->data);
}

teletensor_operator op(const char* schema, const char* shape, const char* dtype, teletensor_function cpu,
                       const char* gradient = nullptr, teletensor_function rule = nullptr, uint32_t flags = 0) {
  return {schema, "An operator of the tests.", shape, dtype, rule, cpu, nullptr, nullptr, gradient, flags};
}
teletensor_operator body(const char* schema, const char* text) {
  return {schema, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, text, nullptr, 0};
}

const teletensor_operator kOperators[] = {
    op("check::scaled_add(Tensor a, Tensor b, *, float scale=1.0) -> Tensor", "broadcast(a, b)", "promote(a, b)",
       scaled_add, "a: g; b: g * scale"),
    op("check::cube(Tensor x) -> Tensor", "same(x)", "same(x)", cube, "x: check::cube_backward(g, x)"),
    op("check::cube_backward(Tensor g, Tensor x) -> Tensor", "equal(x, g)", "same(x)", cube_backward,
       "g: g0 * 3 * x * x; x: g0 * g * 6 * x"),
    op("check::repeat(Tensor x, int[] times) -> Tensor", nullptr, nullptr, repeat, "x: sum(g, 0); ", repeat_rule),
    op("check::describe(Tensor a, Tensor? b=None, Tensor[] c=[], int d=4, float e=0.5, bool f=True, int? g=None, "
       "int[] h=[1, 2], float[] i=[2.5], str j=\"word\", ScalarType k=float64, Scalar l=3) -> Tensor",
       "[12]", "float64", describe, "none"),
    op("check::strides(Tensor x) -> Tensor", "[x.dim()]", "int64", strides, "none"),
    op("check::any_strides(Tensor x) -> Tensor", "[x.dim()]", "int64", strides, "none", nullptr,
       TELETENSOR_ANY_STRIDES),
    op("check::no_gradient(Tensor x) -> Tensor", "same(x)", "same(x)", nothing),
    op("check::throwing(Tensor x) -> Tensor", "same(x)", "same(x)", throwing, "none"),
    op("check::throwing_int(Tensor x) -> Tensor", "same(x)", "same(x)", throwing_int, "none"),
    op("check::throwing_rule(Tensor x) -> Tensor", nullptr, nullptr, nothing, "none", throwing_rule),
    op("check::failing(Tensor x) -> Tensor", "same(x)", "same(x)", failing, "none"),
    op("check::silent_rule(Tensor x) -> Tensor", nullptr, nullptr, nothing, "none", nothing),
    op("check::negative_rule(Tensor x) -> Tensor", nullptr, nullptr, nothing, "none", negative_rule),
    op("check::huge_rule(Tensor x) -> Tensor", nullptr, nullptr, nothing, "none", huge_rule),
    op("check::overflowing_rule(Tensor x) -> Tensor", nullptr, nullptr, nothing, "none", overflowing_rule),
    op("check::dtype_rule(Tensor x) -> Tensor", nullptr, nullptr, nothing, "none", dtype_rule),
    op("check::greedy(Tensor x, int bytes) -> Tensor", "same(x)", "same(x)", greedy, "none"),
    op("check::endless(Tensor x) -> Tensor", "same(x)", "same(x)", endless, "none"),
    op("check::parallel(Tensor x) -> Tensor", "same(x)", "same(x)", parallel, "none"),
    op("check::wrong_gradient(Tensor x) -> Tensor", "same(x)", "same(x)", nothing, "x: zeros([3])"),
    op("check::matrix(Tensor a, Tensor b, int n) -> (Tensor sum, Tensor sizes)",
       "[a.size(0), b.shape[1] * 2, n]; a.shape + [n]", "float32; floating(a)", nothing, "none"),
    body("check::softsign(Tensor x, float scale=1.0) -> Tensor", "x * scale / (1 + abs(x))"),
    body("check::blend(Tensor a, Tensor b, *, Scalar weight) -> Tensor", "where(a > b, a, b) * weight + exp(-a ** 2)"),
};
const teletensor_library kLibrary = {TELETENSOR_OPERATOR_ABI, sizeof(teletensor_operator), "check 1.0", kOperators,
                                     sizeof(kOperators) / sizeof(kOperators[0])};

}  // namespace

const teletensor_library* teletensor_operators(const teletensor_host* host) {
  return host->abi == TELETENSOR_OPERATOR_ABI && as_int(1) == 1 ? &kLibrary : nullptr;
}
