// Operators that act on the session or a device, not on tensor elements: generator state, events, memory statistics and
// settings.
#include <limits>
#include <optional>

#include "engine/device/devices.h"
#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

void manual_seed(int64_t seed) { Context::current().generator = {static_cast<uint64_t>(seed), 0}; }

void get_rng_state(Tensor& out) {
  const Generator& generator = Context::current().generator;
  out.data_as<int64_t>()[0] = static_cast<int64_t>(generator.seed);
  out.data_as<int64_t>()[1] = static_cast<int64_t>(generator.offset);
}

void set_rng_state(const Tensor& new_state) {
  check(ErrorKind::kType, new_state.dtype() == DType::kInt64 && new_state.numel() == 2,
        "[set_rng_state] expected a state from get_rng_state, got ", describe(new_state.meta()));
  Tensor plain = empty(new_state.sizes(), DType::kInt64, new_state.device());
  copy(new_state, plain);
  Context::current().generator = {static_cast<uint64_t>(plain.data_as<int64_t>()[0]),
                                  static_cast<uint64_t>(plain.data_as<int64_t>()[1])};
}

void event_record(int64_t event, int64_t device) {
  Context& context = Context::current();
  context.events.record(event, context.stream(decode_device(device)));
}

void event_elapsed(int64_t event, int64_t later, Tensor& out) {
  out.data_as<double>()[0] = Context::current().events.elapsed_ms(event, later);
}

void event_passed(int64_t event, Tensor& out) {
  out.data_as<Bool>()[0] = Bool(Context::current().events.passed(event));
}

void event_drop(int64_t event) { Context::current().events.drop(event); }

void memory_stats(int64_t device, Tensor& out) {
  const Device where = decode_device(device);
  Backend& backend = Devices::instance().backend(where);
  const AllocatorStats stats = backend.allocator().stats();
  int64_t* at = out.data_as<int64_t>();
  const auto put = [&](uint64_t value) { *at++ = static_cast<int64_t>(value); };
  for (Level PoolStats::*level : {&PoolStats::allocated, &PoolStats::active, &PoolStats::inactive_split,
                                  &PoolStats::requested, &PoolStats::reserved}) {
    for (const PoolStats* pool : {&stats.all, &stats.small, &stats.large}) {
      put((pool->*level).now);
      put((pool->*level).peak);
    }
  }
  for (uint64_t count : {stats.allocations, stats.retries, stats.out_of_memory, stats.system_allocations,
                         stats.system_frees, stats.limit}) {
    put(count);
  }
  put(backend.free_memory());
  const Account* account = Context::current().account.get();
  const bool of_gpu = is_accelerator(where.type);
  put(!account ? 0 : of_gpu ? account->held(where) : account->held());
  put(!account ? 0 : of_gpu ? account->peak(where) : account->peak());
  put(account ? account->limit() : 0);
  check(at == out.data_as<int64_t>() + out.numel(),
        "[memory_stats] expected a result with one element per statistic, got ", out.numel());
}

void empty_cache(int64_t device) {
  const Device where = decode_device(device);
  if (!is_accelerator(where.type)) return;  // the CPU's stream is shared by all sessions
  Devices::instance().allocator(where).empty_cache(&Context::current().stream(where));
}

void reset_peak_memory(int64_t device) {
  const Device where = decode_device(device);
  if (is_accelerator(where.type) && Context::current().account) Context::current().account->reset_peak(where);
}

void set_detect_anomaly(bool mode) { Context::current().detect_anomaly = mode; }

void set_autocast(std::optional<DType> cpu, std::optional<DType> cuda, bool cache) {
  for (const std::optional<DType>& dtype : {cpu, cuda}) {
    check(!dtype || is_reduced_floating(*dtype), "[set_autocast] expected dtype float16 or bfloat16, got ",
          dtype ? name(*dtype) : "none");
  }
  Autocast& autocast = Context::current().autocast;
  autocast.state = {cpu, cuda, cache};
  if (!autocast.state.enabled()) autocast.clear();
}

void clear_autocast_cache() { Context::current().autocast.clear(); }

void set_float32_matmul_precision(std::string_view precision) {
  check(precision == "highest" || precision == "high" || precision == "medium", precision,
        " is not one of 'highest', 'high', 'medium'");
  Context::current().allow_tf32 = precision != "highest";
}

void set_convolution_tf32(bool allowed) { Context::current().allow_convolution_tf32 = allowed; }

void set_num_threads(int64_t n) {
  check(ErrorKind::kRuntime, n > 0 && n <= std::numeric_limits<int>::max(),
        "[set_num_threads] expected a positive number of threads, got ", n);
  Context::current().max_threads = static_cast<int>(n);
  set_thread_limit(static_cast<int>(n));
}

void get_num_threads(Tensor& out) { out.data_as<int64_t>()[0] = num_threads(); }

}  // namespace tt::cpu
