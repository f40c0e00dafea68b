// Datasets, transforms and collation, by libtorch's names.
//
// A dataset's get() and transforms run in the threads of a loader at the same time, so they must not change the
// dataset.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "client/api/functions.h"
#include "client/api/tensor.h"

namespace teletensor::data {

/// An input and what it should give.
template <typename Data = Tensor, typename Target = Tensor>
struct Example {
  Data data;
  Target target;
};

namespace datasets {

template <typename D, typename T>
class MapDataset;

/// A dataset of type Self with examples of type E, which overrides get() and size().
template <typename Self, typename E = Example<>>
class Dataset {
 public:
  using ExampleType = E;
  using BatchType = std::vector<E>;
  virtual ~Dataset() = default;
  virtual E get(size_t index) = 0;
  virtual std::optional<size_t> size() const = 0;
  /// The examples of a batch.
  virtual std::vector<E> get_batch(const std::vector<size_t>& indices) {
    std::vector<E> batch;
    batch.reserve(indices.size());
    for (size_t index : indices) batch.push_back(get(index));
    return batch;
  }
  /// This dataset, with a transform of its batches.
  template <typename T>
  MapDataset<Self, T> map(T transform) && {
    return MapDataset<Self, T>(std::move(static_cast<Self&>(*this)), std::move(transform));
  }
  template <typename T>
  MapDataset<Self, T> map(T transform) const& {
    return MapDataset<Self, T>(static_cast<const Self&>(*this), std::move(transform));
  }
};

/// The result of Dataset::map().
template <typename D, typename T>
class MapDataset {
 public:
  using BatchType = decltype(std::declval<const T&>().apply_batch(std::declval<typename D::BatchType>()));
  MapDataset(D dataset, T transform) : dataset_(std::move(dataset)), transform_(std::move(transform)) {}
  BatchType get_batch(const std::vector<size_t>& indices) {
    return transform_.apply_batch(dataset_.get_batch(indices));
  }
  std::optional<size_t> size() const { return dataset_.size(); }
  const D& dataset() const { return dataset_; }
  template <typename U>
  MapDataset<MapDataset, U> map(U transform) && {
    return MapDataset<MapDataset, U>(std::move(*this), std::move(transform));
  }
  template <typename U>
  MapDataset<MapDataset, U> map(U transform) const& {
    return MapDataset<MapDataset, U>(*this, std::move(transform));
  }

 private:
  D dataset_;
  T transform_;
};

/// The rows of a tensor and of a tensor of targets. The engine makes a batch from the indices, already stacked.
class TensorDataset {
 public:
  using BatchType = Example<>;
  /// Throws ValueError if the numbers of rows differ.
  TensorDataset(Tensor data, Tensor target);
  Example<> get(size_t index) const;
  Example<> get_batch(const std::vector<size_t>& indices) const;
  std::optional<size_t> size() const { return static_cast<size_t>(data_.size(0)); }
  const Tensor& data() const { return data_; }
  const Tensor& targets() const { return target_; }

 private:
  Tensor data_, target_;
};

/// MNIST, Fashion-MNIST and other sets of their format: IDX files of images and labels, also compressed by gzip.
class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  /// Reads the files of `root`, such as train-images-idx3-ubyte.gz. Throws FileNotFoundError, or ValueError for a file
  /// of another format.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  /// An image (1, 28, 28) of float32 from 0 to 1, and a label.
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override;
  const Tensor& images() const { return images_; }
  const Tensor& targets() const { return targets_; }

 private:
  Tensor images_, targets_;  // float32 (N, 1, 28, 28), int64 (N)
};

/// Reads an IDX file of bytes, also one that gzip has compressed. At most `max_bytes` bytes.
Tensor read_idx(const std::string& path, size_t max_bytes = size_t{1} << 30);

}  // namespace datasets

namespace transforms {

/// Applies a function to each example.
template <typename Function>
class Lambda {
 public:
  explicit Lambda(Function function) : function_(std::move(function)) {}
  template <typename E>
  auto apply_batch(std::vector<E> batch) const {
    std::vector<decltype(function_(std::move(batch[0])))> results;
    results.reserve(batch.size());
    for (E& example : batch) results.push_back(function_(std::move(example)));
    return results;
  }

 private:
  Function function_;
};

/// Subtracts a mean from the data and divides them by a standard deviation; numbers, or tensors that broadcast.
template <typename Target = Tensor>
class Normalize {
 public:
  Normalize(double mean, double stddev) : mean_(mean), stddev_(stddev) {}
  std::vector<Example<Tensor, Target>> apply_batch(std::vector<Example<Tensor, Target>> batch) const {
    for (auto& example : batch) example.data = (example.data - mean_) / stddev_;
    return batch;
  }
  /// Of examples that are stacked already.
  Example<Tensor, Target> apply_batch(Example<Tensor, Target> batch) const {
    batch.data = (batch.data - mean_) / stddev_;
    return batch;
  }

 private:
  double mean_, stddev_;
};

/// Makes one example of a batch: the stacked data and the stacked targets.
template <typename E = Example<>>
class Stack {
 public:
  Example<> apply_batch(std::vector<E> batch) const {
    std::vector<Tensor> data, targets;
    for (E& example : batch) {
      data.push_back(std::move(example.data));
      targets.push_back(std::move(example.target));
    }
    return {stack(data), stack(targets)};
  }
};

}  // namespace transforms
}  // namespace teletensor::data
