#include "client/link/scalar_reads.h"

#include <algorithm>
#include <cstring>

namespace tt::client {

Ref<PendingScalar> ScalarReads::add(uint64_t handle, uint64_t sequence, v1::Frame* frame) {
  if (frame->scalar_reads().empty()) frame->set_first_number(first_ + pending_.size());
  frame->add_scalar_reads(static_cast<uint64_t>(frame->instructions_size()));
  frame->add_scalar_reads(handle);
  pending_.push_back(make_ref<PendingScalar>(sequence));
  return pending_.back();
}

void ScalarReads::answer(v1::Reply& reply) {
  const size_t count = reply.numbers().size() / PendingScalar::kBytes;
  const uint64_t before = reply.first_number() - first_;  // wraps around for reads that are answered already
  for (v1::NumberError& failed : *reply.mutable_number_errors()) {
    const uint64_t i = before + failed.index();
    if (failed.index() >= count || i >= pending_.size() || pending_[i]->has_arrived()) continue;
    pending_[i]->error = std::make_unique<v1::Error>();
    pending_[i]->error->Swap(failed.mutable_error());
  }
  for (size_t k = 0; k < count; ++k) {
    const uint64_t i = before + k;
    if (i >= pending_.size() || pending_[i]->has_arrived()) continue;
    std::memcpy(pending_[i]->bytes, reply.numbers().data() + k * PendingScalar::kBytes, PendingScalar::kBytes);
    pending_[i]->arrived_.store(true, std::memory_order_release);
  }
  while (!pending_.empty() && pending_.front()->has_arrived()) {
    pending_.pop_front();
    ++first_;
  }
}

uint64_t ScalarReads::answered_through(uint64_t executed) const {
  return pending_.empty() ? executed : std::min(executed, pending_.front()->sequence - 1);
}

}  // namespace tt::client
