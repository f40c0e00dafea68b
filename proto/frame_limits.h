// Limits of frames that every engine has and every client keeps (docs/wire.md, "Limits").
#pragma once

#include <cstddef>
#include <cstdint>

namespace tt::frame_limits {

// Host memory, by the engine's estimate, that a parsed frame may use even if its session has no memory left.
inline constexpr uint64_t kMemory = uint64_t{4} << 20;
// Results of one instruction; the pieces into which an operator may split a tensor (engine/schema/rules/view_rules.cc).
inline constexpr size_t kResults = size_t{1} << 18;

}  // namespace tt::frame_limits
