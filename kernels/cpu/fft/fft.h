// Fourier transforms; the kernels are declared in kernels.h.
#pragma once

namespace tt::cpu {

// Drops the cached plans. Thread-safe; transforms that use them continue.
void forget_fft_plans();

}  // namespace tt::cpu
