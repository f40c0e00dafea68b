// Prefetcher: threads that make batches ahead of their use, in order.
//
// Batches are made in the session of the thread that creates the Prefetcher (SessionGuard), without recording for
// backward.
#pragma once

#include <any>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace teletensor::data::internal {

// Owned by a loader's iterator. next() is called by one thread; `fetch` runs in the worker threads, or in next() if
// there are none.
class Prefetcher {
 public:
  using Fetch = std::function<std::any(const std::vector<size_t>& indices)>;
  // `batches` are the indices of each batch. At most `ahead` batches are made before they are used. Throws RuntimeError
  // if the system refuses a thread.
  Prefetcher(std::vector<std::vector<size_t>> batches, Fetch fetch, size_t workers, size_t ahead);
  ~Prefetcher();  // waits for batches that are being made
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Returns the next batch; an empty value at the end. Throws what `fetch` has thrown for this batch.
  std::any next();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace teletensor::data::internal
