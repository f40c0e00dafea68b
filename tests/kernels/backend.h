// Registers the CPU backend, once per test binary.
#pragma once

#include "kernels/cpu/cpu.h"
#include "tests/kernels/tensors.h"

namespace tt::testing {

inline void have_backend() {
  static const bool registered = [] {
    cpu::register_backend(Dispatcher::instance());
    return true;
  }();
  (void)registered;
}

}  // namespace tt::testing
