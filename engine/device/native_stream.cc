#include "engine/device/native_stream.h"

#include <array>
#include <atomic>

namespace tt {
namespace {

using Function = void* (*)(Stream&);
std::array<std::atomic<Function>, kNumDeviceTypes> functions{};  // per DeviceType

}  // namespace

void* native_stream(Stream& stream) {
  const Function function = functions[static_cast<size_t>(stream.device().type)];
  return function == nullptr ? nullptr : function(stream);
}

void set_native_stream(DeviceType type, Function function) { functions[static_cast<size_t>(type)] = function; }

}  // namespace tt
