// Inputs of fuzz targets, generated from a seed.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>

#include "engine/schema/dtype.h"

namespace tt::fuzz {

class RandomBytes {
 public:
  explicit RandomBytes(uint64_t seed) {
    std::mt19937_64 random(seed);
    for (size_t i = 0; i < bytes_.size(); i += sizeof(uint64_t)) {
      const uint64_t word = random();
      std::memcpy(&bytes_[i], &word, sizeof(word));
    }
  }
  const uint8_t* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }

 private:
  std::array<uint8_t, 512> bytes_;
};

// The number in an environment variable, or `otherwise` if it is not set.
inline uint64_t count_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The default dtype for a seed: each one that a client can set.
inline DType default_float_of(uint64_t seed) {
  constexpr DType kDefaults[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};
  return kDefaults[seed % 4];
}

}  // namespace tt::fuzz
