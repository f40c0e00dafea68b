// Samplers and loaders of batches, by libtorch's names.
#pragma once

#include <any>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/api/errors.h"
#include "client/data/prefetcher.h"
#include "client/nn/module.h"

namespace teletensor::data {
namespace samplers {

/// All indices in order.
class SequentialSampler {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  std::vector<size_t> indices() const;

 private:
  size_t size_;
};

/// All indices in a random order, of the session's generator (manual_seed()); a new one for each pass.
class RandomSampler {
 public:
  explicit RandomSampler(size_t size) : size_(size) {}
  /// Waits for the engine.
  std::vector<size_t> indices() const;

 private:
  size_t size_;
};

/// The share of one of several processes in a random order, which all of them draw from the same seed.
class DistributedRandomSampler {
 public:
  DistributedRandomSampler(size_t size, size_t num_replicas, size_t rank, uint64_t seed = 0);
  std::vector<size_t> indices() const;
  void set_epoch(uint64_t epoch) { epoch_ = epoch; }

 private:
  size_t size_, num_replicas_, rank_;
  uint64_t seed_, epoch_ = 0;
};

}  // namespace samplers

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}  // NOLINT: as libtorch's
  TELETENSOR_ARG(size_t, batch_size) = 1;
  TELETENSOR_ARG(size_t, workers) = 0;
  TELETENSOR_ARG(std::optional<size_t>, max_jobs) = std::nullopt;  // batches made ahead; default: 2 per worker
  TELETENSOR_ARG(bool, drop_last) = false;
};

namespace internal {
std::vector<std::vector<size_t>> split_into_batches(const std::vector<size_t>& indices,
                                                    const DataLoaderOptions& options);
}

/// Batches of a dataset. `for (auto& batch : *loader)` is one pass. Used by one thread; workers are its own threads.
template <typename D, typename Sampler>
class DataLoader {
 public:
  using BatchType = typename D::BatchType;

  DataLoader(D dataset, Sampler sampler, DataLoaderOptions options)
      : dataset_(std::move(dataset)), sampler_(std::move(sampler)), options_(options) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = BatchType;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(std::shared_ptr<internal::Prefetcher> source) : source_(std::move(source)) { ++*this; }
    BatchType& operator*() { return *batch_; }
    BatchType* operator->() { return batch_.get(); }
    Iterator& operator++() {
      std::any next = source_->next();
      batch_ = next.has_value() ? std::any_cast<std::shared_ptr<BatchType>>(std::move(next)) : nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.batch_ == b.batch_; }

   private:
    std::shared_ptr<internal::Prefetcher> source_;
    std::shared_ptr<BatchType> batch_;  // null at the end
  };

  Iterator begin() {
    auto fetch = [this](const std::vector<size_t>& indices) -> std::any {
      return std::make_shared<BatchType>(dataset_.get_batch(indices));
    };
    return Iterator(std::make_shared<internal::Prefetcher>(internal::split_into_batches(sampler_.indices(), options_),
                                                           std::move(fetch), options_.workers(),
                                                           options_.max_jobs().value_or(2 * options_.workers())));
  }
  Iterator end() { return Iterator(); }
  Sampler& sampler() { return sampler_; }
  const DataLoaderOptions& options() const { return options_; }

 private:
  D dataset_;
  Sampler sampler_;
  DataLoaderOptions options_;
};

/// A loader with a sampler. Throws ValueError for a batch size of 0.
template <typename D, typename Sampler>
std::unique_ptr<DataLoader<D, Sampler>> make_data_loader(D dataset, Sampler sampler, DataLoaderOptions options = {}) {
  if (options.batch_size() == 0) throw ValueError("batch_size should be a positive integer value, but got 0");
  return std::make_unique<DataLoader<D, Sampler>>(std::move(dataset), std::move(sampler), options);
}
/// A loader with a sampler of the type, by default in random order.
template <typename Sampler = samplers::RandomSampler, typename D>
std::unique_ptr<DataLoader<D, Sampler>> make_data_loader(D dataset, DataLoaderOptions options = {}) {
  const std::optional<size_t> size = dataset.size();
  if (!size) throw ValueError("make_data_loader: the dataset has no size; pass a sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), options);
}

}  // namespace teletensor::data
