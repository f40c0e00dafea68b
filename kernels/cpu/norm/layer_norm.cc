// Layer and RMS normalisation, with separate statistics per row.
#include <algorithm>
#include <cmath>

#include "engine/device/parallel.h"
#include "kernels/common/norm/norm_shape.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/converted_rows.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/norm_loops.h"

namespace tt::cpu {
namespace {

struct Rows : NormRows {
  using NormRows::NormRows;

  // Calls f(row, pointer to its elements, pointer to its results) on the thread pool. T is the type used for
  // computation.
  template <typename T, typename F>
  void for_each(const Tensor& x, const Tensor& y, F&& f) const {
    parallel_for(rows, std::max<int64_t>(1, rows::kGrain / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
      ConvertedRows<T> from(x, n), to(y, n);
      for (int64_t r = begin; r < end; ++r) {
        f(r, from.read(r * n, n), to.place(r * n));
        to.write(r * n, n);
      }
    });
  }
};

// Throws Error (RuntimeError) if an operand of a backward kernel does not have the rows' size.
void check_rows(const Rows& shape, const Tensor& grad, const Tensor& weight, const Tensor& rstd) {
  check_elements(grad, shape.rows * shape.n, "grad");
  check_elements(weight, shape.n, "weight");
  check_elements(rstd, shape.rows, "rstd");
}

// Sums vectors of n elements over all rows, such as the gradients of weight and bias. Each block of rows has separate
// sums, which total() adds.
template <typename T>
class VectorSums {
 public:
  VectorSums(const Rows& rows, int64_t vectors, DType dtype)
      : rows_(rows),
        width_(rows.n * vectors),
        blocks_(std::clamp<int64_t>(rows.rows * rows.n >> 14, 1, std::clamp<int64_t>(rows.rows, 1, kMaxBlocks))),
        sums_(empty(Sizes{blocks_ * width_}, dtype, Device{})) {
    std::fill_n(sums_.template data_as<T>(), blocks_ * width_, T(0));
  }
  // Calls f(row, offset, sums) for each row.
  template <typename F>
  void for_each(F&& f) {
    parallel_for(blocks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        T* sums = sums_.template data_as<T>() + b * width_;
        for (int64_t r = rows_.rows * b / blocks_; r < rows_.rows * (b + 1) / blocks_; ++r) f(r, r * rows_.n, sums);
      }
    });
  }
  void total(int64_t vector, const Tensor& out) const {
    for (int64_t j = 0; j < rows_.n; ++j) {
      T sum = 0;
      for (int64_t b = 0; b < blocks_; ++b) sum += sums_.template data_as<T>()[b * width_ + vector * rows_.n + j];
      out.data_as<T>()[j] = sum;
    }
  }

 private:
  static constexpr int64_t kMaxBlocks = 16;  // a constant, so that the sums do not depend on the number of threads
  const Rows& rows_;
  int64_t width_;
  int64_t blocks_;
  Tensor sums_;
};

}  // namespace

void layer_norm(const Tensor& input, absl::Span<const int64_t> normalized_shape, const Tensor& weight,
                const Tensor& bias, double eps, Tensor& output, Tensor& mean, Tensor& rstd) {
  const Tensor x = contiguous(input);
  const DType computed = accumulate_type(x.dtype());
  const Tensor w = contiguous_as(weight, computed), b = contiguous_as(bias, computed);
  const Rows shape(x, normalized_shape);
  AccumulateBuffer means(mean, computed), rstds(rstd, computed);
  check_elements(w, shape.n, "weight");
  check_elements(b, shape.n, "bias");
  with_real(computed, [&]<typename T>(std::type_identity<T>) {
    T *ms = means.tensor().data_as<T>(), *rs = rstds.tensor().data_as<T>();
    const T *ws = data_or_null<T>(w), *bs = data_or_null<T>(b);
    const double n = static_cast<double>(shape.n);
    shape.for_each<T>(x, output, [&](int64_t r, const T* row, T* to) {
      const T center = static_cast<T>(rows::sum(shape.n, row) / n);
      const T scale = static_cast<T>(1 / std::sqrt(rows::squares(shape.n, row, center) / n + eps));
      rows::normalize(shape.n, row, center, scale, ws, bs, to);
      ms[r] = center;
      rs[r] = scale;
    });
  });
  means.copy_to_output();
  rstds.copy_to_output();
}

void layer_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                         const Tensor& rstd, absl::Span<const int64_t> normalized_shape, Tensor& grad_input,
                         Tensor& grad_weight, Tensor& grad_bias) {
  const Tensor x = as_accumulate_type(input), g = contiguous_as(grad, x.dtype()), w = contiguous_as(weight, x.dtype());
  const Tensor means = contiguous_as(mean, x.dtype()), rstds = contiguous_as(rstd, x.dtype());
  const Rows shape(x, normalized_shape);
  AccumulateBuffer dx(grad_input, x.dtype()), dw(grad_weight, x.dtype()), db(grad_bias, x.dtype());
  check_rows(shape, g, w, rstds);
  check_elements(means, shape.rows, "mean");
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* ws = data_or_null<T>(w);
    T* to = dx.tensor().data_as<T>();
    VectorSums<T> sums(shape, 2, x.dtype());
    sums.for_each([&](int64_t r, int64_t at, T* part) {
      const T *row = x.data_as<T>() + at, *gs = g.data_as<T>() + at;
      const T center = means.data_as<T>()[r], scale = rstds.data_as<T>()[r];
      const double n = static_cast<double>(shape.n), s = static_cast<double>(scale);
      const rows::Sums of = rows::weighted_sum_and_dot(shape.n, gs, ws, row, center);
      rows::combine(shape.n, gs, ws, row, center, scale, static_cast<T>(-s * s * s * of.second / n),
                    static_cast<T>(-s * of.first / n), to + at);
      rows::add_affine_gradients(shape.n, gs, row, center, scale, part, part + shape.n);
    });
    sums.total(0, dw.tensor());
    sums.total(1, db.tensor());
  });
  dx.copy_to_output();
  dw.copy_to_output();
  db.copy_to_output();
}

void rms_norm(const Tensor& input, absl::Span<const int64_t> normalized_shape, const Tensor& weight, double eps,
              Tensor& output, Tensor& rstd) {
  const Tensor x = contiguous(input);
  const DType computed = accumulate_type(x.dtype());
  const Tensor w = contiguous_as(weight, computed);
  const Rows shape(x, normalized_shape);
  AccumulateBuffer rstds(rstd, computed);
  check_elements(w, shape.n, "weight");
  with_real(computed, [&]<typename T>(std::type_identity<T>) {
    T* rs = rstds.tensor().data_as<T>();
    shape.for_each<T>(x, output, [&](int64_t r, const T* row, T* to) {
      rs[r] = static_cast<T>(1 / std::sqrt(rows::squares(shape.n, row, T(0)) / static_cast<double>(shape.n) + eps));
      rows::normalize(shape.n, row, T(0), rs[r], data_or_null<T>(w), static_cast<const T*>(nullptr), to);
    });
  });
  rstds.copy_to_output();
}

void rms_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& rstd,
                       absl::Span<const int64_t> normalized_shape, Tensor& grad_input, Tensor& grad_weight) {
  const Tensor x = as_accumulate_type(input), g = contiguous_as(grad, x.dtype()), w = contiguous_as(weight, x.dtype());
  const Tensor rstds = contiguous_as(rstd, x.dtype());
  const Rows shape(x, normalized_shape);
  AccumulateBuffer dx(grad_input, x.dtype()), dw(grad_weight, x.dtype());
  check_rows(shape, g, w, rstds);
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* to = dx.tensor().data_as<T>();
    VectorSums<T> sums(shape, 1, x.dtype());
    sums.for_each([&](int64_t r, int64_t at, T* part) {
      const T *row = x.data_as<T>() + at, *gs = g.data_as<T>() + at, *ws = data_or_null<T>(w);
      const T scale = rstds.data_as<T>()[r];
      const double s = static_cast<double>(scale);
      const double dot = rows::weighted_sum_and_dot(shape.n, gs, ws, row, T(0)).second;
      rows::combine(shape.n, gs, ws, row, T(0), scale, static_cast<T>(-s * s * s * dot / static_cast<double>(shape.n)),
                    T(0), to + at);
      rows::add_affine_gradients(shape.n, gs, row, T(0), scale, part, static_cast<T*>(nullptr));
    });
    sums.total(0, dw.tensor());
  });
  dx.copy_to_output();
  dw.copy_to_output();
}

}  // namespace tt::cpu
