// convert: converts the engine's errors and tensors to wire messages. No other code does.
#pragma once

#include "absl/status/status.h"
#include "engine/device/devices.h"
#include "engine/program/slot_table.h"
#include "engine/schema/error.h"
#include "engine/schema/meta.h"
#include "proto/wire.h"

namespace tt::server {

v1::Error to_wire(const Poison& poison);
v1::Error to_wire(const Error& error);
v1::TensorDescription to_wire(const TensorMeta& meta);
v1::DeviceDescription to_wire(const DeviceInfo& info);
// Returns the status for an Error that ends a call instead of poisoning a tensor.
absl::Status to_status(const Error& error);
// Returns the status that ends a stream after a rejected frame.
absl::Status fault_status(const v1::Error& fault);

}  // namespace tt::server
