// ModelShares: divides the calls that a transport can have in progress among the models that they use.
//
// A request may wait for long: for its batch, or for a sequence that may begin. One that waits occupies a thread and a
// place among those of its transport, so that without a limit the requests of one slow model would leave no place for
// those of others. Principals have shares of all places (server/session/place_share.h), and the first request of one
// finds a place whatever the model's others are. A request keeps its place until its answer has been sent. A model may
// use a place while it has less than three times as many as are free, so that one model alone may have three quarters.
// The last places, one of each 32, are for the first requests of models that have none in progress: of up to so many
// models. Streams have places of their own, with or without a request, under a model without a name. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace tt::server {

class ModelShares : public std::enable_shared_from_this<ModelShares> {
 public:
  // Places of all callers, and of one, divided among its models.
  ModelShares(size_t places, size_t places_of_caller) : places_(places), places_of_caller_(places_of_caller) {}

  // A place, until it is destroyed.
  class Place {
   public:
    Place() = default;
    Place(Place&&) noexcept = default;
    Place& operator=(Place&& other) noexcept {
      std::swap(shares_, other.shares_);
      std::swap(model_, other.model_);
      std::swap(caller_, other.caller_);
      return *this;
    }
    ~Place() {
      if (shares_ != nullptr) shares_->leave(model_, caller_);
    }

   private:
    friend class ModelShares;
    Place(std::shared_ptr<ModelShares> shares, std::string model, std::string caller)
        : shares_(std::move(shares)), model_(std::move(model)), caller_(std::move(caller)) {}
    std::shared_ptr<ModelShares> shares_;
    std::string model_, caller_;
  };

  // UNAVAILABLE if the model has its share of all places or of those of the caller, or the caller has his. An empty
  // model: a stream.
  absl::StatusOr<Place> enter(const std::string& model, const std::string& caller);

 private:
  struct Count {
    size_t all = 0;
    absl::flat_hash_map<std::string, size_t> of_model = {};
  };
  void leave(const std::string& model, const std::string& caller);

  const size_t places_, places_of_caller_;
  Mutex mutex_;
  Count all_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Count> of_caller_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::server
