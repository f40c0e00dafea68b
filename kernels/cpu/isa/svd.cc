#include "kernels/cpu/isa/svd.h"

namespace tt::cpu::TT_ISA {

void add_svd(MatrixTable* table) {
  table->f64.svd = &svd<double>;
  add_single_svd(table);
  add_complex_svd(table);
  add_single_complex_svd(table);
}

}  // namespace tt::cpu::TT_ISA
