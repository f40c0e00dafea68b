// Learning rate schedules, by libtorch's names and PyTorch's formulas.
#pragma once

#include <cstdint>
#include <vector>

#include "client/optim/optimizer.h"

namespace teletensor::optim {

/// Sets the learning rates of an optimizer's groups, which must live as long as this object.
class LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer);
  virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;
  /// Call after each epoch, or each step of the optimizer.
  void step();
  std::vector<double> get_last_lr() const;
  int64_t last_epoch() const { return epoch_; }

 protected:
  /// The learning rate of a group in an epoch. `initial` is its rate at construction, `current` the one before.
  virtual double rate(double initial, double current, int64_t epoch) const = 0;

 private:
  Optimizer& optimizer_;
  std::vector<double> initial_;
  int64_t epoch_ = 0;
};

/// Multiplies the rate by gamma every step_size epochs.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 protected:
  double rate(double initial, double current, int64_t epoch) const override;

 private:
  const int64_t step_size_;
  const double gamma_;
};

/// Anneals the rate to eta_min over T_max epochs, along a cosine.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0);

 protected:
  double rate(double initial, double current, int64_t epoch) const override;

 private:
  const int64_t t_max_;
  const double eta_min_;
};

/// Multiplies the initial rate by a function of the epoch.
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor);

 protected:
  double rate(double initial, double current, int64_t epoch) const override;

 private:
  const std::function<double(int64_t)> factor_;
};

}  // namespace teletensor::optim
