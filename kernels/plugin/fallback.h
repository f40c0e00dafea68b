// Executes calls on the CPU instead of a device library's device.
#pragma once

#include <string_view>

#include "engine/dispatch/dispatcher.h"

namespace tt::plugin {

// Copies the arguments of a call to the CPU, runs the CPU's kernel, and copies the results and the written arguments
// back. Existing outputs are written. Waits for the device. Throws Error (NotImplementedError) with `reason` if the
// session or the engine has switched it off, or if the operator waits for something outside the engine.
void run_on_cpu(Call& call, std::string_view reason);

// Sets whether sessions that have not chosen execute calls on the CPU. Call at start.
void set_fallback_default(bool enabled);

}  // namespace tt::plugin
