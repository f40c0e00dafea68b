#include "kernels/cpu/blas/openblas_call.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <semaphore>

#include "engine/device/cancellation.h"
#include "engine/device/fair_queue.h"

namespace tt::cpu {
namespace {

constexpr std::ptrdiff_t kMaxCallers = 96;
std::counting_semaphore<kMaxCallers> callers(kMaxCallers);

}  // namespace

OpenBlasCall::OpenBlasCall() : allowed_(callers.try_acquire()) {
  if (allowed_) return;
  // Callers may wait for a turn between their calls: if waiting threads kept theirs, all would wait for ever.
  std::optional<Turn::Pause> without_turn;
  if (Turn* const turn = Turn::current()) without_turn.emplace(*turn);
  while (!allowed_ && !cancel_requested()) allowed_ = callers.try_acquire_for(std::chrono::milliseconds(20));
}

OpenBlasCall::~OpenBlasCall() {
  if (allowed_) callers.release();
}

}  // namespace tt::cpu
