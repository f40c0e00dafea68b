#include "kernels/cpu/cpu.h"

#include "engine/device/devices.h"
#include "engine/memory/allocator.h"
#include "engine/schema/op_ids.h"
#include "kernels/cpu/blas/onednn.h"
#include "kernels/cpu/fft/fft.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/reduce/chain_reduction.h"

namespace tt::cpu {

void register_kernels(Dispatcher& dispatcher);  // generated: the operators with a `kernel:`

void register_backend(Dispatcher& dispatcher) {
  register_kernels(dispatcher);
  register_pointwise(dispatcher);
  dispatcher.set_chain_kernel(DeviceType::kCPU, &run_chain_or_reduction);
  // assign and clone work for every dtype, and are registered here because they have no `kernel:`.
  dispatcher.set(op_id::kAssign, Key::kCPU, &assign);
  dispatcher.set(op_id::kClone, Key::kCPU, &clone);
  Devices::instance().add_cache([](uint64_t tenant) {
    forget_primitives(tenant);
    if (tenant == kNoTenant) forget_fft_plans();  // a few MiB for all tenants together
  });
}

}  // namespace tt::cpu
