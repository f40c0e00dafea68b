// Fits y = x w + b by gradient descent on the engine at TELETENSOR_ADDRESS, or on a private engine.
#include <cmath>
#include <cstdio>

#include "client/autograd/backward.h"
#include "client/connect.h"
#include "teletensor/ops.h"

using namespace tt::client;

namespace {

constexpr int kSteps = 200;
constexpr double kRate = 0.1;

double train(Session& session) {
  manual_seed(session, 0);
  Tensor x = randn(session, {1024, 3});
  Tensor true_w = tensor<float>(session, {2.0f, -3.0f, 0.5f}, tt::DType::kFloat32, {3, 1});
  Tensor y = add(matmul(x, true_w), 4.0);

  Tensor w = zeros(session, {3, 1});
  Tensor b = zeros(session, {1});
  set_requires_grad(w, true, 0);
  set_requires_grad(b, true, 0);
  Tensor parameters[] = {w, b};
  Tensor loss;
  for (int step = 0; step < kSteps; ++step) {  // nothing in this loop waits for the engine
    loss = mse_loss(add(matmul(x, w), b), y);
    backward({&loss, 1}, {}, /*retain_graph=*/false, /*create_graph=*/false, /*site=*/0);
    NoGrad no_grad;
    for (const Tensor& parameter : parameters) sub_(parameter, mul(parameter->grad, kRate));
    set_grads(parameters, std::vector<Tensor>(2), /*site=*/0);
  }

  std::vector<float> weights(3);
  session.read_into(w, {reinterpret_cast<char*>(weights.data()), sizeof(float) * weights.size()});
  std::printf("w = [%.3f, %.3f, %.3f], b = %.3f, loss = %.2e\n", weights[0], weights[1], weights[2], item(b),
              item(loss));
  return item(loss);
}

}  // namespace

int main() {
  try {
    tt::Ref<Session> session = connect();
    double loss = train(*session);
    Session::Counters counters = session->counters();
    std::printf("%d steps, %lu instructions in %lu frames, %lu waits\n", kSteps,
                static_cast<unsigned long>(counters.instructions), static_cast<unsigned long>(counters.frames),
                static_cast<unsigned long>(counters.waits));
    session->close();
    return std::isfinite(loss) && loss < 1e-4 ? 0 : 1;
  } catch (const tt::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
