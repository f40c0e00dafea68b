// convert: the engine's errors and tensors as the wire spells them. The one place where that happens.
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
// An Error that ends a call, rather than standing in a tensor's place.
absl::Status to_status(const Error& error);
// The status a refused frame ends its stream with.
absl::Status fault_status(const v1::Error& fault);

}  // namespace tt::server
