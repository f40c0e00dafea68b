#include "server/daemon/backends.h"

#include <algorithm>

#include "autograd/record.h"
#include "distributed/operators.h"
#include "distributed/pull_operators.h"
#include "engine/composites/composites.h"
#include "engine/device/devices.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/extension/library.h"
#include "engine/memory/alloc_conf.h"
#include "engine/memory/quota.h"
#include "engine/schema/op_ids.h"
#include "engine/session/graphs.h"
#include "engine/session/memory_snapshot.h"
#include "engine/session/profiler.h"
#include "engine/session/programs.h"
#include "kernels/cpu/cpu.h"
#include "kernels/plugin/fallback.h"
#include "server/checkpoint/operators.h"
#include "server/daemon/plugin.h"
#include "server/session/program_cache.h"
#include "server/session/publish_service.h"
#include "server/session/shared_tensors.h"
#include "server/transfer/transfer.h"

namespace tt::server {
namespace {

constexpr uint64_t kMinBookkeeping = uint64_t{64} << 20;

}  // namespace

void register_backends(int threads, uint64_t memory_limit, const DeviceLibraries& libraries) {
  static_cast<void>(alloc_conf_of_environment());  // reports an invalid setting at start, with or without a GPU
  Dispatcher& dispatcher = Dispatcher::instance();
  cpu::register_backend(dispatcher);
  register_composites(dispatcher);
  register_graph_operators(dispatcher);
  register_program_operators(dispatcher);
  register_profiler_operators(dispatcher);
  register_memory_operators(dispatcher);
  extension::register_query_operator(dispatcher);
  autograd::register_autograd(dispatcher);
  register_checkpoints(dispatcher);
  distributed::register_pull(dispatcher);
  register_shared_tensors(dispatcher);
  register_publish_operators(dispatcher);
  register_define_program(dispatcher);
  dispatcher.set(op_id::kUploaded, Key::kCPU, &uploaded);
  dispatcher.set_suspending(op_id::kUploaded);
  Devices& devices = Devices::instance();
  plugin::set_fallback(libraries.fallback);
  if (open_device_libraries(libraries.paths, devices, dispatcher) > 0) {
    for (int i = 0; i < kMaxPluginTypes; ++i) dispatcher.set(op_id::kUploaded, backend_key(plugin_type(i)), &uploaded);
  }
  distributed::register_distributed(dispatcher);  // after device libraries, which do not adopt its kernels
  if (open_cuda_plugin(devices, dispatcher) > 0) dispatcher.set(op_id::kUploaded, Key::kCUDA, &uploaded);
  if (threads > 0) set_num_threads(threads);
  for (const DeviceInfo& info : devices.list()) {
    const bool is_less = !is_plugin(info.device.type) || memory_limit < info.total_memory;
    if (memory_limit != 0 && is_less) devices.allocator(info.device).set_limit(memory_limit);
  }
  // In addition to the tensors. A smaller limit would not even suffice for the sessions of one principal.
  const uint64_t limit = devices.allocator(Device{}).stats().limit;
  Quota::limit_bookkeeping_of_all(limit == 0 ? 0 : std::max(limit / 2, kMinBookkeeping));
}

}  // namespace tt::server
