// Variance and standard deviation.
#include "kernels/common/iteration/complex_as_real.h"
#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reduce/reduce.h"

namespace tt::cuda {

namespace {

struct MomentsTotal {
  double count;
  double mean;
  double squares;  // sum of squared deviations from the mean
};

// A thread sums deviations from the first element that it reads, in double. Any element is close enough to the mean
// that the variance is not lost by cancellation. The results of threads are merged by Chan's formula.
template <typename T>
struct Moments {
  using Value = T;
  using Total = MomentsTotal;
  struct Part {
    double origin, sum, squares;
    int64_t count;
  };
  Access out;
  double correction;
  bool root;

  TT_FUNCTION Part begin() const { return {0, 0, 0, 0}; }
  TT_FUNCTION void add(Part& part, T x, int64_t) const {
    const double value = static_cast<double>(x);
    if (part.count == 0) part.origin = value;
    const double d = value - part.origin;
    part.sum += d;
    part.squares += d * d;
    ++part.count;
  }
  TT_FUNCTION void flush(Part&) const {}
  TT_FUNCTION MomentsTotal end(const Part& part) const {
    if (part.count == 0) return {0, 0, 0};
    const double count = static_cast<double>(part.count), mean = part.sum / count;
    return {count, part.origin + mean, part.squares - part.sum * mean};
  }
  TT_FUNCTION MomentsTotal merge(const MomentsTotal& a, const MomentsTotal& b) const {
    if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
    const double count = a.count + b.count, delta = b.mean - a.mean;
    return {count, a.mean + delta * (b.count / count),
            a.squares + b.squares + delta * delta * (a.count * b.count / count)};
  }
  // Stores the sum of squared deviations divided by the degrees of freedom, or the root of this quotient. Like PyTorch,
  // divides by 0 if there are no degrees of freedom.
  TT_FUNCTION void store(int64_t output, const MomentsTotal& total) const {
    const double freedom = total.count - correction, squares = total.squares < 0 ? 0 : total.squares;
    const double variance = squares / (freedom > 0 ? freedom : 0.0);
    out.store(output, root ? math::sqrt(variance) : variance);
  }
};

void moments_into(const Tensor& input, const OptionalDims& dim, int64_t correction, bool root, Tensor& out) {
  const auto reduce_as = [&]<typename T>(std::type_identity<T>) {
    const Tensor x = read_as<T>(input);
    const ReducePlan plan = reduction_plan(x, dim);
    reduce(Moments<T>{Access(out), static_cast<double>(correction), root}, x, plan);
  };
  out.dtype() == DType::kFloat64 ? reduce_as(std::type_identity<double>()) : reduce_as(std::type_identity<float>());
}

// The variance of complex numbers is the sum of the variances of their real and imaginary parts.
void moments_of_parts(const Tensor& input, const OptionalDims& dim, int64_t correction, bool root, Tensor& out) {
  Tensor variances[2];
  for (int which : {0, 1}) {
    variances[which] = empty(out.sizes(), DType::kFloat64, out.device());
    moments_into(part(input, which), dim, correction, false, variances[which]);
  }
  const double *re = variances[0].data_as<double>(), *im = variances[1].data_as<double>();
  const Access to(out);
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) {
    const double variance = re[i] + im[i];
    to.store(i, root ? math::sqrt(variance) : variance);
  });
}

void moments(const Tensor& input, const OptionalDims& dim, int64_t correction, bool root, Tensor& out) {
  is_complex(input.dtype()) ? moments_of_parts(input, dim, correction, root, out)
                            : moments_into(input, dim, correction, root, out);
}

}  // namespace

void var(const Tensor& input, std::optional<absl::Span<const int64_t>> dim, int64_t correction, bool, Tensor& out) {
  moments(input, dim, correction, false, out);
}

void std(const Tensor& input, std::optional<absl::Span<const int64_t>> dim, int64_t correction, bool, Tensor& out) {
  moments(input, dim, correction, true, out);
}

}  // namespace tt::cuda
