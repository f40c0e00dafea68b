// Eigen, under a name of its own for each instruction set: templates that the linker shared would
// run AVX-512 code on a machine without. Parallel are the matrices of a batch, not their loops.
#pragma once

#define TT_EIGEN_OF(isa) Eigen_##isa
#define TT_EIGEN(isa) TT_EIGEN_OF(isa)
#define Eigen TT_EIGEN(TT_ISA)
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_NO_DEBUG

#include <Eigen/Core>
#include <complex>

#include "kernels/cpu/matrices.h"

namespace tt::cpu::TT_ISA {

// Eigen's word for an element: std::complex has our Complex's layout.
template <typename T>
struct ScalarOf {
  using type = T;
};
template <typename R>
struct ScalarOf<Complex<R>> {
  using type = std::complex<R>;
};
template <typename T>
using scalar_t = typename ScalarOf<T>::type;
template <typename T>
scalar_t<T>* scalars(T* elements) {
  return reinterpret_cast<scalar_t<T>*>(elements);
}
template <typename T>
const scalar_t<T>* scalars(const T* elements) {
  return reinterpret_cast<const scalar_t<T>*>(elements);
}

template <typename T>
using RowMatrix = Eigen::Matrix<scalar_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using ColumnMatrix = Eigen::Matrix<scalar_t<T>, Eigen::Dynamic, Eigen::Dynamic>;
template <typename T>
using Vector = Eigen::Matrix<scalar_t<T>, Eigen::Dynamic, 1>;
template <typename T>
Eigen::Map<RowMatrix<T>> row_map(T* elements, int64_t rows, int64_t columns) {
  return {scalars(elements), rows, columns};
}
template <typename T>
Eigen::Map<const RowMatrix<T>> row_map(const T* elements, int64_t rows, int64_t columns) {
  return {scalars(elements), rows, columns};
}
template <typename T>
Eigen::Map<Vector<T>> vector_map(T* elements, int64_t n) {
  return {scalars(elements), n};
}
template <typename T>
Eigen::Map<const Vector<T>> vector_map(const T* elements, int64_t n) {
  return {scalars(elements), n};
}

}  // namespace tt::cpu::TT_ISA
