// HostMemory: how much memory the host can give to this process, and how much the process already uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tt {

struct HostMemory {
  uint64_t total = 0;      // of the machine, or the least limit of the process's control groups
  uint64_t available = 0;  // without swapping and without exceeding a control group's limit
  uint64_t resident = 0;   // the process's own anonymous memory
};

// Reads /proc and /sys/fs/cgroup (versions 1 and 2; every group on the way to the root counts). `root` is a prefix of
// these paths, for tests. Returns nothing if the kernel does not report available memory.
std::optional<HostMemory> read_host_memory(const std::string& root = "");

// The limit of the CPU's pool if none is set. Leaves room for the engine's other memory, the client and other
// processes: an eighth of the total and 256 MiB, at most 4 GiB, but at least a sixteenth and at most half of the total.
uint64_t default_memory_limit(uint64_t total);

// Available memory that tensors may not use, so that the kernel does not have to end a process: a 32nd of the total, at
// least 128 MiB and at most 1 GiB.
uint64_t kept_free_memory(uint64_t total);

}  // namespace tt
