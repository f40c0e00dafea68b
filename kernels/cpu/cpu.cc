#include "kernels/cpu/cpu.h"

#include "engine/device/devices.h"
#include "engine/memory/allocator.h"
#include "engine/schema/op_ids.h"
#include "kernels/common/out_variant.h"
#include "kernels/cpu/blas/onednn.h"
#include "kernels/cpu/blas/openblas_core.h"
#include "kernels/cpu/blas/packed_weights.h"
#include "kernels/cpu/fft/fft.h"
#include "kernels/cpu/iteration/chain.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/reduce/chain_reduction.h"

namespace tt::cpu {

void register_kernels(Dispatcher& dispatcher);  // generated: the operators with a `kernel:`

void register_backend(Dispatcher& dispatcher) {
  choose_openblas_core();
  register_kernels(dispatcher);
  register_pointwise(dispatcher);
  // These also compute in channels last; their CUDA kernels write contiguous results.
  dispatcher.set(op_id::kConvolution, Key::kCPU, &laid_out<&convolution_forward>);
  dispatcher.set(op_id::kFusedConvolution, Key::kCPU, &laid_out<&fused_convolution>);
  dispatcher.set(op_id::kMaxPool2dWithIndices, Key::kCPU, &laid_out<&max_pool2d_with_indices>);
  dispatcher.set(op_id::kBatchNormForward, Key::kCPU, &laid_out<&batch_norm>);
  dispatcher.set(op_id::kAttentionBackward, Key::kCPU, &laid_out<&attention_backward>);
  dispatcher.set_chain_kernel(DeviceType::kCPU, &run_chain_or_reduction);
  dispatcher.set_chain_preparation(DeviceType::kCPU, &prepare_chain);
  // assign and clone work for every dtype, and are registered here because they have no `kernel:`.
  dispatcher.set(op_id::kAssign, Key::kCPU, &assign);
  dispatcher.set(op_id::kClone, Key::kCPU, &clone);
  Devices::instance().add_cache([](uint64_t tenant) {
    forget_packed(tenant);
    forget_primitives(tenant);
    if (tenant == kNoTenant) forget_fft_plans();  // a few MiB for all tenants together
  });
}

}  // namespace tt::cpu
