#include "engine/schema/custom_declaration.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"

namespace tt {

uint64_t CustomDeclaration::digest() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  };
  for (const std::string* text : {&schema, &shape, &dtype, &body, &gradient}) add(*text);
  hash = (hash ^ (has_rule ? library : 0)) * 0x100000001b3;
  return hash ^ (hash >> 32);
}

bool CustomDeclaration::is_same(const CustomDeclaration& other) const {
  return schema == other.schema && shape == other.shape && dtype == other.dtype && body == other.body &&
         gradient == other.gradient && has_rule == other.has_rule && (!has_rule || library == other.library);
}

std::string encode_declarations(absl::Span<const NumberedDeclaration> declarations) {
  std::string text;
  const auto add = [&](std::string_view part) {
    absl::StrAppend(&text, part.size(), ":");
    text.append(part.data(), part.size());
  };
  for (const auto& [id, d] : declarations) {
    add(std::to_string(id));
    for (const std::string* part : {&d.schema, &d.doc, &d.shape, &d.dtype, &d.body, &d.gradient}) add(*part);
    add(d.has_rule ? std::to_string(d.library) : "");
  }
  return text;
}

std::vector<NumberedDeclaration> decode_declarations(std::string_view text) {
  constexpr size_t kMaxDeclarations = 4096, kMaxText = 1 << 16;
  const auto require = [](bool ok) {
    check(ErrorKind::kValue, ok, "the engine's list of custom operators is malformed");
  };
  const auto take = [&]() -> std::string {
    const size_t colon = text.find(':');
    size_t size = 0;
    require(colon != std::string_view::npos && colon > 0 && colon <= 6);
    const auto [end, error] = std::from_chars(text.data(), text.data() + colon, size);
    require(error == std::errc() && end == text.data() + colon && size <= kMaxText && size <= text.size() - colon - 1);
    std::string part(text.substr(colon + 1, size));
    text.remove_prefix(colon + 1 + size);
    return part;
  };
  const auto number = [&](const std::string& part, auto* value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), *value);
    require(error == std::errc() && end == part.data() + part.size());
  };
  std::vector<NumberedDeclaration> all;
  while (!text.empty()) {
    require(all.size() < kMaxDeclarations);
    NumberedDeclaration& one = all.emplace_back();
    number(take(), &one.id);
    CustomDeclaration& d = one.declaration;
    for (std::string* part : {&d.schema, &d.doc, &d.shape, &d.dtype, &d.body, &d.gradient}) *part = take();
    const std::string library = take();
    d.has_rule = !library.empty();
    if (d.has_rule) number(library, &d.library);
  }
  return all;
}

}  // namespace tt
