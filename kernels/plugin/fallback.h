// Executes calls on the CPU instead of a device library's device.
#pragma once

#include <string_view>

#include "engine/dispatch/dispatcher.h"

namespace tt::plugin {

// Copies the arguments of a call to the CPU, runs the CPU's kernel, and copies the results and the written arguments
// back. Existing outputs are written. Waits for the device. Throws Error (NotImplementedError) with `reason` if it
// is switched off, or if the operator waits for something outside the engine.
void run_on_cpu(Call& call, std::string_view reason);

// The same for operators that only bring values from the host (literal): always, and without counting them.
void run_on_host(Call& call);

// Sets whether the engine executes calls on the CPU. Call at start.
void set_fallback(bool enabled);

}  // namespace tt::plugin
