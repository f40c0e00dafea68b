// Generator: the state of a session's random numbers.
//
// Counter-based (Philox 4x32-10; Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): element i of a
// draw depends only on (seed, offset, i), so every device and every division into threads gives the same numbers.
#pragma once

#include <array>
#include <cstdint>

namespace tt {

struct Generator {
  uint64_t seed = 0x9e3779b97f4a7c15u;
  uint64_t offset = 0;

  // Returns the first counter of a draw of `count` 128-bit blocks; the next draw starts after them.
  uint64_t advance(uint64_t count) {
    uint64_t at = offset;
    offset += count;
    return at;
  }
};

// The order in which elements consume random words. kGroupBlocks consecutive blocks form a group. Word j of block b is
// word b + kGroupBlocks * j of the group, and elements consume a group's words in this order. A 64-bit element consumes
// two words of one block: first words b and b + kGroupBlocks of the group for each b, then words b + 2 * kGroupBlocks
// and b + 3 * kGroupBlocks.
inline constexpr int kGroupBlocks = 128;
inline constexpr int kGroupWords = 4 * kGroupBlocks;

// Four independent 32-bit words for block `counter` of `seed`'s sequence.
constexpr std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53u} * c[0], p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

}  // namespace tt
