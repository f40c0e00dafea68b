// AddressSanitizer annotations for pools: only requested bytes may be accessed.
//
// Without the sanitizer both functions are empty.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
namespace tt {
inline constexpr size_t kRedZone = 64;  // inaccessible bytes after each block of a pool
}
#else
#define ASAN_POISON_MEMORY_REGION(p, bytes) ((void)(p), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(p, bytes) ((void)(p), (void)(bytes))
namespace tt {
inline constexpr size_t kRedZone = 0;
}
#endif

namespace tt {

inline void allow_access(void* p, size_t bytes) { ASAN_UNPOISON_MEMORY_REGION(p, bytes); }
inline void forbid_access(void* p, size_t bytes) { ASAN_POISON_MEMORY_REGION(p, bytes); }

}  // namespace tt
