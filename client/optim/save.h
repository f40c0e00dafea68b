// save and load of an optimizer's state, as a `.pt` file with its state_dict.
#pragma once

#include <string>

#include "client/optim/optimizer.h"
#include "client/serialize/save.h"

namespace teletensor {

/// Writes optimizer.state_dict(), which Python's load_state_dict() accepts.
inline void save(const optim::Optimizer& optimizer, const std::string& path) { save(optimizer.state_dict(), path); }
inline void load(optim::Optimizer& optimizer, const std::string& path) { optimizer.load_state_dict(load(path)); }

}  // namespace teletensor
