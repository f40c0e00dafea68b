#include "autograd/anomaly.h"

#include <cmath>

#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"

namespace tt::autograd {
namespace {
double read(const Tensor& t) { return ops::to_device(t, Device{}).data_as<double>()[0]; }
}  // namespace

void check_not_nan(const Node& node, size_t i, const Tensor& gradient) {
  if (!has_gradients(gradient.dtype()) || gradient.device().type == DeviceType::kMeta) return;
  GradMode off(false);
  // A NaN makes the sum NaN, but so do infinities of both signs. The second check distinguishes the two cases.
  if (!std::isnan(read(ops::to_dtype(ops::sum(gradient, {}, false, std::nullopt), DType::kFloat64)))) return;
  if (read(ops::to_dtype(ops::any(ops::isnan(gradient), {}, false), DType::kFloat64)) == 0) return;
  const Context& context = Context::current();
  std::string where = context.describe_site ? context.describe_site(node.site()) : std::string();
  fail(ErrorKind::kRuntime, "Function '", node.name(), "' returned nan values in its ", i, "th output.",
       where.empty() ? "" : " It was recorded at ", where);
}

}  // namespace tt::autograd
