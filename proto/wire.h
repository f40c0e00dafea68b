// Includes the wire protocol's messages, as tt::v1.
#pragma once

#include "teletensor/v1/engine.pb.h"

namespace tt {
namespace v1 = ::teletensor::v1;
}
