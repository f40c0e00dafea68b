#include "python/bindings/tensor/gil.h"

#include <cxxabi.h>
#include <unistd.h>

namespace tt::python {

void sleep_until_exit() noexcept {
  for (;;) pause();
}

void restore_gil(PyThreadState* state) noexcept {
  try {
    PyEval_RestoreThread(state);
  } catch (const abi::__forced_unwind&) {
    sleep_until_exit();
  }
}

HoldGil::HoldGil() noexcept {
  try {
    state_ = PyGILState_Ensure();
  } catch (const abi::__forced_unwind&) {
    sleep_until_exit();
  }
}

}  // namespace tt::python
