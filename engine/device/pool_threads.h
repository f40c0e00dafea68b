// pool_threads: OpenMP's threads that wait for the next loop of a thread.
#pragma once

namespace tt {

// Ends the threads that wait for loops of the calling thread, which must be in none. OpenMP keeps such threads for each
// thread that has run a loop. Beyond one per core they do not spin any more, so that every loop wakes one up: a thread
// that will seldom run loops again should not keep some.
void release_pool_threads();

}  // namespace tt
