#include "kernels/cpu/isa/svd.h"

namespace tt::cpu::TT_ISA {

void add_single_svd(MatrixTable* table) { table->f32.svd = &svd<float>; }

}  // namespace tt::cpu::TT_ISA
