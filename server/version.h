// The engine's version, as CMake knows it.
#pragma once

namespace tt::server {

inline constexpr char kVersion[] = TT_VERSION;

}  // namespace tt::server
