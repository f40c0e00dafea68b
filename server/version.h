// version: the engine's version, defined by CMake.
#pragma once

namespace tt::server {

inline constexpr char kVersion[] = TT_VERSION;

}  // namespace tt::server
