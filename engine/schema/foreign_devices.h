// The names of PyTorch's device types that no engine has. Programs compare devices with them, and types of device
// libraries cannot have them.
#pragma once

#include <array>
#include <string_view>

namespace tt {

inline constexpr std::array<std::string_view, 17> kForeignDeviceTypes = {
    "ipu",  "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip",  "ve",           "fpga",
    "maia", "xla", "lazy",   "vulkan", "mps",    "hpu",   "mtia", "privateuseone"};

}  // namespace tt
