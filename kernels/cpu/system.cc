// What concerns the session that executes, and no tensor's elements.
#include "engine/context.h"
#include "engine/rules/error.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

void manual_seed(int64_t seed) { Context::current().generator = {static_cast<uint64_t>(seed), 0}; }

void get_rng_state(Tensor& out) {
  const Generator& generator = Context::current().generator;
  out.data_as<int64_t>()[0] = static_cast<int64_t>(generator.seed);
  out.data_as<int64_t>()[1] = static_cast<int64_t>(generator.offset);
}

void set_rng_state(const Tensor& new_state) {
  check_as(ErrorKind::kType, new_state.dtype() == DType::kInt64 && new_state.numel() == 2,
           "[set_rng_state] takes what get_rng_state gave, got ", describe(new_state.meta()));
  Tensor plain = empty(new_state.sizes(), DType::kInt64, new_state.device());
  copy(new_state, plain);
  Context::current().generator = {static_cast<uint64_t>(plain.data_as<int64_t>()[0]),
                                  static_cast<uint64_t>(plain.data_as<int64_t>()[1])};
}

void set_detect_anomaly(bool mode) { Context::current().detect_anomaly = mode; }

void set_float32_matmul_precision(std::string_view precision) {
  check(precision == "highest" || precision == "high" || precision == "medium", precision,
        " is not one of 'highest', 'high', 'medium'");
  Context::current().allow_tf32 = precision != "highest";
}

}  // namespace tt::cpu
