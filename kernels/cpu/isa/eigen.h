// Eigen, under a name of its own for each instruction set: templates that the linker shared would
// run AVX-512 code on a machine without. Parallel are the matrices of a batch, not their loops.
#pragma once

#define TT_EIGEN_OF(isa) Eigen_##isa
#define TT_EIGEN(isa) TT_EIGEN_OF(isa)
#define Eigen TT_EIGEN(TT_ISA)
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_NO_DEBUG

#include <Eigen/Core>

#include "kernels/cpu/matrices.h"

namespace tt::cpu::TT_ISA {

template <typename T>
using RowMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using ColumnMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <typename T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
template <typename T>
using RowMap = Eigen::Map<RowMatrix<T>>;
template <typename T>
using ConstRowMap = Eigen::Map<const RowMatrix<T>>;

}  // namespace tt::cpu::TT_ISA
