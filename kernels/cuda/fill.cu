#include "kernels/cuda/fill.h"

#include "kernels/cuda/access.h"
#include "kernels/cuda/layout.h"

namespace tt::cuda {
namespace {

template <typename C>
void fill_elements(const Tensor& dst, C value) {
  const Layout<1> layout(dst.sizes(), {dst.strides()});
  const Access to(dst);
  for_each(queue_of(dst), dst.numel(), [=] TT_DEVICE(int64_t i) { to.store(layout.offsets(i).at[0], value); });
}

}  // namespace

void fill_with(const Tensor& dst, const Scalar& value) {
  value.category() == Category::kFloating ? fill_elements(dst, value.to_double()) : fill_elements(dst, value.to_int());
}

}  // namespace tt::cuda
