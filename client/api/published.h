// Published tensors: the memory of one session's tensors, used by other sessions of an engine without a copy; see
// docs/publish.md. The functions wait for the engine, and throw Error if an argument is invalid or the engine refuses.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/api/tensor.h"

namespace teletensor {

/// Publishes tensors of one session under their names. `to` are principals that may open them besides its own; "*":
/// all. Their values never change again; writes throw.
void publish(const std::string& name, const std::vector<std::pair<std::string, Tensor>>& tensors,
             const std::vector<std::string>& to = {});
/// Opens a publication in the current session, of a principal; empty: its own.
std::vector<std::pair<std::string, Tensor>> open_published(const std::string& name, const std::string& principal = "");
/// Ends a publication. Sessions that have opened it keep its tensors.
void unpublish(const std::string& name);

}  // namespace teletensor
