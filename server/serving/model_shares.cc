#include "server/serving/model_shares.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/session/place_share.h"

namespace tt::server {
namespace {

constexpr size_t kPerFree = 3;    // places of a model for each that is free
constexpr size_t kPerSpare = 32;  // places for each that only a model without requests may use

}  // namespace

absl::StatusOr<ModelShares::Place> ModelShares::enter(const std::string& model, const std::string& caller) {
  MutexLock lock(mutex_);
  Count& own = of_caller_[caller];
  const auto may_enter = [&](Count& count, size_t places) {
    const size_t free = places - std::min(places, count.all);
    const size_t own = count.of_model[model];
    return own < kPerFree * free && (own == 0 || free > places / kPerSpare);
  };
  const bool is_first = own.all == 0;
  const bool enters = may_take_place(places_, all_.all, own.all, /*is_operator=*/true) &&
                      (is_first || may_enter(all_, places_)) && may_enter(own, places_of_caller_);
  for (Count* count : {&all_, &own}) {
    const auto found = count->of_model.try_emplace(model).first;
    if (enters) {
      ++count->all;
      ++found->second;
    } else if (found->second == 0) {
      count->of_model.erase(found);
    }
  }
  if (enters) return Place(shared_from_this(), model, caller);
  const size_t in_progress = all_.of_model.contains(model) ? all_.of_model[model] : 0;
  if (own.all == 0) of_caller_.erase(caller);
  if (model.empty()) {
    return absl::UnavailableError(absl::StrCat("[ModelStreamInfer] there are ", in_progress,
                                               " streams in progress, their share of all places; try again later"));
  }
  return absl::UnavailableError(absl::StrCat("[ModelInfer] the model has ", in_progress,
                                             " requests in progress, its share of the places of all models; try again "
                                             "later"));
}

void ModelShares::leave(const std::string& model, const std::string& caller) {
  MutexLock lock(mutex_);
  const auto own = of_caller_.find(caller);
  for (Count* count : {&all_, &own->second}) {
    --count->all;
    const auto found = count->of_model.find(model);
    if (--found->second == 0) count->of_model.erase(found);
  }
  if (own->second.all == 0) of_caller_.erase(own);
}

}  // namespace tt::server
