// Blocked products of 8-bit integers with AVX-512 VNNI, for more rows than a product of rows reads at once.
//
// Weights are packed so that one vector has 4 elements each of 16 of their rows: a group of 4 elements of k after the
// other, each with the panel's vectors.
#pragma once

#include <cstdint>

namespace tt::cpu {

inline constexpr int kPanelColumns = 64;  // rows of the weight, which a packed panel has at most
inline constexpr int kBlockedRows = 6;    // of a, whose sums stay in registers

// Bytes of a packed panel of `columns` rows of k elements.
int64_t packed_bytes(int64_t columns, int64_t k);
// Packs up to kPanelColumns rows of b and computes the sum of each. `to` and `sums` have room for a multiple of 16
// rows. Requires AVX-512 VNNI.
void pack_panel(int64_t columns, int64_t k, const int8_t* b, int64_t b_step, int8_t* to, int32_t* sums);
// sums[i * kPanelColumns + j] = the sum over p of a[i * a_step + p] and the panel's (j, p), for j below `columns`
// rounded up to a multiple of 16. Requires AVX-512 VNNI.
void multiply_panel(int64_t rows, int64_t columns, int64_t k, const uint8_t* a, int64_t a_step, const int8_t* packed,
                    int32_t* sums);

}  // namespace tt::cpu
