#include "engine/program/readable_text.h"

#include <charconv>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/program/chain_code.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// Names of steps in the text of a call, which no checked Program has.
constexpr Slot kFirstStep = Slot{1} << 40;

bool is_default(const Arg& arg, const Arg& value) {
  return arg.kind == value.kind && arg.size == value.size &&
         (arg.kind == Arg::Kind::kNone || (arg.is_real_number() && arg.to_double() == value.to_double()));
}

// The text of a step's call, in which results of steps are named from kFirstStep on.
std::string call_text(const CodedStep& step, absl::Span<const Slot> inputs) {
  std::vector<Arg> args(step.args.begin(), step.args.end());
  for (size_t a = 0; a < args.size(); ++a) {
    if (step.from[a] < 0) continue;
    const auto from = static_cast<size_t>(step.from[a]);
    args[a] = slot_arg(args[a].kind == Arg::Kind::kSlot ? kFirstStep + from : inputs[from]);
  }
  while (!args.empty() && step.from[args.size() - 1] < 0 && step.op->params[args.size() - 1].has_default &&
         is_default(args.back(), step.op->params[args.size() - 1].default_value)) {
    args.pop_back();
  }
  Program call;
  call.add(*step.op, args, {});
  std::string text = to_string(call);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Replaces the names of steps.
std::string with_steps(std::string_view text, const std::vector<std::string>& steps) {
  std::string replaced;
  for (size_t at = 0; at < text.size();) {
    Slot name = 0;
    const char* const digits = text.data() + at + 1;
    const auto [end, error] =
        text[at] == '%' ? std::from_chars(digits, text.data() + text.size(), name) : std::from_chars_result{digits, {}};
    const bool is_step = error == std::errc() && name >= kFirstStep && name - kFirstStep < steps.size();
    if (is_step) {
      replaced.append(steps[name - kFirstStep]);
      at = static_cast<size_t>(end - text.data());
    } else {
      replaced.push_back(text[at++]);
    }
  }
  return replaced;
}

}  // namespace

std::string chain_text(const Instruction& chain) {
  if (chain.args.size() != 2 || chain.args[0].kind != Arg::Kind::kSlots || chain.args[1].kind != Arg::Kind::kInts)
    return "";
  const absl::Span<const Slot> inputs = names_in(chain.args[0]);
  CodedSteps steps;
  try {
    steps = read_chain(chain.args[1].ints(), inputs.size());
  } catch (const Error&) {
    return "";
  }
  std::vector<int> reads(steps.size());
  for (const CodedStep& step : steps) {
    for (size_t a = 0; a < step.args.size(); ++a) {
      if (step.from[a] >= 0 && step.args[a].kind == Arg::Kind::kSlot) ++reads[static_cast<size_t>(step.from[a])];
    }
  }
  std::vector<std::string> names(steps.size());  // or expressions
  std::string text;
  size_t stored = 0, temporary = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string call = with_steps(call_text(steps[i], inputs), names);
    const bool is_stored = steps[i].kept || i + 1 == steps.size();
    if (!is_stored && reads[i] <= 1) {
      names[i] = call;
      continue;
    }
    if (is_stored && stored >= chain.results.size()) return "";
    names[i] = is_stored ? absl::StrCat("%", chain.results[stored++]) : absl::StrCat("t", ++temporary);
    absl::StrAppend(&text, "    ", names[i], " = ", call, "\n");
  }
  return text;
}

std::string readable_text(const Program& program) {
  std::string text;
  const std::string plain = to_string(program);
  const std::vector<std::string> lines = absl::StrSplit(plain, '\n');
  for (size_t i = 0; i < lines.size() && !(i + 1 == lines.size() && lines[i].empty()); ++i) {
    const bool is_chain =
        i < program.instructions().size() && program.instructions()[i].op->id == op_id::kPointwiseChain;
    const std::string steps = is_chain ? chain_text(program.instructions()[i]) : "";
    const size_t code = steps.empty() ? std::string::npos : lines[i].find(", steps=[");
    if (code == std::string::npos) {
      absl::StrAppend(&text, lines[i], "\n");
      continue;
    }
    absl::StrAppend(&text, lines[i].substr(0, code), lines[i].substr(lines[i].find(']', code) + 1), "\n", steps);
  }
  return text;
}

}  // namespace tt
