// Dtypes, devices and the options of new tensors, by libtorch's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/schema/arg.h"
#include "engine/schema/device.h"
#include "engine/schema/dtype.h"
#include "engine/schema/scalar.h"

namespace teletensor {

using Scalar = tt::Scalar;
using Dtype = tt::DType;
using ScalarType = tt::DType;
using DeviceType = tt::DeviceType;

inline constexpr Dtype kBool = Dtype::kBool, kUInt8 = Dtype::kUInt8, kByte = Dtype::kUInt8, kInt8 = Dtype::kInt8,
                       kChar = Dtype::kInt8, kInt16 = Dtype::kInt16, kShort = Dtype::kInt16, kInt32 = Dtype::kInt32,
                       kInt = Dtype::kInt32, kInt64 = Dtype::kInt64, kLong = Dtype::kInt64, kFloat16 = Dtype::kFloat16,
                       kHalf = Dtype::kFloat16, kBFloat16 = Dtype::kBFloat16, kFloat32 = Dtype::kFloat32,
                       kFloat = Dtype::kFloat32, kFloat64 = Dtype::kFloat64, kDouble = Dtype::kFloat64,
                       kComplexFloat = Dtype::kComplex64, kComplexDouble = Dtype::kComplex128, kUInt16 = Dtype::kUInt16,
                       kUInt32 = Dtype::kUInt32, kUInt64 = Dtype::kUInt64, kFloat8_e4m3fn = Dtype::kFloat8E4m3fn,
                       kFloat8_e5m2 = Dtype::kFloat8E5m2;
inline constexpr DeviceType kCPU = DeviceType::kCPU, kCUDA = DeviceType::kCUDA, kMeta = DeviceType::kMeta;

/// A device of an engine.
class Device {
 public:
  Device(DeviceType type = kCPU, int index = 0)
      : device_{type, static_cast<int8_t>(index)} {}  // NOLINT: a device's type
  Device(tt::Device device) : device_(device) {}      // NOLINT
  /// "cpu", "cuda:1". Throws Error for another text.
  Device(std::string_view text);                                       // NOLINT
  Device(const char* text) : Device(std::string_view(text)) {}         // NOLINT
  Device(const std::string& text) : Device(std::string_view(text)) {}  // NOLINT

  DeviceType type() const { return device_.type; }
  int index() const { return device_.index; }
  bool is_cpu() const { return type() == kCPU; }
  bool is_cuda() const { return type() == kCUDA; }
  bool is_meta() const { return type() == kMeta; }
  std::string str() const { return tt::to_string(device_); }
  operator tt::Device() const { return device_; }  // NOLINT: the same value in the layer beneath
  friend bool operator==(const Device& a, const Device& b) { return a.device_ == b.device_; }

 private:
  tt::Device device_;
};

/// The dtype, the device and requires_grad of a new tensor. What is not given is the function's default.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(Dtype dtype) : dtype_(dtype) {}                   // NOLINT: as libtorch's
  TensorOptions(Device device) : device_(device) {}               // NOLINT
  TensorOptions(DeviceType type) : device_(Device(type)) {}       // NOLINT
  TensorOptions(const char* device) : device_(Device(device)) {}  // NOLINT

  TensorOptions dtype(std::optional<Dtype> dtype) const {
    TensorOptions copy = *this;
    copy.dtype_ = dtype;
    return copy;
  }
  TensorOptions device(Device device) const {
    TensorOptions copy = *this;
    copy.device_ = device;
    return copy;
  }
  TensorOptions device(DeviceType type, int index) const { return device(Device(type, index)); }
  TensorOptions requires_grad(bool value) const {
    TensorOptions copy = *this;
    copy.requires_grad_ = value;
    return copy;
  }

  std::optional<Dtype> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  bool requires_grad() const { return requires_grad_; }
  tt::Arg dtype_arg() const { return tt::Arg(dtype_); }
  tt::Arg device_arg() const { return device_ ? tt::Arg(tt::Device(*device_)) : tt::Arg(); }

 private:
  std::optional<Dtype> dtype_;
  std::optional<Device> device_;
  bool requires_grad_ = false;
};

inline TensorOptions dtype(Dtype dtype) { return TensorOptions(dtype); }
inline TensorOptions device(Device device) { return TensorOptions(device); }
inline TensorOptions device(DeviceType type, int index) { return TensorOptions(Device(type, index)); }
inline TensorOptions requires_grad(bool value = true) { return TensorOptions().requires_grad(value); }

/// The dtype of floating-point results that no argument determines; of the process.
Dtype get_default_dtype();
/// Throws TypeError unless `dtype` is a floating dtype of at least 16 bits.
void set_default_dtype(Dtype dtype);

}  // namespace teletensor
