// Random numbers by rejection sampling, with one thread per element. The numbers equal those of the CPU, unless the
// logarithms of the two math libraries differ in the last bit and this changes whether a proposal is accepted.
#include "engine/session/context.h"
#include "kernels/common/random/rejection.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/device_error.h"
#include "kernels/cuda/launch/vectors.h"

namespace tt::cuda {
namespace {

using rejection::Source;

template <const rejection::Range* kRange>
Error out_of_range_error(const DeviceErrorCell& cell) {
  return Error(ErrorKind::kRuntime,
               absl::StrCat(kRange->message, ", got ", __builtin_bit_cast(double, cell.values[0])));
}

// Returns the values as double. Invalid values are reported and replaced by 1, which is in every range.
template <const rejection::Range* kRange>
Tensor checked(const Tensor& t) {
  const Queue queue = queue_of(t);
  const Tensor values = contiguous_as(t, DType::kFloat64), fitting = empty(t.sizes(), DType::kFloat64, t.device());
  const double* x = values.data_as<double>();
  double* y = fitting.data_as<double>();
  const rejection::Range range{nullptr, kRange->low, kRange->high};
  DeviceErrorCell* cell = open_error_cell(queue, &out_of_range_error<kRange>);
  for_each(queue, t.numel(), [=] TT_DEVICE(int64_t i) {
    const bool fits = range.contains(x[i]);
    if (!fits) report_error(cell, __builtin_bit_cast(int64_t, x[i]), 0, 0);
    y[i] = fits ? x[i] : 1;
  });
  return fitting;
}

// Computes out[i] = draw(source, i), where `source` is the random source of element i.
template <typename Draw>
void draw_each(const Tensor& out, Draw draw) {
  const int64_t n = out.numel();
  const PhiloxState place = Context::current().draw(static_cast<uint64_t>(n) * rejection::kBlocksEach);
  const Access to(out);
  for_each(queue_of(out), n, [=] TT_DEVICE(int64_t i) {
    Source source =
        place.state ? Source(place.state[0], place.state[1] + place.offset, i) : Source(place.seed, place.offset, i);
    store_any<double>(to, i, draw(source, i));
  });
}

struct Gamma {
  const double* concentration;
  TT_DEVICE double operator()(Source& source, int64_t i) const {
    return rejection::draw_gamma(source, concentration[i]);
  }
};
struct Poisson {
  const double* rate;
  TT_DEVICE double operator()(Source& source, int64_t i) const { return rejection::draw_poisson(source, rate[i]); }
};
struct Trials {
  const double *count, *prob;
  TT_DEVICE double operator()(Source& source, int64_t i) const {
    return rejection::draw_trials(source, count[i], prob[i]);
  }
};

}  // namespace

void standard_gamma(const Tensor& concentration, Tensor& out) {
  draw_each(out, Gamma{checked<&rejection::kConcentrations>(concentration).data_as<double>()});
}

void poisson(const Tensor& input, Tensor& out) {
  draw_each(out, Poisson{checked<&rejection::kRates>(input).data_as<double>()});
}

void draw_binomial(const Tensor& count, const Tensor& prob, Tensor& out) {
  const Tensor counts = checked<&rejection::kCounts>(count), probs = checked<&rejection::kProbabilities>(prob);
  draw_each(out, Trials{counts.data_as<double>(), probs.data_as<double>()});
}

}  // namespace tt::cuda
