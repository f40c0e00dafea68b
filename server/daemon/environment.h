// environment: the environment variables that libraries read before main, and the limit on core files.
#pragma once

namespace tt::server {

// By default libgomp's threads spin for milliseconds, which delays other processes on a busy machine, and OPENBLAS_*
// from a login shell can halve its speed. Both are read while the process loads, so this function re-executes the
// program once with a corrected environment and then does not return. libgomp settings of the user are kept.
void reexec_with_clean_env(char** argv);

// No core file is written if this process or a child of it crashes, also by a program that the kernel passes cores to:
// they contain tokens, session keys, the private key of TLS and tensors.
void forbid_core_files();

}  // namespace tt::server
