// DeviceBackend: executes collectives on the memory of one GPU per rank.
//
// Owned by a ProcessGroup. Its thread calls all functions except abort(), in the same order with matching arguments on
// every rank. Functions block, and throw Error (RuntimeError) after the group's timeout, after abort(), and if the
// library reports a lost rank. After an error the backend is unusable.
#pragma once

#include "distributed/group/collective.h"
#include "engine/device/stream.h"

namespace tt::distributed {

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  // Connects the ranks, each with its GPU, and returns true. Returns false on all ranks if one of them cannot take
  // part: it has no library, or shares its GPU with another rank. Called once. The ranks exchange bytes by `host`.
  virtual bool connect(Backend& host, int rank, int size, Device device) = 0;
  // Whether run() can execute a collective; depends only on its kind, operation and dtype.
  virtual bool supports(const Collective& collective) const = 0;
  // Executes a collective, of which input and output are memory of the connected device, after `ready`. With
  // `averages`, the result of a sum is divided by the number of ranks. The result is complete when the function
  // returns.
  virtual void run(const Collective& collective, bool averages, const Event& ready) = 0;
  // Makes blocked and later functions throw. Any thread may call it.
  virtual void abort() = 0;
};

}  // namespace tt::distributed
