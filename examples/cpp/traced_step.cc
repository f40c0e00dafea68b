// Trains a classifier of two spirals: forward and backward of a step are a Program, which is one instruction per step.
// Runs on the engine at TELETENSOR_ADDRESS, or on a private engine.
#include <teletensor/teletensor.h>

#include <cstdio>
#include <iostream>

using namespace teletensor;

int main() {
  try {
    manual_seed(0);
    const Tensor t = linspace(0.5, 3.5, 256), angle = t * 3.14159;
    const Tensor spiral = stack({t * angle.cos(), t * angle.sin()}, 1);
    const Tensor x = cat({spiral, -spiral});
    const Tensor y = cat({zeros({256}, kLong), ones({256}, kLong)});

    nn::Sequential model(nn::Linear(2, 64), nn::Tanh(), nn::Linear(64, 64), nn::Tanh(), nn::Linear(64, 2));
    optim::AdamW optimizer(model->parameters(), 1e-2);
    const compiler::Program step = compiler::trace(
        [&](const Tensor& x, const Tensor& y) {
          model->zero_grad();
          const Tensor loss = nn::functional::cross_entropy(model->forward(x), y);
          loss.backward();
          return loss.detach();
        },
        x, y);
    std::printf("a step has %zu calls\n", step.instructions());
    Tensor loss;
    for (int i = 0; i < 400; ++i) {
      loss = step(x, y);
      optimizer.step();
    }
    const double accuracy = (model->forward(x).argmax(1) == y).to(kFloat).mean().item<double>();
    std::printf("loss %.4f, accuracy %.3f\n", loss.item<double>(), accuracy);
    return accuracy > 0.95 ? 0 : 1;
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
