// Trains a small convolutional network on Fashion-MNIST (Xiao et al. 2017), on the engine at TELETENSOR_ADDRESS or on a
// private engine: fashion_mnist FOLDER [STEPS]. The folder is that of Debian's package dataset-fashion-mnist,
// /usr/share/datasets/fashion-mnist. Without STEPS it trains for three epochs and fails below a test accuracy of 0.90.
#include <teletensor/teletensor.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace tt_nn = teletensor::nn;
namespace data = teletensor::data;
namespace F = teletensor::nn::functional;
using teletensor::Tensor;

constexpr int kEpochs = 3;

struct NetImpl : tt_nn::Module {
  NetImpl() : Module("Net") {
    conv1 = register_module("conv1", tt_nn::Conv2d(tt_nn::Conv2dOptions(1, 32, 3).padding(1)));
    norm1 = register_module("norm1", tt_nn::BatchNorm2d(32));
    conv2 = register_module("conv2", tt_nn::Conv2d(32, 64, 3));
    norm2 = register_module("norm2", tt_nn::BatchNorm2d(64));
    fc1 = register_module("fc1", tt_nn::Linear(64 * 6 * 6, 128));
    drop = register_module("drop", tt_nn::Dropout(0.3));
    fc2 = register_module("fc2", tt_nn::Linear(128, 10));
  }
  Tensor forward(Tensor x) {
    x = F::max_pool2d(norm1(conv1(x)).relu(), 2);
    x = F::max_pool2d(norm2(conv2(x)).relu(), 2);
    return fc2(drop(fc1(x.flatten(1)).relu()));
  }
  tt_nn::Conv2d conv1{nullptr}, conv2{nullptr};
  tt_nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
  tt_nn::Linear fc1{nullptr}, fc2{nullptr};
  tt_nn::Dropout drop{nullptr};
};
TELETENSOR_MODULE(Net);

// The images stay in the engine, which makes each batch from the indices that the loader sends.
data::datasets::TensorDataset read(const std::string& folder, data::datasets::MNIST::Mode mode) {
  const data::datasets::MNIST files(folder, mode);
  return {(files.images() - 0.2860) / 0.3530, files.targets()};
}

double accuracy(Net net, const data::datasets::TensorDataset& test) {
  teletensor::InferenceMode inference;
  net->eval();
  Tensor correct = teletensor::zeros({}, teletensor::kLong);
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(test, 1000);
  for (auto& batch : *loader) correct += (net(batch.data).argmax(1) == batch.target).sum();
  return correct.item<double>() / static_cast<double>(*test.size());
}

int train(const std::string& folder, int steps) {
  teletensor::manual_seed(0);
  using Mode = data::datasets::MNIST::Mode;
  const auto train_set = read(folder, Mode::kTrain), test_set = read(folder, Mode::kTest);
  Net net;
  teletensor::optim::AdamW optimizer(net->parameters(), 2e-3);
  const auto batches = static_cast<int>(*train_set.size() / 128);
  teletensor::optim::CosineAnnealingLR schedule(optimizer, steps > 0 ? steps : kEpochs * batches);
  auto loader = data::make_data_loader(train_set, data::DataLoaderOptions(128).drop_last(true));
  const auto start = std::chrono::steady_clock::now();
  Tensor loss;
  int step = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (auto& batch : *loader) {  // nothing in this loop waits for the engine
      loss = F::cross_entropy(net(batch.data), batch.target);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      schedule.step();
      if (++step % 100 == 0) std::printf("step %d, loss %.3f\n", step, loss.item<double>());
      if (step == steps) break;
    }
    if (step == steps) break;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double reached = accuracy(net, test_set);
  std::printf("%d steps in %.0f s, test accuracy %.4f\n", step, seconds, reached);
  teletensor::save(net, "fashion_mnist.pt");
  return steps > 0 || reached >= 0.90 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: fashion_mnist FOLDER [STEPS]\n");
    return 2;
  }
  try {
    return train(argv[1], argc > 2 ? std::atoi(argv[2]) : 0);
  } catch (const teletensor::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
