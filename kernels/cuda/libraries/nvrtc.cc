#include "kernels/cuda/libraries/nvrtc.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"

namespace tt::cuda {
const Nvrtc* Nvrtc::find() {
  static const Nvrtc* found = [] {
    const Library library("NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
    return library ? new Nvrtc(library) : nullptr;
  }();
  return found;
}

Nvrtc::Nvrtc(const Library& library) {
  library.find(error_, "nvrtcGetErrorString");
  library.find(create_, "nvrtcCreateProgram");
  library.find(compile_, "nvrtcCompileProgram");
  library.find(destroy_, "nvrtcDestroyProgram");
  library.find(log_size_, "nvrtcGetProgramLogSize");
  library.find(log_, "nvrtcGetProgramLog");
  library.find(cubin_size_, "nvrtcGetCUBINSize");
  library.find(cubin_, "nvrtcGetCUBIN");
  library.find(ptx_size_, "nvrtcGetPTXSize");
  library.find(ptx_, "nvrtcGetPTX");
  library.find(count_, "nvrtcGetNumSupportedArchs");
  library.find(architectures_, "nvrtcGetSupportedArchs");
  int (*version)(int* major, int* minor);
  library.find(version, "nvrtcVersion");
  int major = 0, minor = 0;
  version(&major, &minor);
  library.record_version(absl::StrCat(major, ".", minor));
}

// Returns the given architecture or, if the library does not support it, the latest earlier one that it supports.
int Nvrtc::nearest(int architecture) const {
  int count = 0;
  count_(&count);
  std::vector<int> known(static_cast<size_t>(count));
  architectures_(known.data());
  int nearest = 0;
  for (int one : known) {
    if (one <= architecture) nearest = std::max(nearest, one);
  }
  check(nearest > 0, "NVRTC does not support compute capability ", architecture / 10, ".", architecture % 10);
  return nearest;
}

std::string Nvrtc::compile(const std::string& source, int major, int minor) const {
  const int wanted = 10 * major + minor, known = nearest(wanted);
  const bool machine_code = known == wanted;  // otherwise PTX, which the driver compiles
  const std::string architecture = absl::StrCat("--gpu-architecture=", machine_code ? "sm_" : "compute_", known);
  // --fmad=false: without fused multiply-adds, a fused chain computes the same values as its separate steps.
  const char* options[] = {architecture.c_str(), "--std=c++20", "--fmad=false", "--device-as-default-execution-space"};
  Program program = nullptr;
  check(create_(&program, source.c_str(), "chain.cu", 0, nullptr, nullptr) == 0, "NVRTC could not create a program");
  const int failed = compile_(program, std::size(options), options);
  std::string text;
  size_t size = 0;
  if (failed) {
    log_size_(program, &size);
    text.resize(size);
    log_(program, text.data());
  } else {
    (machine_code ? cubin_size_ : ptx_size_)(program, &size);
    text.resize(size);
    (machine_code ? cubin_ : ptx_)(program, text.data());
  }
  destroy_(&program);
  check(!failed, "NVRTC: ", error_(failed), ": ", text);
  return text;
}

const char* const kNvrtcPrelude = R"(
#define TT_DEVICE __device__ __forceinline__
#define TT_KERNEL(name) extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ Parameters p)
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
namespace std {
template <typename A, typename B> inline constexpr bool is_same_v = false;
template <typename A> inline constexpr bool is_same_v<A, A> = true;
template <typename T> inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <typename T> inline constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, int8_t> || is_same_v<T, uint8_t> || is_same_v<T, int16_t> ||
    is_same_v<T, uint16_t> || is_same_v<T, int32_t> || is_same_v<T, uint32_t> || is_same_v<T, int64_t> ||
    is_same_v<T, uint64_t>;
template <typename T> inline constexpr bool is_signed_v = T(-1) < T(0);
template <bool C, typename A, typename B> struct conditional { using type = A; };
template <typename A, typename B> struct conditional<false, A, B> { using type = B; };
template <bool C, typename A, typename B> using conditional_t = typename conditional<C, A, B>::type;
template <typename A, typename B> using common_type_t = decltype(true ? A() : B());
template <typename To, typename From> __device__ constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}
template <typename T> struct numeric_limits;
template <> struct numeric_limits<float> {
  static __device__ constexpr float infinity() { return __builtin_bit_cast(float, 0x7f800000u); }
  static __device__ constexpr float quiet_NaN() { return __builtin_bit_cast(float, 0x7fc00000u); }
};
template <> struct numeric_limits<double> {
  static __device__ constexpr double infinity() { return __builtin_bit_cast(double, 0x7ff0000000000000ul); }
  static __device__ constexpr double quiet_NaN() { return __builtin_bit_cast(double, 0x7ff8000000000000ul); }
};
#define TT_STD_1(name)                                             \
  __device__ inline float name(float x) { return ::name##f(x); }   \
  __device__ inline double name(double x) { return ::name(x); }
#define TT_STD_2(name)                                                        \
  __device__ inline float name(float x, float y) { return ::name##f(x, y); }  \
  __device__ inline double name(double x, double y) { return ::name(x, y); }
TT_STD_1(fabs) TT_STD_1(floor) TT_STD_1(ceil) TT_STD_1(trunc) TT_STD_1(rint)
TT_STD_1(sin) TT_STD_1(tan) TT_STD_1(log)
TT_STD_2(fmod) TT_STD_2(copysign)
}  // namespace std
struct Half { uint16_t bits; };
struct BFloat16 { uint16_t bits; };
TT_DEVICE float widen(Half value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
TT_DEVICE float widen(BFloat16 value) { return __uint_as_float(static_cast<uint32_t>(value.bits) << 16); }
)";

}  // namespace tt::cuda
