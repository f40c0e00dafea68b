// Batch normalisation over N x C x space: statistics per channel, and the gradients.
#include <cmath>
#include <utility>

#include "engine/device/parallel.h"
#include "engine/schema/layout.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/norm/norm_shape.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/norm_loops.h"
#include "kernels/cpu/norm/running_norm.h"

namespace tt::cpu {
namespace {

using rows::Sums;

// A tensor as runs of `space` elements of one channel, with `images` runs per channel. A tensor without spatial
// dimensions (N x C) is transposed first, so that a channel is a single run.
struct Channels {
  int64_t images = 1, channels = 1, space = 1;
  bool is_transposed = false;

  explicit Channels(const Tensor& t) : images(t.size(0)), channels(t.size(1)) {
    for (int64_t d = 2; d < t.dim(); ++d) space *= t.size(d);
    if (space == 1 && images > 1) {
      is_transposed = true;
      std::swap(images, space);
    }
  }
  int64_t count() const { return images * space; }
  // Returns `t` with contiguous runs, in `dtype`.
  Tensor runs(const Tensor& t, DType dtype) const {
    if (!is_transposed) return contiguous_as(t, dtype);
    Tensor out = empty(Sizes{channels, space}, dtype, t.device());
    copy(by_channel(t), out);
    return out;
  }
  // result() returns the tensor to write runs to; finish() copies it to `wide_out` if it was transposed.
  Tensor result(const Tensor& wide_out) const {
    return is_transposed ? empty(Sizes{channels, space}, wide_out.dtype(), wide_out.device()) : wide_out;
  }
  void finish(const Tensor& runs, const Tensor& wide_out) const {
    if (is_transposed) copy(runs, by_channel(wide_out));
  }
  // Views N x C as C x N.
  Tensor by_channel(const Tensor& t) const {
    return view_of(t, Geometry{{channels, space}, {t.stride(1), t.stride(0)}, t->offset, true});
  }
  template <typename F>
  void for_each_channel(F&& f) const {
    parallel_for(channels, std::max<int64_t>(1, rows::kGrain / std::max<int64_t>(count(), 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t c = begin; c < end; ++c) f(c);
                 });
  }
  // Calls f(offset) for each run of channel c.
  template <typename F>
  void for_each_run(int64_t c, F&& f) const {
    for (int64_t i = 0; i < images; ++i) f((i * channels + c) * space);
  }
};

// Updates a running statistic, of any floating dtype, with the batch's value.
void update_running(const Tensor& running, int64_t c, double momentum, double value) {
  with_element(running.dtype(), [&]<typename T>(std::type_identity<T>) {
    T& at = running.data_as<T>()[c * running.stride(0)];
    at = static_cast<T>((1 - momentum) * static_cast<double>(at) + momentum * value);
  });
}

struct RowStatistics {
  double mean = 0;
  double rstd = 0;
};

struct Moments {
  double mean;
  double variance;  // divided by n, not n - 1
};
template <typename T>
Moments moments(const Channels& shape, const T* x, int64_t c) {
  double sum = 0, squares = 0;
  shape.for_each_run(c, [&](int64_t at) { sum += rows::sum(shape.space, x + at); });
  const double mean = sum / static_cast<double>(shape.count());
  shape.for_each_run(c, [&](int64_t at) { squares += rows::squares(shape.space, x + at, static_cast<T>(mean)); });
  return {mean, squares / static_cast<double>(shape.count())};
}

// Computes the batch statistics of channel c and updates the running ones.
template <typename T>
RowStatistics batch_statistics(const Channels& shape, const T* x, int64_t c, const Tensor& running_mean,
                               const Tensor& running_var, double momentum, double eps) {
  const double n = static_cast<double>(shape.count());
  if (n == 0) return {0, 1 / std::sqrt(eps)};
  const Moments m = moments(shape, x, c);
  if (running_mean) update_running(running_mean, c, momentum, m.mean);
  if (running_var) update_running(running_var, c, momentum, m.variance * n / (n - 1));
  return {m.mean, 1 / std::sqrt(m.variance + eps)};
}

// Normalises images whose channels are neighbours with running statistics, if the result has the same layout. Returns
// whether it was done.
bool normalize_channels_last(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                             const Tensor& weight, const Tensor& bias, double eps, const Tensor& output, Tensor& mean,
                             Tensor& rstd) {
  const bool has_dtype = input.dtype() == DType::kFloat32 || input.dtype() == DType::kFloat64;
  if (!has_dtype || output.is_contiguous() || !is_channels_last(input.sizes(), input.strides()) ||
      !is_channels_last(output.sizes(), output.strides())) {
    return false;
  }
  const int64_t channels = input.size(1), count = input.numel() / channels;
  with_real(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    const RunningNorm<T> norm(running_mean, running_var, weight, bias, eps, input.dtype());
    const T* x = input.data_as<T>();
    T* y = output.data_as<T>();
    parallel_for(count, std::max<int64_t>(1, rows::kGrain / channels), [&](int64_t begin, int64_t end) {
      normalize_rows(end - begin, channels, norm.channels(), x + begin * channels, y + begin * channels);
    });
    const Tensor variance = contiguous_as(running_var, input.dtype());
    for (int64_t c = 0; c < channels; ++c) {
      mean.data_as<T>()[c] = norm.channels().center[c];
      rstd.data_as<T>()[c] = static_cast<T>(1 / std::sqrt(static_cast<double>(variance.data_as<T>()[c]) + eps));
    }
  });
  return true;
}

}  // namespace

void batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                const Tensor& bias, bool training, double momentum, double eps, Tensor& output, Tensor& mean,
                Tensor& rstd) {
  check_batch_norm(input, running_mean, running_var, weight, bias);
  if (!training && normalize_channels_last(input, running_mean, running_var, weight, bias, eps, output, mean, rstd))
    return;
  const Channels shape(input);
  const Tensor x = shape.runs(input, accumulate_type(input.dtype())), w = contiguous_as(weight, x.dtype()),
               b = contiguous_as(bias, x.dtype());
  const Tensor given_mean = training ? Tensor() : contiguous_as(running_mean, x.dtype());
  const Tensor given_var = training ? Tensor() : contiguous_as(running_var, x.dtype());
  AccumulateBuffer result(output, x.dtype()), means(mean, x.dtype()), rstds(rstd, x.dtype());
  const Tensor y = shape.result(result.tensor());
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T *xs = x.data_as<T>(), *ws = data_or_null<T>(w), *bs = data_or_null<T>(b);
    T *ms = means.tensor().data_as<T>(), *rs = rstds.tensor().data_as<T>();
    shape.for_each_channel([&](int64_t c) {
      RowStatistics s;
      if (training) {
        s = batch_statistics(shape, xs, c, running_mean, running_var, momentum, eps);
      } else {
        s = {static_cast<double>(given_mean.data_as<T>()[c]),
             1 / std::sqrt(static_cast<double>(given_var.data_as<T>()[c]) + eps)};
      }
      ms[c] = static_cast<T>(s.mean);
      rs[c] = static_cast<T>(s.rstd);
      const T scale = static_cast<T>(s.rstd * (ws ? static_cast<double>(ws[c]) : 1.0)), shift = bs ? bs[c] : T(0);
      shape.for_each_run(c, [&](int64_t at) {
        rows::scale_shift(shape.space, xs + at, static_cast<T>(s.mean), scale, shift, y.data_as<T>() + at);
      });
    });
  });
  shape.finish(y, result.tensor());
  result.copy_to_output();
  means.copy_to_output();
  rstds.copy_to_output();
}

void batch_norm_stats(const Tensor& input, double eps, Tensor& mean, Tensor& rstd) {
  const Channels shape(input);
  const Tensor x = shape.runs(input, mean.dtype());
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    shape.for_each_channel([&](int64_t c) {
      const RowStatistics s = batch_statistics(shape, x.data_as<T>(), c, {}, {}, 0, eps);
      mean.data_as<T>()[c] = static_cast<T>(s.mean);
      rstd.data_as<T>()[c] = static_cast<T>(s.rstd);
    });
  });
}

// In training each gradient depends on the whole channel, through its statistics; in evaluation it does not.
void batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                         const Tensor& rstd, bool training, Tensor& grad_input, Tensor& grad_weight,
                         Tensor& grad_bias) {
  check_batch_norm_backward(grad, input, weight, mean, rstd);
  const Channels shape(input);
  const Tensor x = shape.runs(input, accumulate_type(input.dtype())), g = shape.runs(grad, x.dtype()),
               w = contiguous_as(weight, x.dtype());
  const Tensor means = contiguous_as(mean, x.dtype()), rstds = contiguous_as(rstd, x.dtype());
  AccumulateBuffer dx_result(grad_input, x.dtype()), dw_result(grad_weight, x.dtype()), db_result(grad_bias, x.dtype());
  const Tensor dx = shape.result(dx_result.tensor());
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T *xs = x.data_as<T>(), *gs = g.data_as<T>(), *ws = data_or_null<T>(w);
    shape.for_each_channel([&](int64_t c) {
      const double center = means.data_as<T>()[c], inverse = rstds.data_as<T>()[c];
      Sums sums{0, 0};
      shape.for_each_run(c, [&](int64_t at) {
        const Sums part = rows::sum_and_dot(shape.space, gs + at, xs + at, static_cast<T>(center));
        sums.first += part.first;
        sums.second += part.second;
      });
      dw_result.tensor().template data_as<T>()[c] = static_cast<T>(sums.second * inverse);
      db_result.tensor().template data_as<T>()[c] = static_cast<T>(sums.first);
      const double n = static_cast<double>(shape.count());
      const double a = (ws ? static_cast<double>(ws[c]) : 1.0) * inverse;
      const double b = training ? -a * inverse * inverse * sums.second / n : 0;
      const double constant = training ? -a * sums.first / n : 0;
      shape.for_each_run(c, [&](int64_t at) {
        rows::combine(shape.space, gs + at, static_cast<const T*>(nullptr), xs + at, static_cast<T>(center),
                      static_cast<T>(a), static_cast<T>(b), static_cast<T>(constant), dx.data_as<T>() + at);
      });
    });
  });
  shape.finish(dx, dx_result.tensor());
  dx_result.copy_to_output();
  dw_result.copy_to_output();
  db_result.copy_to_output();
}

}  // namespace tt::cpu
