#include "kernels/cpu/blas/product.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/blas/few_rows.h"
#include "kernels/cpu/blas/gemv.h"
#include "kernels/cpu/blas/onednn.h"
#include "kernels/cpu/blas/packed_weights.h"

namespace tt::cpu {
namespace {

using dnnl::memory;

// Up to these sizes gemm() is faster than oneDNN. The second is for float32 if the rows of b are contiguous
// (benchmarks/gemm_bench).
constexpr double kSmallProduct = 40 * 40 * 40;
constexpr double kSmallProductByRows = 64 * 64 * 64;
// Below this size (about 12 us) a single core is used.
constexpr double kMinMultiCoreWork = 1.5e6;
// For m rows, packing b takes about 24/m of the product's time. oneDNN's loops over a packed b are up to 10 % faster.
constexpr int64_t kMinPackedRows = 384;
constexpr int64_t kMinPackedDepth = 384;
// Minimum number of elements of b for which a packed copy is cached. For smaller b, the copy does not save time.
constexpr int64_t kMinCachedElements = 1 << 16;

// Multiplications that take one core about 0.3 s.
constexpr double kLongProduct = 5e10;

// The constant stride between the entries of a batch; nullopt if it is not constant.
std::optional<int64_t> batch_stride(const int64_t* offsets, int64_t batch) {
  if (!offsets || batch == 1) return 0;
  const int64_t step = offsets[1] - offsets[0];  // offsets[0] is not 0 in a later part of a batch
  for (int64_t i = 2; i < batch; ++i) {
    if (offsets[i] - offsets[i - 1] != step) return std::nullopt;
  }
  return step;
}

// Whether all entries of a batch are the same matrix.
bool is_one_matrix(const int64_t* offsets, int64_t batch) {
  return !offsets || std::all_of(offsets, offsets + batch, [&](int64_t offset) { return offset == offsets[0]; });
}

// An operand of a product, as oneDNN describes it.
struct StridedOperand {
  Sizes sizes;
  Sizes strides;
};

std::optional<StridedOperand> operand(const Matrix& x, int64_t rows, int64_t columns, const int64_t* offsets,
                                      int64_t batch) {
  const std::optional<Matrix> fits = leading(x, rows, columns);
  const std::optional<int64_t> step = batch_stride(offsets, batch);
  if (!fits || !step) return std::nullopt;
  if (batch == 1) return StridedOperand{{rows, columns}, {fits->row_stride, fits->column_stride}};
  // A stride of 0 becomes a batch dimension of size 1, which oneDNN broadcasts.
  StridedOperand result{{*step == 0 ? 1 : batch, rows, columns},
                        {*step == 0 ? rows * columns : *step, fits->row_stride, fits->column_stride}};
  if (!supports_strides(result.sizes, result.strides)) return std::nullopt;
  return result;
}

const void* first_entry(const Matrix& x, const int64_t* offsets, DType dtype) {
  return static_cast<const char*>(x.data) + (offsets ? offsets[0] : 0) * static_cast<int64_t>(item_size(dtype));
}

// A product, as oneDNN describes it.
struct Problem {
  const Gemm& g;
  StridedOperand a, b;
  const void* bias;
  ProductEpilogue epilogue{};

  Sizes c() const { return g.batch == 1 ? Sizes{g.m, g.n} : Sizes{g.batch, g.m, g.n}; }
  memory::desc plain_b() const { return strided_desc(b.sizes, b.strides, g.dtype); }

  // Uses b in its own layout, or in the layout that oneDNN prefers.
  PrimitiveUse primitive(int threads, bool packed_b) const {
    PrimitiveKey key(PrimitiveKey::Kind::kMatmul, threads);
    key.add(static_cast<int64_t>(g.dtype)).add(a.sizes).add(a.strides).add(b.sizes).add(b.strides);
    key.add(bias != nullptr).add(packed_b);
    key.add(epilogue.added != nullptr).add(static_cast<int64_t>(epilogue.activation));
    return PrimitiveUse(key, kProductBytes, [&] { return prepare(packed_b); });
  }
  PreparedPrimitive prepare(bool packed_b) const {
    const memory::desc a_desc = strided_desc(a.sizes, a.strides, g.dtype);
    const memory::desc b_desc = packed_b ? any_desc(b.sizes, g.dtype) : plain_b();
    const memory::desc c_desc = strided_desc(c(), contiguous_strides(c()), g.dtype);
    Sizes bias_sizes(c().size(), 1);
    bias_sizes.back() = g.n;
    const memory::desc bias_desc = strided_desc(bias_sizes, contiguous_strides(bias_sizes), g.dtype);
    const dnnl::matmul::desc desc =
        bias ? dnnl::matmul::desc(a_desc, b_desc, bias_desc, c_desc) : dnnl::matmul::desc(a_desc, b_desc, c_desc);
    const dnnl::matmul::primitive_desc pd(desc, attributes(c_desc), onednn_engine());
    PreparedPrimitive made{dnnl::matmul(pd),
                           {{DNNL_ARG_SRC, a_desc},
                            {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                            {DNNL_ARG_DST, c_desc},
                            {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}},
                           pd.scratchpad_desc().get_size()};
    if (bias) made.arguments.emplace_back(DNNL_ARG_BIAS, bias_desc);
    if (epilogue.added) made.arguments.emplace_back(kAdded, c_desc);
    return made;
  }
  dnnl::primitive_attr attributes(const memory::desc& added) const {
    if (!epilogue.added && epilogue.activation == ProductEpilogue::Activation::kNone) return onednn_attributes();
    dnnl::post_ops steps;
    if (epilogue.added) steps.append_binary(dnnl::algorithm::binary_add, added);
    using Activation = ProductEpilogue::Activation;
    const auto append = [&](dnnl::algorithm algorithm, float alpha = 0) {
      steps.append_eltwise(1, algorithm, alpha, 0);
    };
    switch (epilogue.activation) {
      case Activation::kGelu: append(dnnl::algorithm::eltwise_gelu_erf); break;
      case Activation::kGeluTanh: append(dnnl::algorithm::eltwise_gelu_tanh); break;
      case Activation::kSilu: append(dnnl::algorithm::eltwise_swish, 1); break;
      case Activation::kSigmoid: append(dnnl::algorithm::eltwise_logistic); break;
      case Activation::kTanh: append(dnnl::algorithm::eltwise_tanh); break;
      case Activation::kNone: break;
    }
    dnnl::primitive_attr made;  // a copy of onednn_attributes() would share its state
    made.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    made.set_post_ops(steps);
    return made;
  }
  void run(PrimitiveUse& use, const void* b_data) const {
    use.set(DNNL_ARG_SRC, first_entry(g.a, g.a_offsets, g.dtype));
    use.set(DNNL_ARG_WEIGHTS, b_data);
    use.set(DNNL_ARG_DST, g.c);
    if (bias) use.set(DNNL_ARG_BIAS, bias);
    if (epilogue.added) use.set(kAdded, epilogue.added);
    use.run();
  }

 private:
  static constexpr int kAdded = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
};

// Packs b for this call only.
Tensor pack_once(const Problem& problem, const void* b_data, const memory::desc& wanted, int threads) {
  const DType dtype = problem.g.dtype;
  Tensor bytes = empty(Sizes{static_cast<int64_t>(wanted.get_size() / item_size(dtype))}, dtype, Device{});
  onednn_reorder(threads, problem.plain_b(), b_data, wanted, bytes.data());
  return bytes;
}

// Runs with a packed b if that is faster: always for many rows; for few rows only if a copy is cached. Returns
// whether it ran: not if there is no memory for a packed b.
bool run_packed(const Problem& problem, const void* b_data, int threads, const Tensor* weights) {
  const Gemm& g = problem.g;
  if (g.batch != 1) return false;
  const bool pays = g.m >= kMinPackedRows && g.k >= kMinPackedDepth && g.n >= kMinPackedDepth;
  const bool may_keep = weights && g.k * g.n >= kMinCachedElements;
  if (!pays && !may_keep) return false;
  const memory::desc plain = problem.plain_b();
  // One weight has copies in one layout.
  const bool again = may_keep && used_before(*weights, plain) && !has_panels(g, *weights);
  if (!pays && !again) return false;
  PrimitiveUse use = problem.primitive(threads, true);
  const memory::desc& wanted = use.desc(DNNL_ARG_WEIGHTS);
  Tensor bytes;
  try {
    bytes = weights ? packed(*weights, plain, wanted, threads, again) : pack_once(problem, b_data, wanted, threads);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kOutOfMemory) throw;
    return false;
  }
  problem.run(use, bytes.data());
  return true;
}

double work(const Gemm& g) { return static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k); }

// Runs on oneDNN if it supports the operands' layouts; returns whether it did.
bool run_onednn(const Gemm& g, const void* bias, const Tensor* weights, const ProductEpilogue& epilogue = {}) {
  std::optional<StridedOperand> a = operand(g.a, g.m, g.k, g.a_offsets, g.batch);
  std::optional<StridedOperand> b = operand(g.b, g.k, g.n, g.b_offsets, g.batch);
  if (!a || !b) return false;
  const Problem problem{g, *a, *b, bias, epilogue};
  const void* b_data = first_entry(g.b, g.b_offsets, g.dtype);
  const PoolLease lease(work(g) * static_cast<double>(g.batch) < kMinMultiCoreWork ? 1 : num_threads());
  if (!run_packed(problem, b_data, lease.width(), weights)) {
    PrimitiveUse use = problem.primitive(lease.width(), false);
    problem.run(use, b_data);
  }
  return true;
}

// Whether few_rows() is faster than oneDNN: if there is a copy for it, up to the number of rows that pay for packing.
bool uses_few_rows(const Gemm& g, const Tensor* weights) {
  if (!weights) return false;
  const bool has_rows = g.m >= 2 && g.m < kMinPackedRows && g.a.column_stride == 1;
  return is_few_rows(g) || (has_rows && has_panels(g, *weights));
}

bool is_small(const Gemm& g) {
  const bool by_rows = g.dtype == DType::kFloat32 && g.b.column_stride == 1;
  return work(g) <= (by_rows ? kSmallProductByRows : kSmallProduct);
}

void add_bias(const Gemm& g, const void* bias) {
  with_element(g.dtype, [&]<typename T>(std::type_identity<T>) {
    const T* from = static_cast<const T*>(bias);
    T* to = static_cast<T*>(g.c);
    for (int64_t i = 0; i < g.batch * g.m; ++i) {
      for (int64_t j = 0; j < g.n; ++j) to[i * g.n + j] = static_cast<T>(to[i * g.n + j] + from[j]);
    }
  });
}

void* entries(void* c, int64_t count, DType dtype) {
  return static_cast<char*>(c) + count * static_cast<int64_t>(item_size(dtype));
}

// Entries [first, first + count) of the batch.
Gemm batch_part(const Gemm& g, int64_t first, int64_t count) {
  Gemm part = g;
  part.batch = count;
  part.c = entries(g.c, first * g.m * g.n, g.dtype);
  part.a_offsets = g.a_offsets ? g.a_offsets + first : nullptr;
  part.b_offsets = g.b_offsets ? g.b_offsets + first : nullptr;
  return part;
}

// Rows [first, first + count) of the result. Requires a batch of one.
Gemm row_part(const Gemm& g, int64_t first, int64_t count) {
  Gemm part = g;
  part.m = count;
  part.c = entries(g.c, first * g.n, g.dtype);
  const int64_t offset = first * g.a.row_stride * static_cast<int64_t>(item_size(g.dtype));
  part.a.data = static_cast<decltype(part.a.data)>(static_cast<const char*>(part.a.data) + offset);
  return part;
}

// Computes in parts of kLongProduct and checks for cancellation before each, because a call into oneDNN cannot be
// interrupted.
void product_in_parts(const Gemm& g, const void* bias, const Tensor* weights) {
  const bool by_rows = g.batch == 1;
  const int64_t whole = by_rows ? g.m : g.batch;
  const double each = work(g) / (by_rows ? static_cast<double>(g.m) : 1);
  const int64_t most = std::max<int64_t>(1, static_cast<int64_t>(kLongProduct / each));
  for (int64_t at = 0, count; at < whole; at += count) {
    count = std::min(most, whole - at);
    check_cancelled();
    product(by_rows ? row_part(g, at, count) : batch_part(g, at, count), bias, weights);
  }
}

// Copies the first entry of the result to the others, for operands that are the same in all entries.
void repeat_first_entry(const Gemm& g) {
  const int64_t size = g.m * g.n;
  const size_t bytes = static_cast<size_t>(size) * item_size(g.dtype);
  for (int64_t i = 1; i < g.batch; ++i) {
    check_cancelled();
    std::memcpy(entries(g.c, i * size, g.dtype), g.c, bytes);
  }
}

}  // namespace

void product(const Gemm& g, const void* bias, const Tensor* weights) {
  if (g.batch == 0 || g.m == 0 || g.n == 0) return;
  // oneDNN does not compute a batch from two matrices without one.
  if (g.batch > 1 && is_one_matrix(g.a_offsets, g.batch) && is_one_matrix(g.b_offsets, g.batch)) {
    product(batch_part(g, 0, 1), bias, weights);
    return repeat_first_entry(g);
  }
  const bool divisible = g.batch > 1 || g.m > 1;
  if (divisible && work(g) * static_cast<double>(g.batch) > 2 * kLongProduct) return product_in_parts(g, bias, weights);
  const bool would_round_twice = bias && item_size(g.dtype) == 2;
  if (is_gemv(g) && !would_round_twice) {
    gemv(g);
  } else if (!is_small(g) && uses_few_rows(g, weights)) {
    return few_rows(g, static_cast<const float*>(bias), nullptr, *weights);
  } else if (is_small(g) || !onednn_supports(g.dtype) || !run_onednn(g, bias, weights)) {
    gemm(g);
  } else {
    return;
  }
  if (bias) add_bias(g, bias);
}

bool product_of_few_rows(const Gemm& g, const void* bias, const void* added, const Tensor& weights) {
  if (is_small(g) || !uses_few_rows(g, &weights) || work(g) > 2 * kLongProduct) return false;
  few_rows(g, static_cast<const float*>(bias), static_cast<const float*>(added), weights);
  return true;
}

bool product_with(const Gemm& g, const void* bias, const Tensor* weights, const ProductEpilogue& epilogue) {
  if (g.dtype != DType::kFloat32 || g.batch != 1 || g.m == 0 || g.n == 0 || g.k == 0) return false;
  if (is_gemv(g) || is_small(g) || !onednn_supports(g.dtype) || work(g) > 2 * kLongProduct) return false;
  return run_onednn(g, bias, weights, epilogue);
}

}  // namespace tt::cpu
