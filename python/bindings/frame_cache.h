// FrameCache: the compiled versions of a function, or of the rest of a function after a graph break, with their guards.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

// Adds _C.FrameGuards, _C.FrameCache and _C.set_frames_plain() to the module.
void bind_frame_cache(pybind11::module_& m);

}  // namespace tt::python
