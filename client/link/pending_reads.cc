#include "client/link/pending_reads.h"

#include <algorithm>

namespace tt::client {

void PendingReads::answer(v1::ReadResult& result) {
  for (PendingRead* read : reads_) {
    const uint64_t i = result.request() - read->first_request;  // wraps around for an earlier request
    if (i >= read->results.size() || read->results[i].request() != 0) continue;
    read->results[i].Swap(&result);
    if (--read->missing == 0) remove(read);
    return;
  }
}

uint64_t PendingReads::answered_through(uint64_t executed) const {
  for (const PendingRead* read : reads_) {
    if (read->missing > 0) executed = std::min(executed, read->sequence - 1);
  }
  return executed;
}

}  // namespace tt::client
