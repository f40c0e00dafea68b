// AllocConf: how GPUs' memory pools are to behave, as TELETENSOR_ALLOC_CONF says.
//
// The keys and their meaning are those of PyTorch's PYTORCH_CUDA_ALLOC_CONF:
//
//   max_split_size_mb:512,garbage_collection_threshold:0.8,expandable_segments:True,roundup_power2_divisions:[256:1,>:4]
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tt {

struct AllocConf {
  // Blocks from this size on are not split, and not used for smaller requests.
  size_t max_split_size = SIZE_MAX;
  // How much larger than the request a block may be that is not split.
  size_t max_non_split_rounding = size_t{20} << 20;
  // Above this part of the device's memory, unused segments are given back before new ones are taken. 0: never.
  double garbage_collection_threshold = 0;
  // Segments grow in place instead of standing side by side.
  bool expandable_segments = false;
  // How many steps there are between two powers of two that sizes are rounded up to: of sizes up to 1 MiB, 2 MiB, ...
  // 32 GiB. 0 and 1: none.
  std::array<uint16_t, 16> roundup_power2_divisions{};

  // `bytes`, rounded up as roundup_power2_divisions says; a multiple of `granule`.
  size_t rounded(size_t bytes, size_t granule) const;
};

// Throws Error (ValueError) on an unknown key or a bad value, which it names.
AllocConf parse_alloc_conf(std::string_view text);
// What the environment says. Throws likewise.
AllocConf alloc_conf_of_environment();

}  // namespace tt
