#include "client/optim/scheduler.h"

#include <cmath>
#include <numbers>

#include "client/api/errors.h"

namespace teletensor::optim {

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (const OptimizerParamGroup& group : optimizer.param_groups()) initial_.push_back(group.options().get_lr());
}
LRScheduler::~LRScheduler() = default;

void LRScheduler::step() {
  ++epoch_;
  auto& groups = optimizer_.param_groups();
  for (size_t i = 0; i < groups.size() && i < initial_.size(); ++i) {
    groups[i].options().set_lr(rate(initial_[i], groups[i].options().get_lr(), epoch_));
  }
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (const OptimizerParamGroup& group : optimizer_.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  if (step_size <= 0) throw ValueError("step_size must be positive, got " + std::to_string(step_size));
}
double StepLR::rate(double, double current, int64_t epoch) const {
  return epoch % step_size_ == 0 ? current * gamma_ : current;
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  if (t_max <= 0) throw ValueError("T_max must be positive, got " + std::to_string(t_max));
}
double CosineAnnealingLR::rate(double initial, double, int64_t epoch) const {
  const double angle = std::numbers::pi * static_cast<double>(epoch) / static_cast<double>(t_max_);
  return eta_min_ + (initial - eta_min_) * (1 + std::cos(angle)) / 2;
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : LRScheduler(optimizer), factor_(std::move(factor)) {
  auto& groups = optimizer.param_groups();
  for (OptimizerParamGroup& group : groups) group.options().set_lr(group.options().get_lr() * factor_(0));
}
double LambdaLR::rate(double initial, double, int64_t epoch) const { return initial * factor_(epoch); }

}  // namespace teletensor::optim
