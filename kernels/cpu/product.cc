#include "kernels/cpu/product.h"

#include <optional>

#include "engine/parallel.h"
#include "engine/tensor.h"
#include "kernels/cpu/element.h"
#include "kernels/cpu/gemv.h"
#include "kernels/cpu/onednn.h"

namespace tt::cpu {
namespace {

// Below, our own loop has the result before oneDNN has started its own.
constexpr int64_t kTinyProduct = 40 * 40 * 40;
// Packing b costs 24/m of the product's time, and oneDNN's loops over a packed b are up to a tenth faster.
constexpr int64_t kRowsWorthPacking = 384;
constexpr int64_t kDepthWorthPacking = 384;

// A matrix's strides as oneDNN takes them: one of the two is 1, the other at least the row's
// length. Nothing where it lies otherwise.
std::optional<Sizes> leading_strides(const Matrix& x, int64_t rows, int64_t columns) {
  const int64_t row = rows == 1 ? columns * x.column_stride : x.row_stride;
  const int64_t column = columns == 1 ? 1 : x.column_stride;
  if (column == 1 && row >= columns) return Sizes{row, 1};
  const int64_t step = columns == 1 ? rows : x.column_stride;
  if (x.row_stride == 1 && step >= rows) return Sizes{1, step};
  return std::nullopt;
}

// The stride from entry to entry of a batch, where there is one.
std::optional<int64_t> batch_stride(const int64_t* offsets, int64_t batch) {
  if (!offsets || batch == 1) return 0;
  for (int64_t i = 2; i < batch; ++i) {
    if (offsets[i] - offsets[i - 1] != offsets[1]) return std::nullopt;
  }
  return offsets[1];
}

// One operand of a product in oneDNN's terms.
struct Operand {
  Sizes sizes;
  Sizes strides;
};

std::optional<Operand> operand(const Matrix& x, int64_t rows, int64_t columns, const int64_t* offsets, int64_t batch) {
  std::optional<Sizes> strides = leading_strides(x, rows, columns);
  std::optional<int64_t> step = batch_stride(offsets, batch);
  if (!strides || !step) return std::nullopt;
  if (batch == 1) return Operand{{rows, columns}, *strides};
  // A stride of 0 is oneDNN's broadcast: a batch of one.
  return Operand{{*step == 0 ? 1 : batch, rows, columns}, {*step == 0 ? rows * columns : *step, (*strides)[0], (*strides)[1]}};
}

const void* first_entry(const Matrix& x, const int64_t* offsets, DType dtype) {
  return static_cast<const char*>(x.data) + (offsets ? offsets[0] : 0) * static_cast<int64_t>(item_size(dtype));
}

// Runs on oneDNN if the operands lie as it takes them.
bool run_onednn(const Gemm& g, const void* bias) {
  std::optional<Operand> a = operand(g.a, g.m, g.k, g.a_offsets, g.batch);
  std::optional<Operand> b = operand(g.b, g.k, g.n, g.b_offsets, g.batch);
  if (!a || !b) return false;
  const Sizes c = g.batch == 1 ? Sizes{g.m, g.n} : Sizes{g.batch, g.m, g.n};
  const bool pack = g.batch == 1 && g.m >= kRowsWorthPacking && g.k >= kDepthWorthPacking && g.n >= kDepthWorthPacking;

  PoolLease lease;
  PrimitiveKey key(PrimitiveKey::Kind::kMatmul, lease.width());
  key.add(static_cast<int64_t>(g.dtype)).add(a->sizes).add(a->strides).add(b->sizes).add(b->strides);
  key.add(bias != nullptr).add(pack);
  PrimitiveUse use(key, [&] {
    const dnnl::memory::desc a_desc = strided_desc(a->sizes, a->strides, g.dtype);
    const dnnl::memory::desc b_desc = pack ? any_desc(b->sizes, g.dtype) : strided_desc(b->sizes, b->strides, g.dtype);
    const dnnl::memory::desc c_desc = strided_desc(c, contiguous_strides(c), g.dtype);
    Sizes bias_sizes(c.size(), 1);
    bias_sizes.back() = g.n;
    const dnnl::memory::desc bias_desc = strided_desc(bias_sizes, contiguous_strides(bias_sizes), g.dtype);
    dnnl::matmul::desc desc = bias ? dnnl::matmul::desc(a_desc, b_desc, bias_desc, c_desc) : dnnl::matmul::desc(a_desc, b_desc, c_desc);
    dnnl::matmul::primitive_desc pd(desc, onednn_attributes(), onednn_engine());
    Recipe recipe{dnnl::matmul(pd),
                  {{DNNL_ARG_SRC, a_desc}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, c_desc},
                   {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}},
                  pd.scratchpad_desc().get_size()};
    if (bias) recipe.arguments.emplace_back(DNNL_ARG_BIAS, bias_desc);
    return recipe;
  });
  Tensor packed;  // lives until the product has run
  const void* b_data = first_entry(g.b, g.b_offsets, g.dtype);
  if (pack) {
    const dnnl::memory::desc& wanted = use.desc(DNNL_ARG_WEIGHTS);
    const int64_t elements = static_cast<int64_t>(wanted.get_size() / item_size(g.dtype));
    packed = empty(Sizes{elements}, g.dtype, Device{});
    onednn_reorder(lease.width(), strided_desc(b->sizes, b->strides, g.dtype), b_data, wanted, packed.data());
    b_data = packed.data();
  }
  use.set(DNNL_ARG_SRC, first_entry(g.a, g.a_offsets, g.dtype));
  use.set(DNNL_ARG_WEIGHTS, b_data);
  use.set(DNNL_ARG_DST, g.c);
  if (bias) use.set(DNNL_ARG_BIAS, bias);
  use.run();
  return true;
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

}  // namespace

void product(const Gemm& g, const void* bias) {
  if (g.batch == 0 || g.m == 0 || g.n == 0) return;
  const bool tiny = g.m * g.n * g.k <= kTinyProduct;
  if (is_gemv(g)) {
    gemv(g);
  } else if (tiny || !onednn_computes(g.dtype) || !run_onednn(g, bias)) {
    gemm(g);
  } else {
    return;
  }
  if (bias) add_bias(g, bias);
}

}  // namespace tt::cpu
