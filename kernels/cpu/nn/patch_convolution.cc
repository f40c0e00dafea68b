// Convolutions as products with a matrix of patches (C/groups * kernel rows, one column per output).
#include <algorithm>
#include <cstring>

#include "engine/device/parallel.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/blas/gemm.h"
#include "kernels/cpu/nn/convolution.h"

namespace tt::cpu {
namespace {

// The index computations between images and their matrix of patches.
struct Patches : ConvolutionShape {
  using ConvolutionShape::ConvolutionShape;
  int64_t rows() const { return in_channels * product(kernel); }
  int64_t columns() const { return product(out); }
  int64_t image(int64_t n, int64_t g) const { return (n * groups + g) * in_channels * product(in); }
  int64_t result(int64_t n, int64_t g) const { return (n * groups + g) * out_channels * product(out); }
  int64_t weight(int64_t g) const { return g * out_channels * rows(); }

  // Calls visit(input offset, or -1 for padding, index in the matrix) for each element of a row of the matrix.
  template <typename F>
  void for_each_in_row(int64_t row, F&& visit) const {
    const int64_t c = row / product(kernel);
    const int64_t k0 = row / (kernel[1] * kernel[2]) % kernel[0], k1 = row / kernel[2] % kernel[1],
                  k2 = row % kernel[2];
    int64_t at = row * columns();
    for (int64_t o0 = 0; o0 < out[0]; ++o0) {
      const int64_t i0 = o0 * stride[0] - padding[0] + k0 * dilation[0];
      for (int64_t o1 = 0; o1 < out[1]; ++o1) {
        const int64_t i1 = o1 * stride[1] - padding[1] + k1 * dilation[1];
        const bool inside = i0 >= 0 && i0 < in[0] && i1 >= 0 && i1 < in[1];
        const int64_t line = ((c * in[0] + i0) * in[1] + i1) * in[2];
        int64_t i2 = k2 * dilation[2] - padding[2];
        for (int64_t o2 = 0; o2 < out[2]; ++o2, i2 += stride[2], ++at) {
          visit(inside && i2 >= 0 && i2 < in[2] ? line + i2 : -1, at);
        }
      }
    }
  }
};

template <typename T>
void gather(const Patches& p, const T* image, T* matrix) {
  parallel_for(p.rows(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      p.for_each_in_row(row, [&](int64_t from, int64_t at) { matrix[at] = from < 0 ? T(0) : image[from]; });
    }
  });
}

// Adds the matrix's elements back to the image positions they came from. Rows of one channel overlap, so each task
// processes a whole channel.
template <typename T>
void scatter(const Patches& p, const T* matrix, T* image) {
  const int64_t kernel = Patches::product(p.kernel);
  parallel_for(p.in_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * kernel; row < end * kernel; ++row) {
      p.for_each_in_row(row, [&](int64_t to, int64_t at) {
        if (to >= 0) image[to] = static_cast<T>(image[to] + matrix[at]);
      });
    }
  });
}

}  // namespace

void patch_convolution(const Tensor& x, const Tensor& w, const ConvolutionParams& params, Tensor& out) {
  const Patches p(x.sizes(), w.sizes(), out.sizes(), params);
  const int64_t m = p.out_channels, n = p.columns(), k = p.rows();
  Tensor matrix = empty(Sizes{k, n}, x.dtype(), x.device());
  with_element(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    for (int64_t i = 0; i < p.images; ++i) {
      for (int64_t g = 0; g < p.groups; ++g) {
        gather(p, x.data_as<T>() + p.image(i, g), matrix.data_as<T>());
        gemm({x.dtype(),
              m,
              n,
              k,
              {w.data_as<T>() + p.weight(g), k, 1},
              {matrix.data(), n, 1},
              out.data_as<T>() + p.result(i, g)});
      }
    }
  });
}

void patch_convolution_data(const Tensor& g, const Tensor& w, const ConvolutionParams& params, Tensor& dx) {
  const Patches p(dx.sizes(), w.sizes(), g.sizes(), params);
  const int64_t m = p.rows(), n = p.columns(), k = p.out_channels;
  Tensor matrix = empty(Sizes{m, n}, g.dtype(), g.device());
  with_element(g.dtype(), [&]<typename T>(std::type_identity<T>) {
    std::fill_n(dx.data_as<T>(), dx.numel(), T(0));
    for (int64_t i = 0; i < p.images; ++i) {
      for (int64_t group = 0; group < p.groups; ++group) {
        gemm({g.dtype(),
              m,
              n,
              k,
              {w.data_as<T>() + p.weight(group), 1, m},
              {g.data_as<T>() + p.result(i, group), n, 1},
              matrix.data()});
        scatter(p, matrix.data_as<T>(), dx.data_as<T>() + p.image(i, group));
      }
    }
  });
}

void patch_convolution_weights(const Tensor& g, const Tensor& x, const ConvolutionParams& params, Tensor& dw) {
  const Patches p(x.sizes(), dw.sizes(), g.sizes(), params);
  const int64_t m = p.out_channels, n = p.rows(), k = p.columns();
  Tensor matrix = empty(Sizes{n, k}, g.dtype(), g.device());
  Tensor part = empty(Sizes{m, n}, g.dtype(), g.device());
  with_element(g.dtype(), [&]<typename T>(std::type_identity<T>) {
    std::fill_n(dw.data_as<T>(), dw.numel(), T(0));
    for (int64_t i = 0; i < p.images; ++i) {
      for (int64_t group = 0; group < p.groups; ++group) {
        gather(p, x.data_as<T>() + p.image(i, group), matrix.data_as<T>());
        gemm({g.dtype(), m, n, k, {g.data_as<T>() + p.result(i, group), k, 1}, {matrix.data(), 1, k}, part.data()});
        T* sum = dw.data_as<T>() + p.weight(group);
        for (int64_t j = 0; j < m * n; ++j) sum[j] = static_cast<T>(sum[j] + part.data_as<T>()[j]);
      }
    }
  });
}

}  // namespace tt::cpu
