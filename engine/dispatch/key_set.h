// Key: the stages of an operator call; KeySet: the stages that a call has not passed yet.
#pragma once

#include <cstdint>

#include "engine/schema/device.h"

namespace tt {

// The stages in the order of a call. (Profilers observe kernels through CallScope.)
// A call has one of the backends' keys, which come last. kPlugin is the first of kMaxPluginTypes keys, one per type of
// device libraries.
enum class Key : uint8_t { kAutocast, kAutograd, kMeta, kCUDA, kCPU, kPlugin };
inline constexpr int kNumKeys = static_cast<int>(Key::kPlugin) + kMaxPluginTypes;

constexpr Key backend_key(DeviceType type) {
  if (type == DeviceType::kCPU) return Key::kCPU;
  if (type == DeviceType::kCUDA) return Key::kCUDA;
  if (!is_plugin(type)) return Key::kMeta;
  const int n = static_cast<int>(type) - static_cast<int>(DeviceType::kPlugin);
  return static_cast<Key>(static_cast<int>(Key::kPlugin) + n);
}

class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr KeySet(Key k) : bits_(bit(k)) {}  // NOLINT: implicit, a key is a set of one
  constexpr KeySet with(Key k) const { return KeySet(static_cast<uint8_t>(bits_ | bit(k))); }
  // Returns the stages after `k`.
  constexpr KeySet below(Key k) const { return KeySet(static_cast<uint8_t>(bits_ & ~((bit(k) << 1) - 1))); }
  constexpr bool has(Key k) const { return (bits_ & bit(k)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr Key first() const { return static_cast<Key>(__builtin_ctz(bits_)); }
  friend constexpr bool operator==(KeySet, KeySet) = default;

 private:
  constexpr explicit KeySet(uint8_t bits) : bits_(bits) {}
  static constexpr int bit(Key k) { return 1 << static_cast<int>(k); }
  static_assert(kNumKeys <= 8);
  uint8_t bits_ = 0;
};

}  // namespace tt
