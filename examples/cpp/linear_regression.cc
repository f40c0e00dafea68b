// Fits y = x w + b by gradient descent on the engine at TELETENSOR_ADDRESS, or on a private engine, and publishes the
// weights to other sessions of the engine.
#include <teletensor/teletensor.h>

#include <cmath>
#include <cstdio>
#include <iostream>

using namespace teletensor;

double train() {
  manual_seed(0);
  const Tensor x = randn({1024, 3});
  const Tensor y = x.matmul(tensor({{2.0}, {-3.0}, {0.5}})) + 4;

  nn::Linear model(3, 1);
  optim::SGD optimizer(model->parameters(), 0.1);
  Tensor loss;
  for (int step = 0; step < 200; ++step) {  // nothing in this loop waits for the engine
    loss = nn::functional::mse_loss(model(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  std::cout << "w:\n" << model->weight << "\nb:\n" << model->bias << "\nloss: " << loss.item<float>() << '\n';

  publish("regression", {{"weight", model->weight.detach()}, {"bias", model->bias.detach()}});
  const Session other = connect(default_address());
  SessionGuard guard(other);
  for (const auto& [name, opened] : open_published("regression")) {
    std::cout << name << " in another session:\n" << opened << '\n';
  }
  return loss.item<double>();
}

int main() {
  try {
    const double loss = train();
    return std::isfinite(loss) && loss < 1e-4 ? 0 : 1;
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
