#include "engine/schema/json_text.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "engine/schema/device.h"

namespace tt {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&result, "\\u%04x", static_cast<int>(c));
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string json_number(double value) {
  if (value != value) return "NaN";
  if (value - value != 0) return value > 0 ? "Infinity" : "-Infinity";
  return absl::StrFormat("%.17e", value);
}

std::string json_value(const Param& param, const Arg& arg, bool conjugated) {
  switch (arg.kind) {
    case Arg::Kind::kBool: return arg.to_bool() ? "true" : "false";
    case Arg::Kind::kInt:
      if (param.type == ParamType::kDType) return absl::StrCat("{\"dtype\":", json_string(name(arg.dtype())), "}");
      if (param.type == ParamType::kDevice)
        return absl::StrCat("{\"device\":", json_string(to_string(decode_device(arg.integer))), "}");
      return arg.size == 1 ? absl::StrCat(static_cast<uint64_t>(arg.integer)) : absl::StrCat(arg.integer);
    case Arg::Kind::kFloat: return json_number(arg.real);
    case Arg::Kind::kComplex:
      return absl::StrCat("{\"complex\":[", json_number(arg.real), ",",
                          json_number(conjugated ? -arg.imaginary : arg.imaginary), "]}");
    case Arg::Kind::kInts: return json_list(arg.ints());
    case Arg::Kind::kFloats: return json_list(arg.floats());
    case Arg::Kind::kString:
      if (!is_ascii(arg.string()))
        return absl::StrCat("{\"bytes\":\"", absl::BytesToHexString({arg.string().data(), arg.string().size()}), "\"}");
      return json_string(arg.string());
    case Arg::Kind::kSlot: return arg.slot == 0 ? "null" : absl::StrCat("{\"name\":", arg.slot, "}");
    case Arg::Kind::kSlots: return absl::StrCat("{\"names\":", json_list(names_in(arg)), "}");
    default: return "null";
  }
}

std::string to_json(const Program& program) {
  std::string text = "{\"instructions\":[";
  for (size_t n = 0; n < program.instructions().size(); ++n) {
    const Instruction& instruction = program.instructions()[n];
    absl::StrAppend(&text, n == 0 ? "" : ",", "{\"op\":", json_string(instruction.op->name), ",\"args\":{");
    for (size_t i = 0; i < instruction.args.size(); ++i) {
      const Param& param = instruction.op->params[i];
      absl::StrAppend(&text, i == 0 ? "" : ",", json_string(param.name), ":", json_value(param, instruction.args[i]));
    }
    const bool into = (instruction.flags & Instruction::kInto) != 0;
    absl::StrAppend(&text, "},\"results\":", json_list(instruction.results), ",\"into\":", into ? "true" : "false",
                    "}");
  }
  absl::StrAppend(&text, "],\"outputs\":", json_list(program.outputs()), "}");
  return text;
}

}  // namespace tt
