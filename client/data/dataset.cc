#include "client/data/dataset.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "client/api/creation.h"
#include "client/api/errors.h"
#include "client/api/session.h"
#include "client/serialize/archive.h"

namespace teletensor::data::datasets {

TensorDataset::TensorDataset(Tensor data, Tensor target) : data_(std::move(data)), target_(std::move(target)) {
  if (data_.dim() == 0 || target_.dim() == 0 || data_.size(0) != target_.size(0)) {
    throw ValueError("TensorDataset: expected tensors with the same number of rows");
  }
}
Example<> TensorDataset::get(size_t index) const {
  return {data_[static_cast<int64_t>(index)], target_[static_cast<int64_t>(index)]};
}
Example<> TensorDataset::get_batch(const std::vector<size_t>& indices) const {
  const SessionGuard session(data_.session());
  const std::vector<int64_t> rows(indices.begin(), indices.end());
  const Tensor index = tensor(rows).to(data_.device());
  return {data_.index_select(0, index), target_.index_select(0, index.to(target_.device()))};
}

Tensor read_idx(const std::string& path, size_t max_bytes) {
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) ::teletensor::internal::throw_system_error("cannot open", path, errno != 0 ? errno : ENOMEM);
  const auto read = [&](void* into, size_t size) {
    if (gzread(file.get(), into, static_cast<unsigned>(size)) != static_cast<int>(size)) {
      throw ValueError("'" + path + "' is not an IDX file, or is incomplete");
    }
  };
  uint8_t magic[4];
  read(magic, 4);
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] == 0 || magic[3] > 8) {
    throw ValueError("'" + path + "' is not an IDX file of bytes");
  }
  std::vector<int64_t> sizes;
  size_t count = 1;
  for (int dim = 0; dim < magic[3]; ++dim) {
    uint8_t size[4];
    read(size, 4);
    sizes.push_back(int64_t{size[0]} << 24 | size[1] << 16 | size[2] << 8 | size[3]);
    if (__builtin_mul_overflow(count, static_cast<size_t>(sizes.back()), &count) || count > max_bytes) {
      throw ValueError("'" + path + "' has more than " + std::to_string(max_bytes) + " elements");
    }
  }
  std::vector<uint8_t> bytes;  // grows with what the file has, whatever its header says
  while (bytes.size() < count) {
    const size_t at = bytes.size(), part = std::min<size_t>(count - at, 1 << 20);
    bytes.resize(at + part);
    read(bytes.data() + at, part);
  }
  return from_blob(bytes.data(), sizes, kByte);
}

MNIST::MNIST(const std::string& root, Mode mode) {
  NoGradGuard no_grad;
  const std::string base = root + (mode == Mode::kTrain ? "/train-" : "/t10k-");
  const auto read = [&](const std::string& name) {
    try {
      return read_idx(base + name);
    } catch (const FileNotFoundError&) {
      return read_idx(base + name + ".gz");
    }
  };
  const Tensor images = read("images-idx3-ubyte"), labels = read("labels-idx1-ubyte");
  if (images.dim() != 3 || labels.dim() != 1 || images.size(0) != labels.size(0)) {
    throw ValueError("'" + root + "' has images and labels whose sizes do not match");
  }
  images_ = images.to(kFloat).unsqueeze(1) / 255;
  targets_ = labels.to(kLong);
}
Example<> MNIST::get(size_t index) {
  return {images_[static_cast<int64_t>(index)], targets_[static_cast<int64_t>(index)]};
}
std::optional<size_t> MNIST::size() const { return static_cast<size_t>(images_.size(0)); }

}  // namespace teletensor::data::datasets
