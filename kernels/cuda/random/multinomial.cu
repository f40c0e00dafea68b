// multinomial: one group of threads per row of weights.
#include "engine/session/context.h"
#include "kernels/common/math/scalar_math.h"
#include "kernels/common/random/random_ranges.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/device_error.h"
#include "kernels/cuda/random/random.h"

namespace tt::cuda {

namespace {

enum Wrong : int64_t { kBad, kNone, kFew };

Error wrong_weights(const DeviceErrorCell& cell) {
  return Error(ErrorKind::kRuntime, cell.values[0] == kBad    ? kBadWeights
                                    : cell.values[0] == kNone ? kNoWeight
                                                              : kFewWeights);
}

struct Rows {
  int64_t n;  // weights per row
  int64_t num_samples;
  const double* weights;
  const double* uniform;
  int64_t* out;
  DeviceErrorCell* cell;

  // Returns, to all threads of the group, whether samples can be drawn from the row. If not, reports an error and
  // writes zeros.
  TT_DEVICE bool check(Group& group, bool replacement) const {
    const double* row = weights + group.index() * n;
    double sum = 0;
    int64_t positive = 0, bad = 0;
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      bad += !(row[i] >= 0 && row[i] < math::kInf<double>);
      sum += row[i];
      positive += row[i] > 0;
    }
    bad = group.reduce(bad, Add());
    sum = group.reduce(sum, Add());
    positive = group.reduce(positive, Add());
    if (bad == 0 && sum > 0 && (replacement || positive >= num_samples)) return true;
    for (int64_t i = group.rank(); i < num_samples; i += group.size()) out[group.index() * num_samples + i] = 0;
    if (group.rank() == 0) report_error(cell, bad ? kBad : sum > 0 ? kFew : kNone, 0, 0);
    return false;
  }
};

// Selects indices by random positions in the cumulative sum of the weights. Each thread sums a piece of the weights,
// and one thread computes the offsets of the pieces.
struct WithReplacement {
  Rows rows;
  double* sums;                             // cumulative sums, one per weight
  double* offsets;                          // sum of the weights before each piece; kPieces per row
  static constexpr int64_t kPieces = 1024;  // maximum number of threads per group

  TT_DEVICE void operator()(Group& group) const {
    if (!rows.check(group, true)) return;
    const int64_t n = rows.n, row = group.index();
    const double* w = rows.weights + row * n;
    double *sum = sums + row * n, *offset = offsets + row * kPieces;
    const int64_t piece = (n + group.size() - 1) / group.size();
    const int64_t begin = group.rank() * piece, end = begin + piece < n ? begin + piece : n;
    double total = 0;
    for (int64_t i = begin; i < end; ++i) total += w[i];
    offset[group.rank()] = total;
    group.sync();
    if (group.rank() == 0) {
      double before = 0;
      for (int t = 0; t < group.size(); ++t) {
        const double own = offset[t];
        offset[t] = before;
        before += own;
      }
    }
    group.sync();
    total = offset[group.rank()];
    for (int64_t i = begin; i < end; ++i) sum[i] = total += w[i];
    group.sync();
    for (int64_t i = group.rank(); i < rows.num_samples; i += group.size()) {
      const int64_t at = row * rows.num_samples + i;
      rows.out[at] = chosen(w, sum, rows.uniform[at] * sum[n - 1]);
    }
  }
  // Returns the first index whose cumulative sum is greater than `position`.
  TT_DEVICE int64_t chosen(const double* w, const double* sum, double position) const {
    int64_t low = 0, high = rows.n - 1;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (sum[middle] > position)
        high = middle;
      else
        low = middle + 1;
    }
    while (low > 0 && w[low] == 0) --low;  // rounding may select an index after the last positive weight
    return low;
  }
};

struct Arrival {
  double time;
  int64_t index;
};
struct Earlier {
  TT_FUNCTION static bool before(const Arrival& a, const Arrival& b) {
    return a.time < b.time || (a.time == b.time && a.index < b.index);
  }
  TT_FUNCTION Arrival operator()(const Arrival& a, const Arrival& b) const { return before(b, a) ? b : a; }
};

// Simulates independent exponential arrivals with the weights as rates, and selects indices in the order of arrival.
struct WithoutReplacement {
  Rows rows;
  double* times;  // arrival times, one per weight

  TT_DEVICE void operator()(Group& group) const {
    if (!rows.check(group, false)) return;
    const int64_t n = rows.n, first = group.index() * n;
    for (int64_t i = group.rank(); i < n; i += group.size()) {
      const double w = rows.weights[first + i];
      times[first + i] = w == 0 ? math::kInf<double> : -math::log1p(-rows.uniform[first + i]) / w;
    }
    Arrival last{-1, -1};
    for (int64_t drawn = 0; drawn < rows.num_samples; ++drawn) {
      Arrival next{math::kInf<double>, n};
      for (int64_t i = group.rank(); i < n; i += group.size()) {
        const Arrival arrival{times[first + i], i};
        if (Earlier::before(last, arrival)) next = Earlier()(next, arrival);
      }
      last = group.reduce(next, Earlier());
      if (group.rank() == 0) rows.out[group.index() * rows.num_samples + drawn] = last.index;
    }
  }
};

}  // namespace

void multinomial(const Tensor& input, int64_t num_samples, bool replacement, Tensor& out) {
  const int64_t n = input.size(-1), rows = n == 0 ? 0 : input.numel() / n;
  if (rows == 0) return;
  const Device device = input.device();
  const Tensor weights = contiguous_as(input, DType::kFloat64);
  const Tensor uniform = empty({{rows, replacement ? num_samples : n}}, DType::kFloat64, device);
  draw_unit(uniform, 0, 1);
  const Queue queue = queue_of(out);
  const Rows all{n,
                 num_samples,
                 weights.data_as<double>(),
                 uniform.data_as<double>(),
                 out.data_as<int64_t>(),
                 open_error_cell(queue, &wrong_weights)};
  const Tensor scratch = empty({{rows, n}}, DType::kFloat64, device);
  if (replacement) {
    const Tensor offsets = empty({{rows, WithReplacement::kPieces}}, DType::kFloat64, device);
    for_each_group(queue, rows, n, WithReplacement{all, scratch.data_as<double>(), offsets.data_as<double>()});
  } else {
    for_each_group(queue, rows, n, WithoutReplacement{all, scratch.data_as<double>()});
  }
}

}  // namespace tt::cuda
