// AddressSanitizer annotations for pools: only requested bytes may be accessed.
//
// Without the sanitizer both functions are empty.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define TT_RED_ZONE 64
#else
#define ASAN_POISON_MEMORY_REGION(p, bytes) ((void)(p), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(p, bytes) ((void)(p), (void)(bytes))
#define TT_RED_ZONE 0
#endif

namespace tt {

inline constexpr size_t kRedZone = TT_RED_ZONE;  // inaccessible bytes after each block of a pool
#undef TT_RED_ZONE

inline void allow_access(void* p, size_t bytes) { ASAN_UNPOISON_MEMORY_REGION(p, bytes); }
inline void forbid_access(void* p, size_t bytes) { ASAN_POISON_MEMORY_REGION(p, bytes); }

}  // namespace tt
