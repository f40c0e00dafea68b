#include "kernels/cpu/iteration/copy.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/iteration/loop.h"
#include "kernels/cpu/iteration/strided_loop.h"
#include "kernels/cpu/iteration/transpose.h"

namespace tt::cpu {

namespace {

template <typename C>
void run_copy(const Space& space, const LoopInput<C>& input, const Access& to) {
  Loop<C>(space, {&input, 1}, {}, to, bypasses_cache(space.numel * static_cast<int64_t>(item_size(to.dtype)))).run();
}

// A dtype of the same item size whose elements are copied without changing a bit.
DType bits_of(DType dtype) {
  switch (item_size(dtype)) {
    case 1: return DType::kUInt8;
    case 2: return DType::kInt16;
    case 4: return DType::kInt32;
    case 8: return DType::kInt64;
    default: return DType::kComplex128;
  }
}

// Copies rows of bytes. Returns false, without copying, if elements are not contiguous, rows are short, or the result
// should bypass the caches.
bool copy_rows(const Space& space, const Access& from, const Access& to) {
  constexpr int64_t kShort = 128;  // bytes
  if (space.sizes.empty() || from.dtype != to.dtype || from.strides.back() != 1 || to.strides.back() != 1) return false;
  const int64_t item = static_cast<int64_t>(item_size(to.dtype)), row = space.sizes.back() * item;
  if (row < kShort || bypasses_cache(space.numel * item)) return false;
  const StridedLoop<2> loop(space.sizes, {to.strides, from.strides});
  loop.parallel_for_row_pieces([&](const StridedLoop<2>::Offsets& at, int64_t n) {
    std::memcpy(to.data + at[0] * item, from.data + at[1] * item, static_cast<size_t>(n * item));
  });
  return true;
}

}  // namespace

void copy(const Tensor& src, const Tensor& dst) {
  if (src.data() == dst.data() && src.dtype() == dst.dtype() && src.sizes() == dst.sizes() &&
      src.strides() == dst.strides()) {
    return;
  }
  Space space(dst.sizes());
  Access accesses[] = {space.access(src), space.access(dst)};
  Access &from = accesses[0], &to = accesses[1];
  if (from.dtype == to.dtype) from.dtype = to.dtype = bits_of(to.dtype);
  space.collapse(accesses);
  if (copy_rows(space, from, to) || transpose(space, from, to)) return;
  if (is_complex(to.dtype) && from.dtype != to.dtype && !is_complex(from.dtype)) {  // sets the real part
    return to.dtype == DType::kComplex64 ? run_copy<Complex<float>>(space, {&from}, to)
                                         : run_copy<Complex<double>>(space, {&from}, to);
  }
  const bool narrow = item_size(from.dtype) <= 2;
  if (narrow && to.dtype == DType::kFloat32) return run_copy<float>(space, {&from}, to);
  switch (from.dtype) {  // the intermediate type: the narrowest that represents the source
    case DType::kComplex64: return run_copy<Complex<float>>(space, {&from}, to);
    case DType::kComplex128: return run_copy<Complex<double>>(space, {&from}, to);
    case DType::kUInt64:  // int64_t does not represent every uint64_t
      if (to.dtype == DType::kFloat64) return run_copy<double>(space, {&from}, to);
      if (is_floating(to.dtype)) return run_copy<float>(space, {&from}, to);
      return run_copy<int64_t>(space, {&from}, to);
    case DType::kUInt32:
    case DType::kInt64: return run_copy<int64_t>(space, {&from}, to);
    case DType::kFloat64: return run_copy<double>(space, {&from}, to);
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E5m2: return run_copy<float>(space, {&from}, to);
    default: return run_copy<int32_t>(space, {&from}, to);
  }
}

void fill_with(const Tensor& dst, const Scalar& value) {
  Space space(dst.sizes());
  Access to = space.access(dst);
  space.collapse({&to, 1});
  if (!value.is_real()) {
    const Complex<double> number(value.to_complex().real(), value.to_complex().imag());
    return run_copy<Complex<double>>(space, {nullptr, number}, to);
  }
  if (value.category() == Category::kFloating || (value.is_beyond_int() && !is_integral(to.dtype))) {
    if (to.dtype == DType::kFloat32)
      return run_copy<float>(space, {nullptr, static_cast<float>(value.to_double())}, to);
    return run_copy<double>(space, {nullptr, value.to_double()}, to);
  }
  if (to.dtype == DType::kFloat32) return run_copy<float>(space, {nullptr, static_cast<float>(value.to_int())}, to);
  return run_copy<int64_t>(space, {nullptr, value.to_int()}, to);
}

namespace {

template <int kSource>
void copy_argument(Call& call) {
  const Arg& src = call.args[kSource];
  const Tensor& out = call.outputs[0];
  if (src.is_number())
    fill_with(out, src.scalar());
  else if (!out.same(call.tensor(kSource)))
    copy(call.tensor(kSource), out);
}

}  // namespace

void assign(Call& call) { run_with_separate_outputs(call, &copy_argument<1>); }

void clone(Call& call) { run_with_separate_outputs(call, &copy_argument<0>); }

}  // namespace tt::cpu
