// Rules of the operators on quantized integers.
#include <limits>

#include "engine/schema/error.h"
#include "engine/schema/rules/dtype_rules.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {

namespace dtype_rules {

DType int8_product(const Arg& input, const Arg& weight) {
  const DType x = same(input), w = same(weight);
  check((x == DType::kUInt8 || x == DType::kInt8) && w == DType::kInt8,
        "expected an input of uint8 or int8 and a weight of int8, got ", name(x), " and ", name(w));
  return DType::kInt32;
}

DType int8_requantized(const Arg& input, const Arg& weight, int64_t quant_min, int64_t quant_max, bool is_signed) {
  int8_product(input, weight);
  const SymInt lowest = is_signed ? -128 : 0;
  check(lowest <= quant_min && quant_min <= quant_max && quant_max < lowest + 256,
        "expected quant_min and quant_max in ascending order in the range of 8 bits, got ", quant_min, " and ",
        quant_max);
  return is_signed ? DType::kInt8 : DType::kUInt8;
}

DType weight_only(const Arg& input, const Arg& weight, DType wanted) {
  require_floating(same(input));
  check(same(weight) == wanted, "expected a weight of ", name(wanted), ", got ", name(same(weight)));
  return same(input);
}

}  // namespace dtype_rules

namespace shape_rules {
namespace {

SizesView sizes_of(const Arg& t) { return t.is_number() ? SizesView() : t.tensor->sizes; }

SymInt elements(const Arg& t) {
  SymInt count = 1;
  for (SymInt size : sizes_of(t)) count *= size;
  return count;
}

}  // namespace

Sizes fake_quantize_channels(const Arg& input, const Arg& scale, const Arg& zero_point, int64_t axis, int64_t quant_min,
                             int64_t quant_max) {
  const SizesView x = sizes_of(input), s = sizes_of(scale);
  check(s.size() == 1 && s == sizes_of(zero_point), "scale and zero-point need to have the same dimensions");
  const int64_t channel = wrap_dim(axis, static_cast<int64_t>(x.size()));
  check(!x.empty() && x[static_cast<size_t>(channel)] == s[0],
        "dimensions of scale and zero-point are not consistent with input tensor");
  check(quant_min <= quant_max, "`quant_min` should be less than or equal to `quant_max`.");
  return Sizes(x.begin(), x.end());
}

Sizes int8_linear(const Arg& input, const Arg& weight) {
  SizesView x = sizes_of(input), w = sizes_of(weight);
  check(!x.empty() && w.size() == 2, "expected an input with rows and a matrix as weight, got sizes ", x, " and ", w);
  check(x.back() == w[1], "The number of elements of the input's rows (", x.back(), ") must be equal to the weight's (",
        w[1], ")");
  Sizes result(x.begin(), x.end());
  result.back() = w[0];
  return result;
}

Sizes int4_pack(const Arg& weight) {
  SizesView w = sizes_of(weight);
  check(w.size() == 2 && w[1] % 32 == 0 && w[1] > 0,
        "expected a matrix of 4-bit weights with a multiple of 32 columns, got sizes ", w);
  return {w[0], w[1] / 2};
}

Sizes int4_weight_mm(const Arg& input, const Arg& weight, SymInt group_size, const Arg& scales_and_zeros) {
  SizesView x = sizes_of(input), w = sizes_of(weight), s = sizes_of(scales_and_zeros);
  check(x.size() == 2 && w.size() == 2 && w[1] <= std::numeric_limits<int64_t>::max() / 2 && x[1] == 2 * w[1],
        "expected a matrix and packed 4-bit weights of as many columns, got sizes ", x, " and ", w);
  check(group_size == 32 || group_size == 64 || group_size == 128 || group_size == 256,
        "expected qGroupSize to be 32, 64, 128 or 256, got ", group_size);
  check(x[1] % group_size == 0, "expected a multiple of qGroupSize ", group_size, " columns, got ", x[1]);
  check(s.size() == 3 && s[0] == x[1] / group_size && s[1] == w[0] && s[2] == 2,
        "expected qScaleAndZeros to have the sizes [", x[1] / group_size, ", ", w[0], ", 2], got ", s);
  return {x[0], w[0]};
}

Checked observe_moving_average(const Arg& input, const Arg& observer_on, const Arg& running_min, const Arg& running_max,
                               const Arg& scale, const Arg& zero_point, int64_t quant_min, int64_t quant_max,
                               int64_t ch_axis, bool per_row) {
  constexpr SymInt kLimit = int64_t{1} << 30;
  check(-kLimit <= quant_min && quant_min < quant_max && quant_max <= kLimit,
        "expected quant_min < quant_max of at most 31 bits, got ", quant_min, " and ", quant_max);
  check(elements(observer_on) == 2, "expected observer_on to have two elements, got ", elements(observer_on));
  const auto dims = static_cast<int64_t>(sizes_of(input).size());
  check(!per_row || (0 <= ch_axis && ch_axis < dims), "Error in fused_moving_avg_obs_fake_quant: ch_axis must be < ",
        "self.dim(), got ", ch_axis, " for ", dims, " dimensions");
  const SymInt count = per_row ? sizes_of(input)[ch_axis] : SymInt(1);
  for (const Arg* t : {&running_min, &running_max, &scale, &zero_point}) {
    check(elements(*t) == count, "expected ", count, " minima, maxima, scales and zero points, got ", elements(*t));
  }
  return {};
}

}  // namespace shape_rules
}  // namespace tt
