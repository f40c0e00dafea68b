// A kernel copies the description of its call, which exists only until it returns, and adds its work to the stream.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "memory.h"
#include "stream.h"

namespace example {
namespace {

struct Tensor {
  explicit Tensor(const TeletensorDeviceTensor& t)
      : data(host_pointer<char>(t.data)),
        dtype(t.dtype),
        sizes(t.sizes, t.sizes + t.dims),
        strides(t.strides, t.strides + t.dims) {}

  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t size : sizes) n *= size;
    return n;
  }

  char* data;
  int32_t dtype;
  std::vector<int64_t> sizes, strides;
};

int32_t unsupported(TeletensorDeviceError* error, const char* why) {
  std::snprintf(error->text, error->size, "%s", why);
  return TELETENSOR_DEVICE_UNSUPPORTED;
}

// Calls function(T()) for the type of the dtype. Returns false if there is none.
template <typename Function>
bool with_type(int32_t dtype, Function function) {
  switch (dtype) {
    case TELETENSOR_DEVICE_FLOAT32: function(float()); return true;
    case TELETENSOR_DEVICE_FLOAT64: function(double()); return true;
    case TELETENSOR_DEVICE_INT64: function(int64_t()); return true;
    case TELETENSOR_DEVICE_INT32: function(int32_t()); return true;
    case TELETENSOR_DEVICE_BOOL: function(bool()); return true;
    default: return false;
  }
}

void enqueue(const TeletensorDeviceCall* call, std::function<void()> work) {
  static_cast<Stream*>(call->stream)->add(std::move(work));
}

// An operand of an elementwise kernel: contiguous elements, or one number.
template <typename T>
struct Operand {
  explicit Operand(const TeletensorDeviceArgument& argument) {
    if (argument.kind == TELETENSOR_DEVICE_TENSOR) {
      elements = host_pointer<const T>(argument.tensors[0].data);
    } else {
      number =
          argument.kind == TELETENSOR_DEVICE_REAL ? static_cast<T>(argument.real) : static_cast<T>(argument.integer);
    }
  }
  T operator[](int64_t i) const { return elements != nullptr ? elements[i] : number; }

  const T* elements = nullptr;
  T number = T();
};

// Elementwise kernels. F::apply(x) or F::apply(x, y) computes an element.
template <typename F>
int32_t unary(const TeletensorDeviceCall* call, TeletensorDeviceError* error) {
  const Tensor out(call->outputs[0]);
  const bool known = with_type(call->compute_dtype, [&](auto type) {
    using T = decltype(type);
    const Operand<T> x(call->arguments[0]);
    enqueue(call, [=, n = out.numel()] {
      for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(out.data)[i] = static_cast<T>(F::apply(x[i]));
    });
  });
  return known ? TELETENSOR_DEVICE_OK : unsupported(error, "expected float32, float64, int64 or int32");
}

template <typename F>
int32_t binary(const TeletensorDeviceCall* call, TeletensorDeviceError* error) {
  // Both operands may be numbers: then the result has no elements to read.
  const Tensor out(call->outputs[0]);
  const bool known = with_type(call->compute_dtype, [&](auto type) {
    using T = decltype(type);
    using R = decltype(F::apply(T(), T()));
    if (out.dtype == TELETENSOR_DEVICE_BOOL && !std::is_same_v<R, bool>) return;
    const Operand<T> x(call->arguments[0]), y(call->arguments[1]);
    enqueue(call, [=, n = out.numel()] {
      for (int64_t i = 0; i < n; ++i) reinterpret_cast<R*>(out.data)[i] = F::apply(x[i], y[i]);
    });
  });
  return known ? TELETENSOR_DEVICE_OK : unsupported(error, "expected float32, float64, int64 or int32");
}

// x + alpha * y, or x - alpha * y.
template <int kSign>
int32_t add(const TeletensorDeviceCall* call, TeletensorDeviceError* error) {
  const Tensor out(call->outputs[0]);
  const bool known = with_type(call->compute_dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (!std::is_same_v<T, bool>) {
      const Operand<T> x(call->arguments[0]), y(call->arguments[1]), alpha(call->arguments[2]);
      enqueue(call, [=, n = out.numel(), scale = alpha.number] {
        for (int64_t i = 0; i < n; ++i) {
          const T term = scale * y[i];
          reinterpret_cast<T*>(out.data)[i] = kSign > 0 ? x[i] + term : x[i] - term;
        }
      });
    }
  });
  return known ? TELETENSOR_DEVICE_OK : unsupported(error, "expected float32, float64, int64 or int32");
}

// grad where input is above the threshold.
int32_t threshold_backward(const TeletensorDeviceCall* call, TeletensorDeviceError* error) {
  const Tensor out(call->outputs[0]);
  const bool known = with_type(call->compute_dtype, [&](auto type) {
    using T = decltype(type);
    const Operand<T> grad(call->arguments[0]), input(call->arguments[1]), threshold(call->arguments[2]);
    enqueue(call, [=, n = out.numel(), limit = threshold.number] {
      for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(out.data)[i] = input[i] <= limit ? T() : grad[i];
    });
  });
  return known ? TELETENSOR_DEVICE_OK : unsupported(error, "expected float32 or float64");
}

struct Mul {
  template <typename T>
  static T apply(T x, T y) {
    return static_cast<T>(x * y);
  }
};
struct Divide {
  template <typename T>
  static T apply(T x, T y) {
    return static_cast<T>(x / y);
  }
};
struct Greater {
  template <typename T>
  static bool apply(T x, T y) {
    return x > y;
  }
};
struct Less {
  template <typename T>
  static bool apply(T x, T y) {
    return x < y;
  }
};
// As PyTorch's, these return a NaN if an operand is one.
struct Maximum {
  template <typename T>
  static T apply(T x, T y) {
    return x != x || x > y ? x : y;
  }
};
struct Minimum {
  template <typename T>
  static T apply(T x, T y) {
    return x != x || x < y ? x : y;
  }
};
struct Neg {
  template <typename T>
  static T apply(T x) {
    return static_cast<T>(-x);
  }
};
struct Abs {
  template <typename T>
  static T apply(T x) {
    return x < T() ? static_cast<T>(-x) : x == T() ? T() : x;
  }
};
struct Relu {
  template <typename T>
  static T apply(T x) {
    return x < T() ? T() : x;
  }
};
struct Square {
  template <typename T>
  static T apply(T x) {
    return static_cast<T>(x * x);
  }
};
struct Exp {
  template <typename T>
  static T apply(T x) {
    return static_cast<T>(std::exp(x));
  }
};
struct Log {
  template <typename T>
  static T apply(T x) {
    return static_cast<T>(std::log(x));
  }
};
struct Sqrt {
  template <typename T>
  static T apply(T x) {
    return static_cast<T>(std::sqrt(x));
  }
};
struct Tanh {
  template <typename T>
  static T apply(T x) {
    return static_cast<T>(std::tanh(x));
  }
};
struct Sigmoid {
  template <typename T>
  static T apply(T x) {
    return static_cast<T>(1 / (1 + std::exp(-x)));
  }
};

// Calls visit(i, offsets of each tensor) for the i-th index of `sizes` in row-major order.
template <size_t kTensors, typename Visit>
void for_indices(const std::vector<int64_t>& sizes, const std::vector<int64_t>* const (&strides)[kTensors],
                 Visit visit) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  std::vector<int64_t> index(sizes.size());
  int64_t offsets[kTensors] = {};
  for (int64_t i = 0; i < n; ++i) {
    visit(i, offsets);
    for (size_t d = sizes.size(); d-- > 0;) {
      const bool wraps = ++index[d] == sizes[d];
      for (size_t t = 0; t < kTensors; ++t) offsets[t] += (wraps ? 1 - sizes[d] : 1) * (*strides[t])[d];
      if (!wraps) break;
      index[d] = 0;
    }
  }
}

// Copies elements of any strides between two dtypes.
int32_t assign(const TeletensorDeviceCall* call, TeletensorDeviceError* error) {
  if (call->arguments[1].kind != TELETENSOR_DEVICE_TENSOR) return unsupported(error, "expected a tensor");
  const Tensor from(call->arguments[1].tensors[0]), to(call->outputs[0]);
  if (from.sizes != to.sizes) return unsupported(error, "expected tensors of one size");
  bool known = false;
  with_type(from.dtype, [&](auto source) {
    known = with_type(to.dtype, [&](auto target) {
      using S = decltype(source);
      using T = decltype(target);
      if constexpr (std::is_floating_point_v<S> && !std::is_floating_point_v<T> && !std::is_same_v<T, bool>) {
        // The CPU defines what becomes of numbers that are too large.
      } else {
        enqueue(call, [from, to] {
          for_indices(to.sizes, {&from.strides, &to.strides}, [&](int64_t, const int64_t* at) {
            reinterpret_cast<T*>(to.data)[at[1]] = static_cast<T>(reinterpret_cast<const S*>(from.data)[at[0]]);
          });
        });
      }
    });
    if (std::is_floating_point_v<decltype(source)> &&
        (to.dtype == TELETENSOR_DEVICE_INT64 || to.dtype == TELETENSOR_DEVICE_INT32)) {
      known = false;
    }
  });
  return known ? TELETENSOR_DEVICE_OK : unsupported(error, "no conversion between these dtypes");
}

// Writes one number to every element. The number is argument kNumber.
template <int kNumber>
int32_t full(const TeletensorDeviceCall* call, TeletensorDeviceError* error) {
  const Tensor out(call->outputs[0]);
  const TeletensorDeviceArgument& number = call->arguments[kNumber];
  if (number.kind != TELETENSOR_DEVICE_INTEGER && number.kind != TELETENSOR_DEVICE_REAL) {
    return unsupported(error, "expected a number");
  }
  const bool is_integral = out.dtype == TELETENSOR_DEVICE_INT64 || out.dtype == TELETENSOR_DEVICE_INT32;
  if (is_integral && number.kind == TELETENSOR_DEVICE_REAL && !(std::abs(number.real) < 1e9)) {
    return unsupported(error, "expected an integer");
  }
  const bool known = with_type(out.dtype, [&](auto type) {
    using T = decltype(type);
    const T value = Operand<T>(number).number;
    enqueue(call, [=, n = out.numel()] { std::fill_n(reinterpret_cast<T*>(out.data), n, value); });
  });
  return known ? TELETENSOR_DEVICE_OK : unsupported(error, "no such dtype");
}

// The sum or mean over dimensions. `input` is contiguous.
template <bool kMean>
int32_t reduce(const TeletensorDeviceCall* call, TeletensorDeviceError* error) {
  const Tensor input(call->arguments[0].tensors[0]), out(call->outputs[0]);
  if (input.dtype != out.dtype) return unsupported(error, "expected the input's dtype");
  if (input.sizes.empty()) return unsupported(error, "expected dimensions");
  std::vector<bool> is_reduced(input.sizes.size(), call->arguments[1].count == 0);
  for (uint32_t i = 0; i < call->arguments[1].count; ++i) {
    const int64_t d = call->arguments[1].integers[i];
    is_reduced[static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(input.sizes.size()) : d)] = true;
  }
  // Strides of the result by the input's dimensions.
  std::vector<int64_t> strides(input.sizes.size(), 0);
  int64_t stride = 1, count = 1;
  for (size_t d = input.sizes.size(); d-- > 0;) {
    if (is_reduced[d]) {
      count *= input.sizes[d];
      continue;
    }
    strides[d] = stride;
    stride *= input.sizes[d];
  }
  if (input.dtype != TELETENSOR_DEVICE_FLOAT32 && input.dtype != TELETENSOR_DEVICE_FLOAT64) {
    return unsupported(error, "expected float32 or float64");
  }
  with_type(input.dtype, [&](auto type) {
    using T = decltype(type);
    enqueue(call, [=, n = out.numel()] {
      std::vector<double> sums(static_cast<size_t>(n));
      for_indices(input.sizes, {&input.strides, &strides}, [&](int64_t, const int64_t* at) {
        sums[static_cast<size_t>(at[1])] += static_cast<double>(reinterpret_cast<const T*>(input.data)[at[0]]);
      });
      for (int64_t i = 0; i < n; ++i) {
        const double sum = sums[static_cast<size_t>(i)];
        reinterpret_cast<T*>(out.data)[i] = static_cast<T>(kMean ? sum / static_cast<double>(count) : sum);
      }
    });
  });
  return TELETENSOR_DEVICE_OK;
}

// out[i, j] = sum over k of x[i, k] * y[k, j], with y's strides, plus bias[j] if there is one.
template <typename T>
void multiply(const Tensor& x, const T* y, int64_t y_row, int64_t y_column, const T* bias, const Tensor& out) {
  const int64_t columns = out.sizes.back(), rows = columns == 0 ? 0 : out.numel() / columns, inner = x.sizes.back();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = bias == nullptr ? 0.0 : static_cast<double>(bias[j]);
      for (int64_t k = 0; k < inner; ++k) {
        sum += static_cast<double>(reinterpret_cast<const T*>(x.data)[i * inner + k]) *
               static_cast<double>(y[k * y_row + j * y_column]);
      }
      reinterpret_cast<T*>(out.data)[i * columns + j] = static_cast<T>(sum);
    }
  }
}

// Of two matrices.
int32_t matmul(const TeletensorDeviceCall* call, TeletensorDeviceError* error) {
  const Tensor x(call->arguments[0].tensors[0]), y(call->arguments[1].tensors[0]), out(call->outputs[0]);
  const bool fits = x.sizes.size() == 2 && y.sizes.size() == 2 && x.dtype == y.dtype && x.dtype == out.dtype;
  if (!fits) return unsupported(error, "expected two matrices of one dtype");
  with_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    enqueue(call, [=] { multiply<T>(x, reinterpret_cast<const T*>(y.data), y.sizes[1], 1, nullptr, out); });
  });
  return TELETENSOR_DEVICE_OK;
}

int32_t linear(const TeletensorDeviceCall* call, TeletensorDeviceError* error) {
  const Tensor x(call->arguments[0].tensors[0]), weight(call->arguments[1].tensors[0]), out(call->outputs[0]);
  const TeletensorDeviceArgument& bias_argument = call->arguments[2];
  const bool has_bias = bias_argument.kind == TELETENSOR_DEVICE_TENSOR;
  // A zero-dim tensor of the host is a number, and a bias of one element is repeated: the CPU adds those.
  const bool bias_fits = has_bias ? bias_argument.tensors[0].dtype == x.dtype && bias_argument.tensors[0].dims == 1 &&
                                        bias_argument.tensors[0].sizes[0] == out.sizes.back()
                                  : bias_argument.kind == TELETENSOR_DEVICE_NONE;
  const bool fits = !x.sizes.empty() && weight.sizes.size() == 2 && x.dtype == weight.dtype && x.dtype == out.dtype;
  if (!fits || !bias_fits) return unsupported(error, "expected a matrix as weight, a vector as bias, and one dtype");
  void* const bias = has_bias ? bias_argument.tensors[0].data : nullptr;
  with_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    const T* const added = has_bias ? host_pointer<const T>(bias) : nullptr;
    enqueue(call, [=] { multiply<T>(x, reinterpret_cast<const T*>(weight.data), 1, weight.sizes[1], added, out); });
  });
  return TELETENSOR_DEVICE_OK;
}

constexpr uint32_t bit(int dtype) { return 1u << dtype; }
constexpr uint32_t kFloats = bit(TELETENSOR_DEVICE_FLOAT32) | bit(TELETENSOR_DEVICE_FLOAT64);
constexpr uint32_t kNumbers = kFloats | bit(TELETENSOR_DEVICE_INT64) | bit(TELETENSOR_DEVICE_INT32);
constexpr uint32_t kAll = kNumbers | bit(TELETENSOR_DEVICE_BOOL);
constexpr uint32_t kElementwise = TELETENSOR_DEVICE_ELEMENTWISE;

}  // namespace

const std::vector<TeletensorDeviceOperator>& operators() {
  static const std::vector<TeletensorDeviceOperator> list = {
      {"assign", 2, TELETENSOR_DEVICE_STRIDED, kAll, &assign},
      {"full", 4, 0, kAll, &full<1>},
      {"full_like", 4, 0, kAll, &full<1>},
      {"fill", 2, 0, kAll, &full<1>},
      {"add", 3, kElementwise, kNumbers, &add<1>},
      {"sub", 3, kElementwise, kNumbers, &add<-1>},
      {"mul", 2, kElementwise, kNumbers, &binary<Mul>},
      {"true_divide", 2, kElementwise, kFloats, &binary<Divide>},
      {"maximum", 2, kElementwise, kNumbers, &binary<Maximum>},
      {"minimum", 2, kElementwise, kNumbers, &binary<Minimum>},
      {"gt", 2, kElementwise, kAll, &binary<Greater>},
      {"lt", 2, kElementwise, kAll, &binary<Less>},
      {"neg", 1, kElementwise, kNumbers, &unary<Neg>},
      {"abs", 1, kElementwise, kFloats, &unary<Abs>},
      {"relu", 1, kElementwise, kFloats, &unary<Relu>},
      {"square", 1, kElementwise, kNumbers, &unary<Square>},
      {"exp", 1, kElementwise, kFloats, &unary<Exp>},
      {"log", 1, kElementwise, kFloats, &unary<Log>},
      {"sqrt", 1, kElementwise, kFloats, &unary<Sqrt>},
      {"tanh", 1, kElementwise, kFloats, &unary<Tanh>},
      {"sigmoid", 1, kElementwise, kFloats, &unary<Sigmoid>},
      {"threshold_backward", 3, kElementwise, kFloats, &threshold_backward},
      {"sum", 4, 0, kFloats, &reduce<false>},
      {"mean", 4, 0, kFloats, &reduce<true>},
      {"matmul", 2, 0, kFloats, &matmul},
      {"linear", 3, 0, kFloats, &linear},
  };
  return list;
}

}  // namespace example
