// Group normalisation over N x C x space: channels are split into groups, with separate statistics per group and
// sample.
#include <algorithm>
#include <cmath>

#include "engine/device/parallel.h"
#include "kernels/common/norm/norm_shape.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/norm_loops.h"

namespace tt::cpu {
namespace {

struct Groups : NormGroups {
  using NormGroups::NormGroups;

  int64_t elements() const { return channels * space; }  // per group
  int64_t all_channels() const { return groups * channels; }
  // Calls f(index among all samples' groups, offset, first channel) for each group, in parallel.
  template <typename F>
  void for_each(F&& f) const {
    const int64_t grain = std::max<int64_t>(1, rows::kGrain / std::max<int64_t>(elements(), 1));
    parallel_for(samples * groups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i, i * elements(), i % groups * channels);
    });
  }
};

}  // namespace

void group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps,
                Tensor& output, Tensor& mean, Tensor& rstd) {
  const Tensor x = as_accumulate_type(input), w = contiguous_as(weight, x.dtype()), b = contiguous_as(bias, x.dtype());
  const Groups shape(input, num_groups);
  check_elements(w, shape.all_channels(), "weight");
  check_elements(b, shape.all_channels(), "bias");
  AccumulateBuffer result(output, x.dtype()), means(mean, x.dtype()), rstds(rstd, x.dtype());
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T *y = result.tensor().data_as<T>(), *ms = means.tensor().data_as<T>(), *rs = rstds.tensor().data_as<T>();
    const T *ws = data_or_null<T>(w), *bs = data_or_null<T>(b);
    const double n = static_cast<double>(shape.elements());
    shape.for_each([&](int64_t i, int64_t at, int64_t first) {
      const T* group = x.data_as<T>() + at;
      const T center = static_cast<T>(rows::sum(shape.elements(), group) / n);
      const T scale = static_cast<T>(1 / std::sqrt(rows::squares(shape.elements(), group, center) / n + eps));
      for (int64_t c = 0; c < shape.channels; ++c) {
        const int64_t run = c * shape.space;
        rows::scale_shift(shape.space, group + run, center, scale * (ws ? ws[first + c] : T(1)),
                          bs ? bs[first + c] : T(0), y + at + run);
      }
      ms[i] = center;
      rs[i] = scale;
    });
  });
  result.copy_to_output();
  means.copy_to_output();
  rstds.copy_to_output();
}

void group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                         const Tensor& rstd, int64_t num_groups, Tensor& grad_input, Tensor& grad_weight,
                         Tensor& grad_bias) {
  const Tensor x = as_accumulate_type(input), g = contiguous_as(grad, x.dtype()), w = contiguous_as(weight, x.dtype());
  const Tensor means = contiguous_as(mean, x.dtype()), rstds = contiguous_as(rstd, x.dtype());
  const Groups shape(input, num_groups);
  check_elements(g, x.numel(), "grad");
  check_elements(w, shape.all_channels(), "weight");
  check_elements(means, shape.samples * shape.groups, "mean");
  check_elements(rstds, shape.samples * shape.groups, "rstd");
  AccumulateBuffer dx(grad_input, x.dtype()), dw(grad_weight, x.dtype()), db(grad_bias, x.dtype());
  // The sums of each channel of each sample. All three gradients are computed from these sums.
  const Tensor scratch = empty(Sizes{shape.samples * shape.all_channels(), 2}, DType::kFloat64, Device{});
  rows::Sums* sums = scratch.data_as<rows::Sums>();
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* ws = data_or_null<T>(w);
    T* to = dx.tensor().data_as<T>();
    shape.for_each([&](int64_t i, int64_t at, int64_t first) {
      const double center = means.data_as<T>()[i], scale = rstds.data_as<T>()[i];
      rows::Sums group_sums{0, 0};
      for (int64_t c = 0; c < shape.channels; ++c) {
        const int64_t run = at + c * shape.space;
        const double weighs = ws ? static_cast<double>(ws[first + c]) : 1.0;
        rows::Sums& channel = sums[i * shape.channels + c];
        channel = rows::sum_and_dot(shape.space, g.data_as<T>() + run, x.data_as<T>() + run, static_cast<T>(center));
        group_sums.first += weighs * channel.first;
        group_sums.second += weighs * channel.second;
        channel.second *= scale;
      }
      const double n = static_cast<double>(shape.elements());
      for (int64_t c = 0; c < shape.channels; ++c) {
        const int64_t run = at + c * shape.space;
        rows::combine(shape.space, g.data_as<T>() + run, static_cast<const T*>(nullptr), x.data_as<T>() + run,
                      static_cast<T>(center), static_cast<T>(scale * (ws ? static_cast<double>(ws[first + c]) : 1.0)),
                      static_cast<T>(-scale * scale * scale * group_sums.second / n),
                      static_cast<T>(-scale * group_sums.first / n), to + run);
      }
    });
    for (int64_t c = 0; c < shape.all_channels(); ++c) {
      rows::Sums total{0, 0};
      for (int64_t s = 0; s < shape.samples; ++s) {
        total.first += sums[s * shape.all_channels() + c].first;
        total.second += sums[s * shape.all_channels() + c].second;
      }
      dw.tensor().template data_as<T>()[c] = static_cast<T>(total.second);
      db.tensor().template data_as<T>()[c] = static_cast<T>(total.first);
    }
  });
  dx.copy_to_output();
  dw.copy_to_output();
  db.copy_to_output();
}

}  // namespace tt::cpu
