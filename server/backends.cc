#include "server/backends.h"

#include "autograd/record.h"
#include "engine/composites.h"
#include "engine/devices.h"
#include "engine/dispatcher.h"
#include "engine/op_ids.h"
#include "engine/parallel.h"
#include "kernels/cpu/cpu.h"
#include "server/transfer.h"

namespace tt::server {

void register_backends(int threads, uint64_t memory_limit) {
  Dispatcher& dispatcher = Dispatcher::instance();
  cpu::register_backend(dispatcher);
  register_composites(dispatcher);
  autograd::register_autograd(dispatcher);
  dispatcher.set(op_id::kUploaded, Key::kCPU, &uploaded);
  if (threads > 0) set_num_threads(threads);
  if (memory_limit > 0) Devices::instance().allocator(Device{DeviceType::kCPU, 0}).set_limit(memory_limit);
}

}  // namespace tt::server
