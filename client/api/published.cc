#include "client/published.h"

#include "client/api/errors.h"
#include "client/api/published.h"
#include "client/api/session.h"

namespace teletensor {

void publish(const std::string& name, const std::vector<std::pair<std::string, Tensor>>& tensors,
             const std::vector<std::string>& to) {
  if (tensors.empty()) throw ValueError("publish: expected at least one tensor");
  std::vector<std::string> keys;
  std::vector<tt::client::Tensor> handles;
  for (const auto& [key, tensor] : tensors) {
    tensor.meta();
    keys.push_back(key);
    handles.push_back(tensor.handle());
  }
  internal::translated([&] { tt::client::publish(name, keys, handles, {.to = to}); });
}

std::vector<std::pair<std::string, Tensor>> open_published(const std::string& name, const std::string& principal) {
  tt::client::OpenedTensors opened =
      internal::translated([&] { return tt::client::open_published(internal::current_session(), name, principal); });
  std::vector<std::pair<std::string, Tensor>> tensors;
  tensors.reserve(opened.tensors.size());
  for (size_t i = 0; i < opened.tensors.size(); ++i) {
    tensors.emplace_back(opened.keys ? opened.keys->at(i) : "", Tensor(std::move(opened.tensors[i])));
  }
  return tensors;
}

void unpublish(const std::string& name) {
  internal::translated([&] { tt::client::unpublish(internal::current_session(), name); });
}

}  // namespace teletensor
