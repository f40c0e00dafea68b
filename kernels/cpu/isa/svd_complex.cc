#include "kernels/cpu/isa/svd.h"

namespace tt::cpu::TT_ISA {

void add_complex_svd(MatrixTable* table) { table->c128.svd = &svd<Complex<double>>; }

}  // namespace tt::cpu::TT_ISA
