// JSON of the REST form of the Open Inference Protocol: reading untrusted text, and messages of protobuf as documents.
//
// Values. Invalid input ends the request with Refused, which answer_rest() makes an error response. Thread-safe.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace tt::server {

// Thrown: ends a request with a status.
struct Refused {
  absl::Status status;
};
template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw Refused{absl::InvalidArgumentError(absl::StrCat("[infer] ", parts...))};
}
inline void require_ok(const absl::Status& status) {
  if (!status.ok()) throw Refused{status};
}

// The document of a text. Refuses invalid JSON and deep nesting.
nlohmann::json parse_json(absl::string_view text);
// A member of an object; null if it is absent or null.
const nlohmann::json* member(const nlohmann::json& object, const char* name);
// A string of an object; empty if it is absent and not required.
std::string text_of(const nlohmann::json& object, const char* name, bool is_required);
// A message, with 64-bit integers as numbers.
nlohmann::json to_document(const google::protobuf::Message& message);

}  // namespace tt::server
