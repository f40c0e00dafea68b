// environment: variables that libraries read before main, put right.
#pragma once

namespace tt::server {

// libgomp's threads spin for milliseconds by default, which stalls a neighbour on a full machine, and OPENBLAS_* from a
// login shell halve its speed. Both are read while the process loads, so this starts the program again, once, with an
// environment that is right; what the user has set for libgomp stays. Does not return then.
void reexec_with_clean_env(char** argv);

}  // namespace tt::server
