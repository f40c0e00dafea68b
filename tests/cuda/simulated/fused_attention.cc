#include "tests/cuda/simulated/fused_attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "kernels/cuda/launch/floating.h"
#include "kernels/cuda/launch/launch_host.h"
#include "kernels/cuda/runtime/fused_attention.h"
#include "kernels/cuda/runtime/library_status.h"
#include "tests/cuda/simulated/loader.h"

namespace tt::cuda {
namespace {

// One head of one sample.
template <typename T>
struct Head {
  FusedAttentionCall c;
  int64_t index;

  static double number(const void* data, int64_t i) { return convert<float>(static_cast<const T*>(data)[i]); }
  double query(int64_t i, int64_t e) const { return number(c.query, (index * c.rows + i) * c.depth + e); }
  double key(int64_t j, int64_t e) const { return number(c.key, (index * c.columns + j) * c.depth + e); }
  double value(int64_t j, int64_t e) const { return number(c.value, (index * c.columns + j) * c.width + e); }
  double output(int64_t i, int64_t e) const { return number(c.output, (index * c.rows + i) * c.width + e); }
  double grad(int64_t i, int64_t e) const { return number(c.grad, (index * c.rows + i) * c.width + e); }
  float& logsumexp(int64_t i) const { return c.logsumexp[index * c.rows + i]; }
  bool sees(int64_t i, int64_t j) const { return !c.causal || j <= i; }
  static void store(void* data, int64_t i, double x) { static_cast<T*>(data)[i] = convert<T>(static_cast<float>(x)); }

  double score(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t e = 0; e < c.depth; ++e) sum += query(i, e) * key(j, e);
    return sees(i, j) ? sum * c.scale : -std::numeric_limits<double>::infinity();
  }
  void forward() const {
    for (int64_t i = 0; i < c.rows; ++i) {
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      std::vector<double> scores(static_cast<size_t>(c.columns)), result(static_cast<size_t>(c.width));
      for (int64_t j = 0; j < c.columns; ++j) most = std::max(most, scores[j] = score(i, j));
      for (int64_t j = 0; j < c.columns; ++j) sum += std::exp(scores[j] - most);
      for (int64_t j = 0; j < c.columns; ++j) {
        for (int64_t e = 0; e < c.width; ++e) result[e] += std::exp(scores[j] - most) / sum * value(j, e);
      }
      for (int64_t e = 0; e < c.width; ++e) store(c.output, (index * c.rows + i) * c.width + e, result[e]);
      logsumexp(i) = static_cast<float>(most + std::log(sum));
    }
  }
  void backward() const {
    std::vector<double> dk(static_cast<size_t>(c.columns * c.depth)), dv(static_cast<size_t>(c.columns * c.width));
    for (int64_t i = 0; i < c.rows; ++i) {
      std::vector<double> dq(static_cast<size_t>(c.depth));
      double delta = 0;
      for (int64_t e = 0; e < c.width; ++e) delta += grad(i, e) * output(i, e);
      for (int64_t j = 0; j < c.columns; ++j) {
        const double weight = std::exp(score(i, j) - double{logsumexp(i)});
        double weight_grad = 0;
        for (int64_t e = 0; e < c.width; ++e) {
          weight_grad += grad(i, e) * value(j, e);
          dv[j * c.width + e] += weight * grad(i, e);
        }
        const double score_grad = weight * (weight_grad - delta) * c.scale;
        for (int64_t e = 0; e < c.depth; ++e) {
          dq[e] += score_grad * key(j, e);
          dk[j * c.depth + e] += score_grad * query(i, e);
        }
      }
      for (int64_t e = 0; e < c.depth; ++e) store(c.query_grad, (index * c.rows + i) * c.depth + e, dq[e]);
    }
    for (size_t e = 0; e < dk.size(); ++e)
      store(c.key_grad, index * c.columns * c.depth + static_cast<int64_t>(e), dk[e]);
    for (size_t e = 0; e < dv.size(); ++e) {
      store(c.value_grad, index * c.columns * c.width + static_cast<int64_t>(e), dv[e]);
    }
  }
};

// Fails for calls that cuDNN does not support.
void check_call(const FusedAttentionCall& c, bool backward) {
  check(is_reduced_floating(c.dtype), "an attention of an unsupported dtype");
  check(c.samples > 0 && c.heads > 0 && c.rows > 0 && c.columns > 0, "an empty attention");
  check(c.depth > 0 && c.depth % 8 == 0 && c.depth <= 128 && c.width > 0 && c.width % 8 == 0 && c.width <= 128,
        "an attention of an unsupported depth or width");
  check(!backward || c.rows > 1 || c.columns > 1, "the gradient of an attention of one row and column");
  std::vector<const void*> addresses = {c.query, c.key, c.value, c.output, c.logsumexp};
  if (backward) addresses.insert(addresses.end(), {c.grad, c.query_grad, c.key_grad, c.value_grad});
  for (const void* p : addresses) {
    check(p && reinterpret_cast<uintptr_t>(p) % kAttentionAlignment == 0, "an unaligned tensor of an attention");
  }
}

class PlainAttention final : public FusedAttention {
 public:
  bool forward(const Queue& queue, const FusedAttentionCall& c) override {
    return run(queue, c, false, simulated_attention().forward);
  }
  bool backward(const Queue& queue, const FusedAttentionCall& c) override {
    return run(queue, c, true, simulated_attention().backward);
  }

 private:
  static bool run(const Queue& queue, const FusedAttentionCall& c, bool backward, int& calls) {
    check_call(c, backward);
    if (simulated_attention().rejects) return false;
    ++calls;
    record_library_status({"cuDNN attention",
                           absl::StrCat(simulated_attention().forward + simulated_attention().backward, " plans"), ""});
    with_floating(c.dtype, [&]<typename T>(std::type_identity<T>) {
      queue.add([c, backward](StreamHandle stream) {
        enqueue(stream, [c, backward] {
          for (int64_t head = 0; head < c.samples * c.heads; ++head) {
            backward ? Head<T>{c, head}.backward() : Head<T>{c, head}.forward();
          }
        });
      });
    });
    return true;
  }
};

}  // namespace

SimulatedAttention& simulated_attention() {
  static SimulatedAttention attention;
  return attention;
}

std::unique_ptr<FusedAttention> make_fused_attention() {
  if (is_hidden_library("cudnn")) return nullptr;
  return std::make_unique<PlainAttention>();
}

}  // namespace tt::cuda
