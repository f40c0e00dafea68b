// Datasets, samplers and loaders.
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "tests/client/api/api_test.h"

namespace teletensor::testing {
namespace {

using data::Example;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Squares of numbers. The last one fails.
class Squares : public data::datasets::Dataset<Squares> {
 public:
  explicit Squares(size_t size) : size_(size) {}
  Example<> get(size_t index) override {
    if (index == 99) throw ValueError("number 99 is missing");
    const auto i = static_cast<double>(index);
    return {tensor({i, i}), tensor(i * i)};
  }
  std::optional<size_t> size() const override { return size_; }

 private:
  size_t size_;
};

TEST_F(Api, LoadersMakeBatchesInOrder) {
  for (size_t workers : {0, 3}) {
    auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
        Squares(10).map(data::transforms::Normalize<>(1, 2)).map(data::transforms::Stack<>()),
        data::DataLoaderOptions(4).workers(workers));
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<float> targets;
      std::vector<int64_t> sizes;
      for (auto& batch : *loader) {
        sizes.push_back(batch.data.size(0));
        EXPECT_EQ(batch.data.size(1), 2);
        for (float v : floats(batch.target)) targets.push_back(v);
        EXPECT_EQ(floats(batch.data)[0], ((sizes.size() - 1) * 4.0f - 1) / 2);
      }
      EXPECT_THAT(sizes, ElementsAre(4, 4, 2));
      EXPECT_THAT(targets, ElementsAre(0, 1, 4, 9, 16, 25, 36, 49, 64, 81));
    }
  }
}

TEST_F(Api, RandomOrdersFollowTheSeed) {
  const auto pass = [] {
    manual_seed(3);
    auto loader = data::make_data_loader(Squares(20).map(data::transforms::Stack<>()),
                                         data::DataLoaderOptions(6).drop_last(true).workers(2));
    std::vector<float> targets;
    for (auto& batch : *loader) {
      for (float v : floats(batch.target)) targets.push_back(v);
    }
    return targets;
  };
  std::vector<float> first = pass();
  EXPECT_EQ(first.size(), 18u);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(first, pass());
  std::sort(first.begin(), first.end());
  EXPECT_EQ(std::unique(first.begin(), first.end()), first.end());
}

TEST_F(Api, ErrorsOfWorkersAreThrownWithTheirBatch) {
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(Squares(200).map(data::transforms::Stack<>()),
                                                                          data::DataLoaderOptions(50).workers(2));
  auto batch = loader->begin();
  EXPECT_EQ(batch->data.size(0), 50);
  EXPECT_THAT(message_of<ValueError>([&] { ++batch; }), HasSubstr("number 99 is missing"));
}

TEST_F(Api, WorkersUseTheSessionOfTheLoadersThread) {
  const Session other = connect_to(daemon());
  for (size_t workers : {0, 2}) {
    std::vector<tt::client::Session*> sessions;
    auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
        Squares(6).map(data::transforms::Stack<>()), data::DataLoaderOptions(2).workers(workers));
    {
      const SessionGuard guard(other);
      for (auto& batch : *loader) sessions.push_back(batch.data.session().handle().get());
    }
    EXPECT_THAT(sessions, ElementsAre(other.handle().get(), other.handle().get(), other.handle().get()));
    EXPECT_NE(loader->begin()->data.session().handle(), other.handle());
  }
}

TEST_F(Api, LoadersStartNoMoreWorkersThanBatches) {
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
      Squares(4).map(data::transforms::Stack<>()), data::DataLoaderOptions(2).workers(1'000'000'000));
  size_t batches = 0;
  for ([[maybe_unused]] auto& batch : *loader) ++batches;
  EXPECT_EQ(batches, 2u);
}

TEST_F(Api, TensorDatasetsGiveStackedBatches) {
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
      data::datasets::TensorDataset(arange(6, kFloat).view({3, 2}), arange(3)), 2);
  auto batch = loader->begin();
  EXPECT_THAT(floats(batch->data), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(batch->target.data<int64_t>(), ElementsAre(0, 1));
  EXPECT_THROW(data::datasets::TensorDataset(ones({3}), ones({2})), ValueError);
}

TEST_F(Api, DistributedSamplersShareAnOrder) {
  std::vector<size_t> all;
  for (size_t rank = 0; rank < 3; ++rank) {
    const auto share = data::samplers::DistributedRandomSampler(10, 3, rank).indices();
    EXPECT_EQ(share.size(), 4u);
    all.insert(all.end(), share.begin(), share.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(all.size(), 10u);
}

void write_gzip(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

TEST_F(Api, ReadsIdxFiles) {
  const std::string folder = ::testing::TempDir();
  const std::string images("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02\x00\xff\x33\x00", 20);
  write_gzip(folder + "/t10k-images-idx3-ubyte.gz", images);
  std::ofstream(folder + "/t10k-labels-idx1-ubyte", std::ios::binary)
      << std::string("\0\0\x08\x01\0\0\0\x02\x07\x09", 10);
  data::datasets::MNIST mnist(folder, data::datasets::MNIST::Mode::kTest);
  EXPECT_EQ(mnist.size(), 2u);
  EXPECT_EQ(mnist.get(0).data.sizes(), IntArrayRef({1, 1, 2}));
  EXPECT_THAT(floats(mnist.images()), ElementsAre(0, 1, 0.2f, 0));
  EXPECT_EQ(mnist.get(1).target.item<int>(), 9);

  write_gzip(folder + "/bad.gz", images.substr(0, 18));
  EXPECT_THAT(message_of<ValueError>([&] { data::datasets::read_idx(folder + "/bad.gz"); }), HasSubstr("incomplete"));
  write_gzip(folder + "/bad.gz", std::string("\0\0\x08\x01\xff\xff\xff\xff", 8));
  EXPECT_THAT(message_of<ValueError>([&] { data::datasets::read_idx(folder + "/bad.gz"); }), HasSubstr("more than"));
  EXPECT_THROW(data::datasets::read_idx(folder + "/none"), FileNotFoundError);
  // No elements, but strides of more than 64 bits.
  write_gzip(folder + "/bad.gz", std::string("\0\0\x08\x04\0\0\0\0", 8) + std::string(12, '\xff'));
  EXPECT_THROW(data::datasets::read_idx(folder + "/bad.gz"), RuntimeError);
  // A bomb gives no more than its header says.
  write_gzip(folder + "/bomb.gz", std::string("\0\0\x08\x01\0\0\0\x02", 8) + std::string(50'000'000, '\0'));
  EXPECT_EQ(data::datasets::read_idx(folder + "/bomb.gz").numel(), 2);
}

}  // namespace
}  // namespace teletensor::testing
