#include "engine/schema/layout.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

using Order = absl::InlinedVector<size_t, 5>;  // of dimensions, the innermost first
using Operands = absl::InlinedVector<const TensorMeta*, 4>;

// Dimensions with channels last, the innermost first: C, W, H, N or C, W, H, D, N.
Order channels_last_order(size_t dims) { return dims == 4 ? Order{1, 3, 2, 0} : Order{1, 4, 3, 2, 0}; }

bool has_hints(SizesView a, SizesView b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](SymInt x, SymInt y) { return hint_of(x) == hint_of(y); });
}

Sizes strides_in(const Order& order, SizesView sizes) {
  Sizes strides(sizes.size());
  SymInt step = 1;
  for (size_t d : order) {
    strides[d] = step;
    step = wrapped_product(step, sizes[d]);
  }
  return strides;
}

// The stride of an operand over a dimension of the result: 0 where it is broadcast.
SymInt stride_over(const TensorMeta& t, SizesView sizes, size_t d) {
  const size_t lead = sizes.size() - t.sizes.size();
  if (d < lead || (hint_of(t.sizes[d - lead]) == 1 && hint_of(sizes[d]) != 1)) return 0;
  return t.strides[d - lead];
}

// TensorIterator's comparison: negative if `a` is inside of `b`, positive if it is outside, 0 if no operand decides.
int compare(const Operands& operands, SizesView sizes, size_t a, size_t b) {
  for (const TensorMeta* t : operands) {
    const int64_t x = hint_of(stride_over(*t, sizes, a)), y = hint_of(stride_over(*t, sizes, b));
    if (x == 0 || y == 0) continue;
    if (x != y) return x < y ? -1 : 1;
    if (hint_of(sizes[a]) > hint_of(sizes[b])) return 1;
  }
  return 0;
}

// TensorIterator's order: an insertion sort, because the comparison is no total order.
Order order_of(const Operands& operands, SizesView sizes) {
  Order order(sizes.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  for (size_t i = 1; i < order.size(); ++i) {
    for (size_t at = i, before = i; before-- > 0;) {
      const int side = compare(operands, sizes, order[before], order[at]);
      if (side < 0) break;
      if (side > 0) std::swap(order[before], order[std::exchange(at, before)]);
    }
  }
  return order;
}

// How the results of an operator that is not pointwise follow its arguments.
enum class Follow : uint8_t {
  kNothing,
  kElements,  // the first result, like a pointwise operator's
  kFirst,     // all results, like those of a pointwise operator of the first argument
  kOrder,     // the first result: in the order of the first argument's dimensions, of which one has another size
  kIndex,     // in the order of the dimensions of the selected elements and of the indices
  kRotated,   // a view of the first argument, flipped like a pointwise operator's
  kInput,     // all results: channels last if the first argument is
  kWeight,    // or if the second is
  kList,      // or if all tensors of the list are
  kStack,     // like those tensors, joined along the dimension before the new one
  kGrads,     // on the CPU, result i in the order of the dimensions of argument i + 1
};

constexpr auto kFollow = [] {
  std::array<Follow, op_id::kMax + 1> table{};
  for (uint16_t id : {op_id::kToDtype,
                      op_id::kToDevice,
                      op_id::kDiv,
                      op_id::kClamp,
                      op_id::kFloatPower,
                      op_id::kNanToNum,
                      op_id::kRound,
                      op_id::kLogit,
                      op_id::kNormalize,
                      op_id::kRelu6,
                      op_id::kGelu,
                      op_id::kPrelu,
                      op_id::kDropout,
                      op_id::kDropoutForward,
                      op_id::kScaleKept,
                      op_id::kMaxOther,
                      op_id::kMinOther,
                      op_id::kEmptyLike,
                      op_id::kZerosLike,
                      op_id::kOnesLike,
                      op_id::kFullLike,
                      op_id::kRandLike,
                      op_id::kRandnLike,
                      op_id::kRandintLike,
                      op_id::kUniformLike,
                      op_id::kNormalLike,
                      op_id::kBernoulliLike,
                      op_id::kExponentialLike,
                      op_id::kRandomLike,
                      op_id::kFlip,
                      op_id::kNextafter,
                      op_id::kLdexp,
                      op_id::kMseLoss,
                      op_id::kL1Loss,
                      op_id::kSmoothL1Loss,
                      op_id::kHuberLoss,
                      op_id::kKlDiv,
                      op_id::kPoissonNllLoss,
                      op_id::kSoftMarginLoss,
                      op_id::kGaussianNllLoss,
                      op_id::kBinaryCrossEntropy,
                      op_id::kBinaryCrossEntropyWithLogits,
                      op_id::kHingeEmbeddingLoss,
                      op_id::kFakeQuantizePerChannelAffine}) {
    table[id] = Follow::kElements;
  }
  for (uint16_t id : {op_id::kSort, op_id::kSortStable, op_id::kArgsort, op_id::kMsort, op_id::kIndexFill,
                      op_id::kIndexPut, op_id::kPut, op_id::kFrexp}) {
    table[id] = Follow::kFirst;
  }
  table[op_id::kGlu] = table[op_id::kDiff] = Follow::kOrder;
  table[op_id::kIndex] = Follow::kIndex;
  table[op_id::kRot90] = Follow::kRotated;
  for (uint16_t id : {op_id::kMaxPool2d,
                      op_id::kMaxPool2dWithIndices,
                      op_id::kAvgPool2d,
                      op_id::kAdaptiveAvgPool2d,
                      op_id::kAdaptiveMaxPool2d,
                      op_id::kAdaptiveMaxPool2dWithIndices,
                      op_id::kBatchNorm,
                      op_id::kBatchNormForward,
                      op_id::kGroupNorm,
                      op_id::kGroupNormForward,
                      op_id::kInterpolate,
                      op_id::kPad,
                      op_id::kPadEdges,
                      op_id::kPadEdgesForward,
                      op_id::kRmsNorm,
                      op_id::kRmsNormForward,
                      op_id::kPixelShuffle,
                      op_id::kPixelUnshuffle,
                      op_id::kChannelShuffle,
                      op_id::kMaxPool3d,
                      op_id::kRoll,
                      op_id::kInt8ConvolutionQuantized}) {
    table[id] = Follow::kInput;
  }
  for (uint16_t id : {op_id::kConvolution, op_id::kFusedConvolution, op_id::kConv2d, op_id::kConv3d,
                      op_id::kConvTranspose2d, op_id::kConvTranspose3d}) {
    table[id] = Follow::kWeight;
  }
  for (uint16_t id : {op_id::kCat, op_id::kHstack, op_id::kVstack}) table[id] = Follow::kList;
  table[op_id::kStack] = Follow::kStack;
  table[op_id::kAttentionBackward] = Follow::kGrads;
  return table;
}();

// PyTorch's guess whether the strides mean channels last, where sizes of 1 leave it open.
bool suggests_channels_last(const TensorMeta& t) {
  if (t.dim() != 4 && t.dim() != 5) return false;
  const int64_t of_channels = hint_of(t.strides[1]);
  if (of_channels == 0) return false;
  int64_t least = 0;
  for (size_t d : channels_last_order(t.sizes.size())) {
    const int64_t size = hint_of(t.sizes[d]), stride = hint_of(t.strides[d]);
    if (size == 0 || stride < least) return false;
    if (d == 0 && least == of_channels) return false;
    least = size > 1 ? stride * size : stride;
  }
  return true;
}

// Whether the operator drops channels last, which others of its kind keep, for these arguments.
bool is_row_major(uint16_t id, Args args) {
  if (id == op_id::kPadEdges || id == op_id::kPadEdgesForward) return args[2].string() == "circular";
  return id == op_id::kInterpolate && args[0].tensor->dim() == 5 && args[2].string() == "area";
}

bool is_tensor_last(Args args, size_t i) {
  return i < args.size() && args[i].kind == Arg::Kind::kTensor && suggests_channels_last(*args[i].tensor);
}

bool all_have(const Operands& operands, bool (*holds)(SizesView, SizesView)) {
  return std::all_of(operands.begin(), operands.end(),
                     [&](const TensorMeta* t) { return holds(t->sizes, t->strides); });
}

}  // namespace

bool is_dense(SizesView sizes, SizesView strides) {
  Order order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (hint_of(sizes[d]) > 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return hint_of(strides[a]) < hint_of(strides[b]); });
  int64_t expected = 1;
  for (size_t d : order) {
    if (hint_of(strides[d]) != expected) return false;
    expected *= hint_of(sizes[d]);
  }
  return true;
}

Sizes channels_last_strides(SizesView sizes) { return strides_in(channels_last_order(sizes.size()), sizes); }

bool is_channels_last(SizesView sizes, SizesView strides) {
  if (sizes.size() != 4 && sizes.size() != 5) return false;
  int64_t expected = 1;
  for (SymInt size : sizes) {
    if (hint_of(size) == 0) return true;  // no elements
  }
  for (size_t d : channels_last_order(sizes.size())) {
    const int64_t size = hint_of(sizes[d]);
    if (size == 1) continue;
    if (hint_of(strides[d]) != expected) return false;
    expected *= size;
  }
  return true;
}

// Sets dense strides in the order of the operands' strides.
static void follow_order(const Operands& operands, TensorMeta* result) {
  if (hint_of(result->numel()) == 0) return;
  const Order order = order_of(operands, result->sizes);
  if (!std::is_sorted(order.begin(), order.end(), std::greater<>())) result->strides = strides_in(order, result->sizes);
}

// Sets the strides of a pointwise operator's result.
static void follow_operands(Args args, TensorMeta* result) {
  if (result->sizes.size() < 2) return;
  const auto all_of = [&](auto holds) {
    return std::all_of(args.begin(), args.end(),
                       [&](const Arg& arg) { return arg.kind != Arg::Kind::kTensor || holds(*arg.tensor); });
  };
  if (all_of([](const TensorMeta& t) { return t.is_contiguous(); })) [[likely]]
    return;
  if (hint_of(result->numel()) == 0) return;
  Operands operands;
  for (const Arg& arg : args) {
    if (arg.kind == Arg::Kind::kTensor && !arg.tensor->is_number) operands.push_back(arg.tensor);
  }
  if (all_of([&](const TensorMeta& t) { return has_hints(t.sizes, result->sizes); })) {
    if (result->sizes.size() == 4 && all_have(operands, &is_channels_last)) {
      result->strides = channels_last_strides(result->sizes);
      return;
    }
    const SizesView first = operands[0]->strides;
    const auto has_first = [&](const TensorMeta* t) { return has_hints(t->strides, first); };
    if (std::all_of(operands.begin(), operands.end(), has_first) && is_dense(result->sizes, first)) {
      result->strides.assign(first.begin(), first.end());
      return;
    }
  }
  follow_order(operands, result);
}

// Sets the strides of advanced indexing: those of a pointwise operator of the indices and of the tensor, whose indexed
// dimensions are replaced by those of the indices with stride 0.
static void follow_index(const TensorMeta& input, absl::Span<const TensorMeta* const> indices, TensorMeta* result) {
  const auto is_plain = [](const TensorMeta* t) { return !t || t->is_contiguous(); };
  if (is_plain(&input) && std::all_of(indices.begin(), indices.end(), is_plain)) return;
  size_t first = indices.size(), last = 0, count = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    first = std::min(first, i);
    last = i;
    ++count;
  }
  if (count == 0) return;
  const size_t kept = input.sizes.size() - count, dims = result->sizes.size() - kept;
  const size_t before = last - first + 1 == count ? first : 0;  // dimensions before those of the indices
  const SizesView broadcast = SizesView(result->sizes).subspan(before, dims);
  absl::InlinedVector<TensorMeta, 4> restrided(count + 1, *result);
  for (TensorMeta& t : restrided) t.strides.assign(result->sizes.size(), 0);
  for (size_t d = 0, at = 0; d < input.sizes.size(); ++d) {
    if (d < indices.size() && indices[d]) continue;
    restrided[0].strides[at < before ? at : at + dims] = input.strides[d];
    ++at;
  }
  Operands operands{&restrided[0]};
  for (const TensorMeta* index : indices) {
    if (!index) continue;
    TensorMeta& t = restrided[operands.size()];
    for (size_t d = 0; d < dims; ++d) t.strides[before + d] = stride_over(*index, broadcast, d);
    operands.push_back(&t);
  }
  follow_order(operands, result);
}

// Sets the strides of rot90(): those of flip() of one or both dimensions, transposed by an odd number of rotations.
static void follow_rotation(const TensorMeta& input, int64_t rotations, SizesView dims, TensorMeta* result) {
  if (hint_of(result->numel()) == 0 || rotations % 4 == 0) return;
  const Arg source[] = {Arg(&input)};
  TensorMeta flipped = input;
  flipped.strides = contiguous_strides(input.sizes);
  follow_operands(source, &flipped);
  const auto wrapped = [&](int64_t d) { return static_cast<size_t>(d < 0 ? d + input.dim() : d); };
  if (rotations % 2 != 0) std::swap(flipped.strides[wrapped(dims[0])], flipped.strides[wrapped(dims[1])]);
  result->strides = flipped.strides;
}

// Sets the strides of stack(): those of the tensors joined along `dim`, which is divided. A new last dimension is
// joined otherwise, in row-major order.
static void follow_stacked(absl::Span<const TensorMeta* const> list, int64_t dim, TensorMeta* result) {
  const size_t d = static_cast<size_t>(dim < 0 ? dim + result->dim() : dim);
  if (hint_of(result->numel()) == 0 || d + 1 == result->sizes.size()) return;
  Sizes joined = list[0]->sizes;
  joined[d] *= static_cast<int64_t>(list.size());
  Sizes strides = channels_last_strides(joined);
  strides.insert(strides.begin() + static_cast<int64_t>(d), strides[d] * list[0]->sizes[d]);
  result->strides = strides;
}

void follow_arguments(const Op& op, Args args, Inference* out) {
  if (op.is_pointwise) return follow_operands(args, &out->outputs[0]);
  if (op.id > op_id::kMax) return;  // a custom operator
  bool is_last = false;
  switch (const Follow follow = kFollow[op.id]) {
    case Follow::kNothing: return;
    case Follow::kElements: return follow_operands(args, &out->outputs[0]);
    case Follow::kFirst:
      for (TensorMeta& result : out->outputs) follow_operands(args.first(1), &result);
      return;
    case Follow::kOrder: return follow_order({args[0].tensor}, &out->outputs[0]);
    case Follow::kIndex: return follow_index(*args[0].tensor, args[1].list(), &out->outputs[0]);
    case Follow::kGrads:  // the kernels of other devices write contiguous results
      for (size_t i = 0; i < out->outputs.size() && args[i + 1].tensor->device.type == DeviceType::kCPU; ++i)
        follow_order({args[i + 1].tensor}, &out->outputs[i]);
      return;
    case Follow::kRotated: return follow_rotation(*args[0].tensor, args[1].integer, args[2].ints(), &out->outputs[0]);
    case Follow::kInput: is_last = is_tensor_last(args, 0) && !is_row_major(op.id, args); break;
    case Follow::kWeight: is_last = is_tensor_last(args, 0) || is_tensor_last(args, 1); break;
    case Follow::kList:
    case Follow::kStack: {
      const auto list = args[0].list();
      is_last = !list.empty() && std::all_of(list.begin(), list.end(),
                                             [](const TensorMeta* t) { return t && suggests_channels_last(*t); });
      if (is_last && follow == Follow::kStack) return follow_stacked(list, args[1].integer, &out->outputs[0]);
    }
  }
  if (!is_last) return;
  for (TensorMeta& result : out->outputs) {
    const bool has_channels = result.dim() == 4 || result.dim() == 5;
    if (has_channels && hint_of(result.numel()) > 0) result.strides = channels_last_strides(result.sizes);
  }
}

}  // namespace tt
