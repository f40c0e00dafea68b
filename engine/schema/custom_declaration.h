// CustomDeclaration: the texts of which a custom operator is made, and how an engine sends them to clients.
//
// Values; pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace tt {

// The texts of engine/extension/teletensor_operator.h.
struct CustomDeclaration {
  std::string schema, doc, shape, dtype, body, gradient;
  bool has_rule = false;  // the library's function determines the results
  uint64_t library = 0;   // with such a rule: a digest of the library, whose rule is another one than others'

  // Of everything but `doc`. Not cryptographic: is_same() decides.
  uint64_t digest() const;
  // Whether everything but `doc` is equal, so that both are of one operator.
  bool is_same(const CustomDeclaration& other) const;
  friend bool operator==(const CustomDeclaration&, const CustomDeclaration&) = default;
};

// A list of declarations with their ids, for clients. decode_declarations throws Error (ValueError) if the text is
// malformed or too long.
struct NumberedDeclaration {
  uint16_t id = 0;
  CustomDeclaration declaration;
};
std::string encode_declarations(absl::Span<const NumberedDeclaration> declarations);
std::vector<NumberedDeclaration> decode_declarations(std::string_view text);

}  // namespace tt
