#include "client/data/loader.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "client/api/functions.h"

namespace teletensor::data {
namespace samplers {

std::vector<size_t> SequentialSampler::indices() const {
  std::vector<size_t> indices(size_);
  std::iota(indices.begin(), indices.end(), size_t{0});
  return indices;
}

std::vector<size_t> RandomSampler::indices() const {
  const std::vector<int64_t> order = randperm(static_cast<int64_t>(size_)).data<int64_t>();
  return {order.begin(), order.end()};
}

DistributedRandomSampler::DistributedRandomSampler(size_t size, size_t num_replicas, size_t rank, uint64_t seed)
    : size_(size), num_replicas_(num_replicas), rank_(rank), seed_(seed) {
  if (num_replicas == 0 || rank >= num_replicas) throw ValueError("expected a rank below num_replicas");
}
std::vector<size_t> DistributedRandomSampler::indices() const {
  std::vector<size_t> order = SequentialSampler(size_).indices();
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed_ + epoch_));
  // Each process has the same number of indices: the first ones are repeated.
  const size_t each = (size_ + num_replicas_ - 1) / num_replicas_;
  std::vector<size_t> share;
  for (size_t i = rank_; share.size() < each && size_ != 0; i += num_replicas_) share.push_back(order[i % size_]);
  return share;
}

}  // namespace samplers

namespace internal {

std::vector<std::vector<size_t>> split_into_batches(const std::vector<size_t>& indices,
                                                    const DataLoaderOptions& options) {
  std::vector<std::vector<size_t>> batches;
  for (size_t at = 0; at < indices.size(); at += options.batch_size()) {
    const size_t end = std::min(indices.size(), at + options.batch_size());
    if (options.drop_last() && end - at < options.batch_size()) break;
    batches.emplace_back(indices.begin() + static_cast<ptrdiff_t>(at), indices.begin() + static_cast<ptrdiff_t>(end));
  }
  return batches;
}

}  // namespace internal
}  // namespace teletensor::data
