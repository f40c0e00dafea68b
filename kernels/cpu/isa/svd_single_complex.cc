#include "kernels/cpu/isa/svd.h"

namespace tt::cpu::TT_ISA {

void add_single_complex_svd(MatrixTable* table) { table->c64.svd = &svd<Complex<float>>; }

}  // namespace tt::cpu::TT_ISA
