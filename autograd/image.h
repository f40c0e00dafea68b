// The tape's part of a session's image (engine/session/image.h): nodes, histories, gradients, hooks, saved tensors.
//
// Used on the session's thread, between two frames. Passes that wait for the client's code are not part of an image
// (Tape::unsaved).
#pragma once

#include "engine/session/image.h"

namespace tt::autograd {

// Writes the current Context's tape, and adds to `tensors` the tensors that it refers to. Call it when everything else
// has added its tensors.
void write_tape(ImageTensors* tensors, ImageOutput* out);
// Restores the tape into the current Context, which has none yet. Throws Error.
void read_tape(ImageInput* in, const ImageObjects& objects);

}  // namespace tt::autograd
