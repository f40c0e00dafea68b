#include "kernels/cpu/nn/convolution.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/instruction_grad.h"
#include "engine/schema/layout.h"
#include "engine/schema/op_ids.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/blas/onednn.h"
#include "kernels/cpu/blas/packed_weights.h"
#include "kernels/cpu/blas/product.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/iteration/chain.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/epilogue_loops.h"
#include "kernels/cpu/norm/running_norm.h"

namespace tt::cpu {
namespace {

using dnnl::memory;

// Called when `count` images of a result, from image `first`, have been computed.
using Finish = absl::FunctionRef<void(int64_t first, int64_t count)>;

// The sizes of weights as oneDNN describes them: groups are a separate dimension.
Sizes grouped(SizesView w, int64_t groups) {
  Sizes sizes(w.begin(), w.end());
  if (groups == 1) return sizes;
  sizes[0] /= groups;
  sizes.insert(sizes.begin(), groups);
  return sizes;
}

memory::desc plain_desc(SizesView sizes, DType dtype) { return strided_desc(sizes, contiguous_strides(sizes), dtype); }

// Views the memory of `t` in the layout `desc`. Returns an undefined tensor if the layout is blocked.
Tensor strided_view(const Tensor& t, SizesView sizes, const memory::desc& desc) {
  const dnnl_memory_desc_t& d = desc.data;
  if (d.format_desc.blocking.inner_nblks != 0) return Tensor();
  const SizesView strides(d.format_desc.blocking.strides, sizes.size());
  return view_of(t, Geometry{{sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}, 0, true});
}

Tensor bytes_for(const memory::desc& desc, DType dtype) {
  const int64_t item = static_cast<int64_t>(item_size(dtype));
  return empty(Sizes{(static_cast<int64_t>(desc.get_size()) + item - 1) / item}, dtype, Device{});
}

// The number of elements per channel of an image.
int64_t space(SizesView sizes) {
  int64_t n = 1;
  for (size_t i = 2; i < sizes.size(); ++i) n *= sizes[i];
  return n;
}

// Whether activations have the layout that a primitive requires. Strides of dimensions of one element are of no
// account.
bool is_laid_out(const Tensor& t, const memory::desc& wanted) {
  const dnnl_memory_desc_t& d = wanted.data;
  if (d.format_desc.blocking.inner_nblks != 0) return false;
  for (size_t i = 0; i < t.sizes().size(); ++i) {
    if (t.sizes()[i] > 1 && t.strides()[i] != d.format_desc.blocking.strides[i]) return false;
  }
  return true;
}

// Returns activations in the layout that a primitive requires; `t` itself if it already matches. Most of these
// layouts are only strides (channels last), which our own copy writes at memory speed.
Tensor lay_out(const Tensor& t, const memory::desc& wanted, int threads) {
  if (is_laid_out(t, wanted)) return t;
  Tensor bytes = bytes_for(wanted, t.dtype());
  if (Tensor view = strided_view(bytes, t.sizes(), wanted)) {
    copy(t, view);
  } else {
    const Tensor plain = contiguous(t);
    onednn_reorder(threads, plain_desc(t.sizes(), t.dtype()), plain.data(), wanted, bytes.data());
  }
  return bytes;
}

// Like lay_out(), for contiguous weights. The copy is cached if the weights were used before and have not changed
// since, or at once if `keep` and there is room.
Tensor lay_out_weights(const Tensor& w, SizesView sizes, const memory::desc& wanted, int threads, bool keep) {
  const memory::desc plain = plain_desc(sizes, w.dtype());
  if (wanted == plain) return w;
  return packed(w, plain, wanted, threads, used_before(w, wanted) || (keep && has_room_for_copy(w, wanted)));
}

// Buffer for a primitive's result in `t`. finish() copies it if the primitive uses another layout.
class ResultBuffer {
 public:
  // `sizes` are t's sizes as the primitive describes them: weights may be grouped, and are then contiguous.
  ResultBuffer(Tensor t, SizesView sizes, const memory::desc& given, int threads)
      : target_(std::move(t)), sizes_(sizes), given_(given), threads_(threads) {
    const bool has_layout = target_.is_contiguous()
                                ? given == plain_desc(sizes, target_.dtype())
                                : sizes == SizesView(target_.sizes()) && is_laid_out(target_, given);
    if (!has_layout) bytes_ = bytes_for(given, target_.dtype());
  }
  void* data() const { return bytes_ ? bytes_.data() : target_.data(); }
  void finish() {
    if (!bytes_) return;
    if (Tensor view = strided_view(bytes_, sizes_, given_)) {
      const Geometry plain{{sizes_.begin(), sizes_.end()}, contiguous_strides(sizes_), target_->offset, true};
      copy(view, target_.is_contiguous() ? view_of(target_, plain) : target_);
      return;
    }
    const Tensor result = target_.is_contiguous() ? target_ : empty(target_.sizes(), target_.dtype(), Device{});
    onednn_reorder(threads_, given_, bytes_.data(), plain_desc(sizes_, target_.dtype()), result.data());
    if (!result.same(target_)) copy(result, target_);
  }

 private:
  Tensor target_;
  SizesView sizes_;
  const memory::desc& given_;
  int threads_;
  Tensor bytes_;  // undefined if the primitive writes to the target directly
};

// A convolution as oneDNN describes it, for the forward and backward passes.
struct Problem {
  SizesView x, y;  // input and output activations
  Sizes w;
  memory::dims stride, dilation, left, right;
  DType dtype;

  Problem(SizesView x, SizesView w, SizesView y, const ConvolutionParams& params, DType dtype)
      : x(x),
        y(y),
        w(grouped(w, params.groups)),
        stride(params.stride.begin(), params.stride.end()),
        left(params.padding.begin(), params.padding.end()),
        dtype(dtype) {
    for (size_t i = 0; i < stride.size(); ++i) {
      dilation.push_back(params.dilation[i] - 1);
      // The right padding is the number of inputs read past the end; negative if trailing inputs are not read.
      const int64_t reach = (y[2 + i] - 1) * stride[i] + (w[2 + i] - 1) * params.dilation[i] + 1;
      right.push_back(reach - x[2 + i] - left[i]);
    }
  }
  PrimitiveKey key(PrimitiveKey::Kind kind, int threads, bool bias) const {
    PrimitiveKey key(kind, threads);
    key.add(static_cast<int64_t>(dtype)).add(bias).add(x).add(w).add(y);
    return key.add(stride).add(dilation).add(left).add(right);
  }
  dnnl::convolution_forward::primitive_desc forward(bool bias) const {
    const memory::desc xd = any_desc(x, dtype), wd = any_desc(w, dtype), yd = any_desc(y, dtype);
    const memory::desc bd = bias ? plain_desc({&y[1], 1}, dtype) : memory::desc();
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto direct = dnnl::algorithm::convolution_direct;
    dnnl::convolution_forward::desc desc =
        bias ? dnnl::convolution_forward::desc(kind, direct, xd, wd, bd, yd, stride, dilation, left, right)
             : dnnl::convolution_forward::desc(kind, direct, xd, wd, yd, stride, dilation, left, right);
    dnnl::convolution_forward::primitive_desc pd(desc, onednn_attributes(), onednn_engine());
    avoid_faulty(pd);
    return pd;
  }
  // oneDNN 2.6's convolutions with AMX, except those of a single point, access memory beyond their buffers if a stride
  // exceeds the extent of the weights (found with inaccessible pages behind the buffers, in no other of 4,000
  // problems). Replaces `pd` by a description without AMX then.
  template <typename Descriptor>
  void avoid_faulty(Descriptor& pd) const {
    bool skips = false;
    for (size_t i = 0; i < stride.size(); ++i) {
      skips |= stride[i] > (w[w.size() - stride.size() + i] - 1) * (dilation[i] + 1) + 1;
    }
    const auto is_faulty = [&] {
      const std::string_view name = pd.impl_info_str();
      return name.find("amx") != name.npos && name.find("1x1") == name.npos;
    };
    while (skips && is_faulty()) check(pd.next_impl(), "oneDNN has no convolution for this problem");
  }
};

// The memory of a convolution's compiled code and tables, measured with oneDNN 2.6 (see docs/benchmarks.md): it grows
// with the width of the output, and by at most 140 bytes per column of the input that these columns read.
size_t primitive_bytes(PrimitiveKey::Kind kind, const Problem& c) {
  const auto columns = static_cast<size_t>(c.y.back());
  if (kind != PrimitiveKey::Kind::kConvolution) return (size_t{80} << 10) + columns * 300;
  return (size_t{40} << 10) + columns * 1400 + static_cast<size_t>(c.x.back()) * 140;
}

template <typename Descriptor>
PreparedPrimitive prepared_primitive(dnnl::primitive primitive, const Descriptor& pd,
                                     std::vector<std::pair<int, memory::desc>> arguments) {
  arguments.emplace_back(DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc());
  return {std::move(primitive), std::move(arguments), pd.scratchpad_desc().get_size()};
}

// Images [n, n + count) of a batch.
Tensor images(const Tensor& t, int64_t n, int64_t count) {
  Geometry part{t.sizes(), t.strides(), t->offset + n * t.stride(0), true};
  part.sizes[0] = count;
  return view_of(t, part);
}

// The number of images to reorder, convolve and reorder back at a time; a divisor of the batch size. Chosen so that
// these images fit the caches. If the weights, which are read in every call, are large compared with the images,
// returns the batch size.
int64_t images_at_once(const Tensor& x, const Tensor& w, const Tensor& y) {
  constexpr int64_t kCached = int64_t{2} << 20;
  const int64_t batch = x.size(0), item = static_cast<int64_t>(item_size(x.dtype()));
  const int64_t bytes = (x.numel() + y.numel()) / batch * item, most = std::max<int64_t>(1, kCached / bytes);
  if (batch * bytes <= 2 * kCached || 2 * w.numel() * item > most * bytes) return batch;
  int64_t count = std::min(most, batch);
  while (batch % count != 0) --count;
  return 4 * count >= most ? count : batch;  // a batch without a suitable divisor would need too many calls
}

void onednn_convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvolutionParams& params,
                        const Tensor& out, Finish finish) {
  const int64_t count = images_at_once(x, w, out);
  const Tensor some_x = images(x, 0, count), some_y = images(out, 0, count);
  const Problem c(some_x.sizes(), w.sizes(), some_y.sizes(), params, x.dtype());
  PoolLease lease;
  const int threads = lease.width();
  const auto kind = PrimitiveKey::Kind::kConvolution;
  PrimitiveUse use(c.key(kind, threads, static_cast<bool>(bias)), primitive_bytes(kind, c), [&] {
    const auto pd = c.forward(static_cast<bool>(bias));
    std::vector<std::pair<int, memory::desc>> arguments = {
        {DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, pd.dst_desc()}};
    if (bias) arguments.emplace_back(DNNL_ARG_BIAS, pd.bias_desc());
    return prepared_primitive(dnnl::convolution_forward(pd), pd, std::move(arguments));
  });
  // Weights of a call without gradients are used again more often than written, and a Program of a new process would
  // otherwise lay them out a second time. Other sessions may write to shared ones, which no copy is kept of.
  const bool keep = !InstructionGrad::is_enabled() && !w->storage->is_shared();
  const Tensor weights = lay_out_weights(w, c.w, use.desc(DNNL_ARG_WEIGHTS), threads, keep);
  use.set(DNNL_ARG_WEIGHTS, weights.data());
  if (bias) use.set(DNNL_ARG_BIAS, bias.data());
  for (int64_t n = 0; n < x.size(0); n += count) {
    check_cancelled();
    const Tensor source = lay_out(images(x, n, count), use.desc(DNNL_ARG_SRC), threads);
    ResultBuffer result_buffer(images(out, n, count), c.y, use.desc(DNNL_ARG_DST), threads);
    use.set(DNNL_ARG_SRC, source.data());
    use.set(DNNL_ARG_DST, result_buffer.data());
    use.run();
    result_buffer.finish();
    finish(n, count);  // while the images are in the caches
  }
}

void onednn_convolution_data(const Tensor& g, const Tensor& w, const ConvolutionParams& params, const Tensor& dx) {
  const int64_t count = images_at_once(dx, w, g);
  const Tensor some_x = images(dx, 0, count), some_y = images(g, 0, count);
  const Problem c(some_x.sizes(), w.sizes(), some_y.sizes(), params, g.dtype());
  PoolLease lease;
  const int threads = lease.width();
  const auto kind = PrimitiveKey::Kind::kConvolutionData;
  PrimitiveUse use(c.key(kind, threads, false), primitive_bytes(kind, c), [&] {
    dnnl::convolution_backward_data::desc desc(dnnl::algorithm::convolution_direct, any_desc(c.x, c.dtype),
                                               any_desc(c.w, c.dtype), any_desc(c.y, c.dtype), c.stride, c.dilation,
                                               c.left, c.right);
    const auto hint = c.forward(false);  // while avoid_faulty() looks for another implementation
    dnnl::convolution_backward_data::primitive_desc pd(desc, onednn_attributes(), onednn_engine(), hint);
    c.avoid_faulty(pd);
    return prepared_primitive(dnnl::convolution_backward_data(pd), pd,
                              {{DNNL_ARG_DIFF_SRC, pd.diff_src_desc()},
                               {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                               {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()}});
  });
  const Tensor weights = lay_out_weights(w, c.w, use.desc(DNNL_ARG_WEIGHTS), threads, /*keep=*/false);
  use.set(DNNL_ARG_WEIGHTS, weights.data());
  for (int64_t n = 0; n < g.size(0); n += count) {
    check_cancelled();
    const Tensor gradient = lay_out(images(g, n, count), use.desc(DNNL_ARG_DIFF_DST), threads);
    ResultBuffer result_buffer(images(dx, n, count), c.x, use.desc(DNNL_ARG_DIFF_SRC), threads);
    use.set(DNNL_ARG_DIFF_DST, gradient.data());
    use.set(DNNL_ARG_DIFF_SRC, result_buffer.data());
    use.run();
    result_buffer.finish();
  }
}

void onednn_convolution_weights(const Tensor& g, const Tensor& x, const ConvolutionParams& params, Tensor& dw) {
  const Problem c(x.sizes(), dw.sizes(), g.sizes(), params, g.dtype());
  PoolLease lease;
  const int threads = lease.width();
  const auto kind = PrimitiveKey::Kind::kConvolutionWeights;
  PrimitiveUse use(c.key(kind, threads, false), primitive_bytes(kind, c), [&] {
    dnnl::convolution_backward_weights::desc desc(dnnl::algorithm::convolution_direct, any_desc(c.x, c.dtype),
                                                  any_desc(c.w, c.dtype), any_desc(c.y, c.dtype), c.stride, c.dilation,
                                                  c.left, c.right);
    dnnl::convolution_backward_weights::primitive_desc pd(desc, onednn_attributes(), onednn_engine(), c.forward(false));
    return prepared_primitive(dnnl::convolution_backward_weights(pd), pd,
                              {{DNNL_ARG_SRC, pd.src_desc()},
                               {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()},
                               {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()}});
  });
  const Tensor gradient = lay_out(g, use.desc(DNNL_ARG_DIFF_DST), threads);
  const Tensor source = lay_out(x, use.desc(DNNL_ARG_SRC), threads);
  ResultBuffer result_buffer(dw, c.w, use.desc(DNNL_ARG_DIFF_WEIGHTS), threads);
  use.set(DNNL_ARG_DIFF_DST, gradient.data());
  use.set(DNNL_ARG_SRC, source.data());
  use.set(DNNL_ARG_DIFF_WEIGHTS, result_buffer.data());
  use.run();
  result_buffer.finish();
}

// A convolution is computed in pieces along its last dimension if its output has more than kWidest columns, if the
// columns of its input that they start at span more than kWidestSpan, or if the padding exceeds kMostPadding: the
// memory and the time that a primitive takes to compile grow with these. What remains after the widest pieces is
// divided into powers of two, and a rest of less than kNarrowest columns, so that all widths share a few primitives. No
// piece has columns that the whole has not: a zero of a gradient or of the padding, times an infinity, would be NaN.
constexpr int64_t kWidest = 2048, kWidestSpan = 8192, kMostPadding = 64, kNarrowest = 32;

// The number of output columns of a piece.
int64_t widest_piece(const ConvolutionParams& params) {
  return std::clamp<int64_t>(kWidestSpan / params.stride.back(), 1, kWidest);
}

Tensor column_view(const Tensor& t, int64_t begin, int64_t count) {
  Geometry part{t.sizes(), t.strides(), t->offset + begin * t.strides().back(), true};
  part.sizes.back() = count;
  return view_of(t, part);
}

// The columns of input and output that one piece consists of, and the parameters of its convolution.
struct Piece {
  int64_t out_begin, out_count;
  int64_t in_begin, in_count;  // columns of the input that exist; in_count is 0 if the piece sees only padding
  int64_t zeros_before;        // columns of zeros that precede them in a copy; -1: the primitive pads
  int64_t in_width;            // of the primitive's input
  ConvolutionParams params;

  Tensor input(const Tensor& x) const {
    if (zeros_before < 0) return column_view(x, in_begin, in_count);
    Sizes sizes(x.sizes().begin(), x.sizes().end());
    sizes.back() = in_width;
    Tensor padded = empty(sizes, x.dtype(), Device{});
    std::memset(padded.data(), 0, static_cast<size_t>(padded.numel()) * item_size(x.dtype()));
    if (in_count > 0) copy(column_view(x, in_begin, in_count), column_view(padded, zeros_before, in_count));
    return padded;
  }
};

// Calls body(piece) for all pieces, from left to right. Throws Cancelled between them.
template <typename Body>
void for_each_piece(SizesView input, SizesView weight, SizesView output, const ConvolutionParams& whole, Body body) {
  const int64_t width = input.back(), columns = widest_piece(whole), stride = whole.stride.back();
  const int64_t reach = (weight.back() - 1) * whole.dilation.back() + 1;
  Piece piece{0, 0, 0, 0, 0, 0, whole};
  for (int64_t begin = 0; begin < output.back(); begin += piece.out_count) {
    check_cancelled();
    const int64_t left = output.back() - begin;
    piece.out_begin = begin;
    piece.out_count = left >= columns      ? columns
                      : left >= kNarrowest ? static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(left)))
                                           : left;
    const int64_t first = begin * stride - whole.padding.back();
    const int64_t end = first + (piece.out_count - 1) * stride + reach;
    piece.in_begin = std::clamp<int64_t>(first, 0, width);
    piece.in_count = std::clamp<int64_t>(end, 0, width) - piece.in_begin;
    const int64_t before = piece.in_begin - first, after = end - piece.in_begin - piece.in_count;
    const bool is_padded_by_primitive = piece.in_count > 0 && before <= kMostPadding && after <= kMostPadding;
    piece.zeros_before = is_padded_by_primitive ? -1 : before;
    piece.in_width = is_padded_by_primitive ? piece.in_count : end - first;
    piece.params.padding.back() = is_padded_by_primitive ? before : 0;
    body(piece);
  }
}

// Adds column `skipped` and the following ones of `piece` to `count` columns of `sum` from `begin`. Both are
// contiguous.
void add_columns(const Tensor& piece, int64_t skipped, Tensor& sum, int64_t begin, int64_t count) {
  constexpr int64_t kGrain = 16 << 10;  // elements per thread
  const int64_t piece_width = piece.sizes().back(), width = sum.sizes().back(), rows = piece.numel() / piece_width;
  with_element(piece.dtype(), [&]<typename T>(std::type_identity<T>) {
    with_element(sum.dtype(), [&]<typename S>(std::type_identity<S>) {
      if constexpr (std::is_convertible_v<T, S> && std::is_convertible_v<S, T>) {
        parallel_for(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(count, 1)), [&](int64_t from, int64_t to) {
          for (int64_t r = from; r < to; ++r) {
            const T* added = piece.data_as<T>() + r * piece_width + skipped;
            S* row = sum.data_as<S>() + r * width + begin;
            for (int64_t j = 0; j < count; ++j) row[j] = static_cast<S>(row[j] + static_cast<S>(added[j]));
          }
        });
      }
    });
  });
}

void wide_convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvolutionParams& params,
                      const Tensor& out, Finish finish) {
  for_each_piece(x.sizes(), w.sizes(), out.sizes(), params, [&](const Piece& piece) {
    onednn_convolution(piece.input(x), w, bias, piece.params, column_view(out, piece.out_begin, piece.out_count),
                       [](int64_t, int64_t) {});
  });
  finish(0, out.size(0));
}

void wide_convolution_data(const Tensor& g, const Tensor& w, const ConvolutionParams& params, const Tensor& dx) {
  Sizes sizes(dx.sizes().begin(), dx.sizes().end());
  // Neighbouring pieces overlap by the reach of the weights: sums of 16-bit floats are rounded once.
  Tensor sum = dx.dtype() == DType::kFloat32 && dx.is_contiguous() ? dx : empty(sizes, DType::kFloat32, Device{});
  std::memset(sum.data(), 0, static_cast<size_t>(sum.numel()) * sizeof(float));
  for_each_piece(dx.sizes(), w.sizes(), g.sizes(), params, [&](const Piece& piece) {
    if (piece.in_count == 0) return;
    sizes.back() = piece.in_width;
    const Tensor part = empty(sizes, dx.dtype(), Device{});
    onednn_convolution_data(column_view(g, piece.out_begin, piece.out_count), w, piece.params, part);
    add_columns(part, std::max<int64_t>(piece.zeros_before, 0), sum, piece.in_begin, piece.in_count);
  });
  if (!sum.same(dx)) copy(sum, dx);
}

void wide_convolution_weights(const Tensor& g, const Tensor& x, const ConvolutionParams& params, Tensor& dw) {
  Tensor sum = dw.dtype() == DType::kFloat32 && dw.is_contiguous() ? dw : empty(dw.sizes(), DType::kFloat32, Device{});
  std::memset(sum.data(), 0, static_cast<size_t>(sum.numel()) * sizeof(float));
  Tensor part = empty(dw.sizes(), dw.dtype(), Device{});
  for_each_piece(x.sizes(), dw.sizes(), g.sizes(), params, [&](const Piece& piece) {
    if (piece.in_count == 0) return;
    onednn_convolution_weights(column_view(g, piece.out_begin, piece.out_count), piece.input(x), piece.params, part);
    add_columns(part, 0, sum, 0, part.sizes().back());
  });
  if (!sum.same(dw)) copy(sum, dw);
}

bool is_wide(const Tensor& output, const ConvolutionParams& params) {
  return output.sizes().back() > widest_piece(params) || params.padding.back() > kMostPadding;
}

void zero(Tensor& t) { std::memset(t.data(), 0, static_cast<size_t>(t.numel()) * item_size(t.dtype())); }

void add_bias(const Tensor& bias, Tensor& out) {
  const int64_t channels = out.size(1), positions = space(out.sizes());
  with_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t i = 0; i < out.size(0) * channels; ++i) {
      const T value = bias.data_as<T>()[i % channels];
      T* row = out.data_as<T>() + i * positions;
      for (int64_t j = 0; j < positions; ++j) row[j] = static_cast<T>(row[j] + value);
    }
  });
}

// Runs `fast`, or `slow` if oneDNN has no primitive for the case. oneDNN reports a missing primitive before it writes
// anything.
template <typename Fast, typename Slow>
void with_fallback(DType dtype, Fast&& fast, Slow&& slow) {
  if (!onednn_supports(dtype)) return slow();
  try {
    fast();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kNotImplemented) throw;
    slow();
  }
}

// The dtype in which a convolution is computed: float32 for 16-bit floats that oneDNN does not support.
DType compute_type(DType dtype) {
  if (onednn_supports(dtype)) return dtype;
  return item_size(dtype) == 2 && is_floating(dtype) ? DType::kFloat32 : dtype;
}

Tensor converted(const Tensor& t, DType compute) { return t.dtype() == compute ? t : contiguous_as(t, compute); }

// Returns `out` itself or, if its dtype differs, a temporary of the compute type; copy_to_output() copies the temporary
// to `out`.
Tensor computed(const Tensor& out, DType compute) {
  return out.dtype() == compute ? out : empty(out.sizes(), compute, out.device());
}
void copy_to_output(const Tensor& result, Tensor& out) {
  if (!result.same(out)) copy(result, out);
}

// Whether a convolution is a product of the weights with each image, and so small that laying out the activations for
// oneDNN's convolutions would take longer than the multiplications.
bool is_small_product(const Tensor& x, const Tensor& w, const ConvolutionParams& params, const Tensor& result) {
  constexpr int64_t kMostWeights = 64 * 64, kMostElements = 1 << 20;
  if (x.dtype() != DType::kFloat32 || params.groups != 1 || w.numel() != w.size(0) * w.size(1)) return false;
  const auto all = [](SizesView list, int64_t value) {
    return std::all_of(list.begin(), list.end(), [value](int64_t n) { return n == value; });
  };
  return all(params.stride, 1) && all(params.padding, 0) && x.is_contiguous() && result.is_contiguous() &&
         w.numel() <= kMostWeights && std::max(x.numel(), result.numel()) <= kMostElements;
}

// One product per image: oneDNN's batches with a repeated factor are slower.
void product_convolution(const Tensor& x, const Tensor& w, const Tensor& out) {
  const int64_t positions = space(x.sizes()), channels = x.size(1), results = out.size(1);
  for (int64_t n = 0; n < x.size(0); ++n) {
    const float* image = x.data_as<float>() + n * channels * positions;
    float* to = out.data_as<float>() + n * results * positions;
    product({x.dtype(), results, positions, channels, {w.data(), channels, 1}, {image, positions, 1}, to});
  }
}

// Convolves x, w and b of the compute type, none of whose sizes is zero unless w's or x's is.
void convolve(const Tensor& x, const Tensor& w, const Tensor& b, const ConvolutionParams& params, Tensor& result,
              Finish finish) {
  // These loops write contiguous results.
  const auto plainly = [&](auto&& compute) {
    Tensor plain = result.is_contiguous() ? result : empty(result.sizes(), result.dtype(), Device{});
    compute(plain);
    if (b) add_bias(b, plain);
    if (!plain.same(result)) copy(plain, result);
    finish(0, result.size(0));
  };
  if (x.numel() == 0 || w.numel() == 0) return plainly([](Tensor& out) { zero(out); });
  if (is_small_product(x, w, params, result)) return plainly([&](Tensor& out) { product_convolution(x, w, out); });
  with_fallback(
      x.dtype(),
      [&] { (is_wide(result, params) ? wide_convolution : onednn_convolution)(x, w, b, params, result, finish); },
      [&] { plainly([&](Tensor& out) { patch_convolution(contiguous(x), w, params, out); }); });
}

// What the operator fused_convolution computes of a convolution's result.
template <typename T>
class Epilogue {
 public:
  // Requires sizes that the shape rule accepts. `out` is contiguous or channels last.
  Epilogue(const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias, double eps,
           const Tensor& added, std::string_view activation, const Tensor& out)
      : out_(out), activation_(activation_of(activation)), op_(operator_of(activation)) {
    if (added) {
      if (added.dtype() == out.dtype() && added.strides() == out.strides()) {
        added_ = added;
      } else {
        added_ = view_of(empty(out.sizes(), out.dtype(), Device{}), Geometry{out.sizes(), out.strides(), 0, true});
        copy(added, added_);
      }
    }
    if (var) norm_.emplace(mean, var, weight, bias, eps, out.dtype());
  }

  // Of `count` images from image `first`.
  void apply(int64_t first, int64_t count) const {
    const int64_t channels = out_.size(1), positions = space(out_.sizes()), at = first * channels * positions;
    T* y = out_.data_as<T>() + at;
    const T* a = added_ ? added_.data_as<T>() + at : nullptr;
    const auto part = [&](int64_t offset) { return a ? a + offset : nullptr; };
    const ChannelNorm<T> norm = norm_ ? norm_->channels() : ChannelNorm<T>();
    if (out_.is_contiguous()) {
      parallel_for(count * channels, grain(positions), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          finish_channel(positions, norm, i % channels, part(i * positions), activation_, y + i * positions);
        }
      });
    } else {
      parallel_for(count * positions, grain(channels), [&](int64_t begin, int64_t end) {
        finish_rows(end - begin, channels, norm, part(begin * channels), activation_, y + begin * channels);
      });
    }
    if (op_ != 0) apply_operator(first, count);
  }

 private:
  // Applies the activation's operator to the images, which are still in the caches, in place.
  void apply_operator(int64_t first, int64_t count) const {
    Sizes sizes = out_.sizes();
    sizes[0] = count;
    Tensor images = view_of(out_, Geometry{sizes, out_.strides(), out_->offset + first * out_.stride(0), true});
    const Op& op = *find_op(op_);
    std::vector<Arg> args = {Arg(images.get())};
    for (const Param& param : op.params.subspan(1)) args.push_back(param.default_value);
    const ChainStep step{&op, args, out_.dtype()};
    run_chain({&step, 1}, images);
  }
  static int64_t grain(int64_t elements) {
    constexpr int64_t kGrain = 32 << 10;  // elements per thread
    return std::max<int64_t>(1, kGrain / std::max<int64_t>(elements, 1));
  }
  static Activation activation_of(std::string_view name) {
    if (name == "relu") return Activation::kRelu;
    if (name == "relu6") return Activation::kRelu6;
    return name == "hardswish" ? Activation::kHardswish : Activation::kNone;
  }
  // The operator of an activation that the loops do not have, so that its bits are those of the single call; or 0.
  static uint16_t operator_of(std::string_view name) {
    static const auto* const operators = new absl::flat_hash_map<std::string_view, uint16_t>{
        {"silu", op_id::kSilu},       {"gelu", op_id::kGeluErf}, {"gelu_tanh", op_id::kGeluTanh},
        {"sigmoid", op_id::kSigmoid}, {"tanh", op_id::kTanh},    {"hardsigmoid", op_id::kHardsigmoid},
        {"mish", op_id::kMish},       {"elu", op_id::kElu},      {"leaky_relu", op_id::kLeakyRelu}};
    const auto found = operators->find(name);
    return found == operators->end() ? 0 : found->second;
  }

  const Tensor out_;
  const Activation activation_;
  const uint16_t op_;  // 0: none
  Tensor added_;       // undefined, or with the layout of out_
  std::optional<RunningNorm<T>> norm_;
};

}  // namespace

void convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvolutionParams& params, Tensor& out) {
  if (out.numel() == 0) return;
  const DType compute = compute_type(x.dtype());
  Tensor result = computed(out, compute);
  convolve(converted(x, compute), contiguous_as(w, compute), contiguous_as(bias, compute), params, result,
           [](int64_t, int64_t) {});
  copy_to_output(result, out);
}

void fused_convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, absl::Span<const int64_t> stride,
                       absl::Span<const int64_t> padding, absl::Span<const int64_t> dilation, int64_t groups,
                       const Tensor& running_mean, const Tensor& running_var, const Tensor& norm_weight,
                       const Tensor& norm_bias, double eps, const Tensor& added, std::string_view activation,
                       Tensor& out) {
  check(ErrorKind::kNotImplemented, is_floating(out.dtype()), "[fused_convolution] not implemented for ",
        name(out.dtype()));
  if (out.numel() == 0) return;
  const DType compute = out.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const bool has_simple_layout = out.is_contiguous() || is_channels_last(out.sizes(), out.strides());
  Tensor result = has_simple_layout ? computed(out, compute) : empty(out.sizes(), compute, Device{});
  with_real(compute, [&]<typename T>(std::type_identity<T>) {
    const Epilogue<T> epilogue(running_mean, running_var, norm_weight, norm_bias, eps, added, activation, result);
    convolve(converted(input, compute), contiguous_as(weight, compute), contiguous_as(bias, compute),
             ConvolutionParams(stride, padding, dilation, groups), result,
             [&](int64_t first, int64_t count) { epilogue.apply(first, count); });
  });
  copy_to_output(result, out);
}

void convolution_data(const Tensor& g, const Tensor& w, const ConvolutionParams& params, Tensor& dx) {
  if (dx.numel() == 0) return;
  if (g.numel() == 0 || w.numel() == 0) return zero(dx);
  const DType compute = compute_type(g.dtype());
  const Tensor gradient = converted(g, compute), weight = contiguous_as(w, compute);
  Tensor result = computed(dx, compute);
  with_fallback(
      compute,
      [&] {
        (is_wide(gradient, params) ? wide_convolution_data : onednn_convolution_data)(gradient, weight, params, result);
      },
      [&] { patch_convolution_data(contiguous(gradient), weight, params, result); });
  copy_to_output(result, dx);
}

void convolution_weights(const Tensor& g, const Tensor& x, const ConvolutionParams& params, Tensor& dw) {
  if (dw.numel() == 0) return;
  if (g.numel() == 0 || x.numel() == 0) return zero(dw);
  const DType compute = compute_type(g.dtype());
  const Tensor gradient = converted(g, compute), input = converted(x, compute);
  Tensor result = computed(dw, compute);
  with_fallback(
      compute,
      [&] {
        (is_wide(gradient, params) ? wide_convolution_weights : onednn_convolution_weights)(gradient, input, params,
                                                                                            result);
      },
      [&] { patch_convolution_weights(contiguous(gradient), contiguous(input), params, result); });
  copy_to_output(result, dw);
}

void convolution_forward(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
                         absl::Span<const int64_t> dilation, int64_t groups, Tensor& out) {
  convolution(input, weight, bias, ConvolutionParams(stride, padding, dilation, groups), out);
}

void convolution_input(const Tensor& grad, const Tensor& weight, absl::Span<const int64_t>,
                       absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
                       absl::Span<const int64_t> dilation, int64_t groups, Tensor& out) {
  convolution_data(grad, weight, ConvolutionParams(stride, padding, dilation, groups), out);
}

void convolution_weight(const Tensor& grad, const Tensor& input, absl::Span<const int64_t>,
                        absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
                        absl::Span<const int64_t> dilation, int64_t groups, Tensor& out) {
  convolution_weights(grad, input, ConvolutionParams(stride, padding, dilation, groups), out);
}

}  // namespace tt::cpu
