// AllocConf: options of the GPU memory pools, parsed from TELETENSOR_ALLOC_CONF.
//
// The keys and their meanings are those of PyTorch's PYTORCH_CUDA_ALLOC_CONF:
//
//   max_split_size_mb:512,garbage_collection_threshold:0.8,expandable_segments:True,roundup_power2_divisions:[256:1,>:4]
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tt {

struct AllocConf {
  // Blocks of at least this many bytes are not split, and not used for smaller requests.
  size_t max_split_size = SIZE_MAX;
  // Maximum number of bytes by which an unsplit block may exceed the request.
  size_t max_non_split_rounding = size_t{20} << 20;
  // Above this fraction of the device's memory, unused segments are released before new ones are allocated. 0: never.
  double garbage_collection_threshold = 0;
  // Segments grow in place instead of adding new segments.
  bool expandable_segments = false;
  // Number of steps between two powers of two to which sizes are rounded up, with one entry each for sizes up to 1 MiB,
  // 2 MiB, ... 32 GiB. 0 and 1: no rounding.
  std::array<uint16_t, 16> roundup_power2_divisions{};

  // Returns `bytes` rounded up according to roundup_power2_divisions, a multiple of `granule`.
  size_t rounded(size_t bytes, size_t granule) const;
};

// Throws Error (ValueError) that names an unknown key or an invalid value.
AllocConf parse_alloc_conf(std::string_view text);
// Parses TELETENSOR_ALLOC_CONF. Throws like parse_alloc_conf().
AllocConf alloc_conf_of_environment();

}  // namespace tt
