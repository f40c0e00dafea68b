#include "server/serving/rest_json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/numbers.h"

namespace tt::server {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 72;  // of lists: a tensor's dimensions and the objects around them

std::string to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  static_cast<void>(google::protobuf::util::MessageToJsonString(message, &text, options));
  return text;
}

// protobuf writes 64-bit integers as strings; the protocol has numbers.
void make_numbers(json* value, bool is_number) {
  if (value->is_object()) {
    for (auto& [name, each] : value->items()) {
      constexpr const char* kTexts[] = {"name",     "version", "versions", "key",         "reason",
                                        "platform", "backend", "state",    "string_value"};
      bool is_text = false;
      for (const char* text : kTexts) is_text = is_text || name == text;
      make_numbers(&each, !is_text);
    }
  } else if (value->is_array()) {
    for (json& each : *value) make_numbers(&each, is_number);
  } else if (is_number && value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    int64_t number = 0;
    if (!text.empty() && text.size() < 20 && absl::SimpleAtoi(text, &number)) *value = number;
  }
}

}  // namespace

// Without the parser's recursion: nlohmann's keeps one bit per level, but a document's destructor and conversions do
// recurse.
json parse_json(absl::string_view text) {
  json parsed = json::parse(
      text.begin(), text.end(),
      [](int depth, json::parse_event_t, json&) {
        if (depth > kMaxDepth) refuse("expected JSON with at most ", kMaxDepth, " levels");
        return true;
      },
      /*allow_exceptions=*/false);
  if (parsed.is_discarded())
    refuse("expected valid JSON, in which NaN and infinity do not exist: send them as binary data");
  return parsed;
}

const json* member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}
std::string text_of(const json& object, const char* name, bool is_required) {
  const json* value = member(object, name);
  if (value == nullptr && !is_required) return "";
  if (value == nullptr || !value->is_string()) refuse("expected the string '", name, "'");
  return value->get<std::string>();
}

json to_document(const google::protobuf::Message& message) {
  json document = json::parse(to_json(message));
  make_numbers(&document, true);
  return document;
}

}  // namespace tt::server
