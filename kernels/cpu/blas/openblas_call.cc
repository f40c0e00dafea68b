#include "kernels/cpu/blas/openblas_call.h"

#include <chrono>
#include <cstddef>
#include <semaphore>

#include "engine/device/cancellation.h"

namespace tt::cpu {
namespace {

constexpr std::ptrdiff_t kMaxCallers = 96;
std::counting_semaphore<kMaxCallers> callers(kMaxCallers);

}  // namespace

OpenBlasCall::OpenBlasCall() : allowed_(callers.try_acquire()) {
  while (!allowed_ && !cancel_requested()) allowed_ = callers.try_acquire_for(std::chrono::milliseconds(20));
}

OpenBlasCall::~OpenBlasCall() {
  if (allowed_) callers.release();
}

}  // namespace tt::cpu
