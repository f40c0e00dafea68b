#include "engine/schema/sized_program.h"

#include <memory>
#include <utility>

#include "engine/schema/error.h"

namespace tt {

void set_sizes(absl::Span<const SizeArgument> sizes, const ProgramTypes& types, ProgramMemory& memory,
               Instruction* instruction) {
  if (sizes.empty()) return;
  absl::Span<Arg> args = memory.allocate<Arg>(instruction->args.size());
  std::uninitialized_copy(instruction->args.begin(), instruction->args.end(), args.begin());
  const auto size_of = [&](const SizeTerm& term) {
    const auto [name, dim] = std::pair(term.name, term.number);
    check(ErrorKind::kValue, types.contains(name), "expected the size of a value that the Program has defined, got %",
          name);
    const Sizes& all = types.of(name).sizes;
    check(ErrorKind::kValue, dim >= 0 && dim < static_cast<int64_t>(all.size()), "expected a dimension of %", name,
          ", which has ", all.size(), ", got ", dim);
    return all[static_cast<size_t>(dim)];
  };
  const int64_t* copied = nullptr;  // the list that was copied last
  for (const SizeArgument& size : sizes) {
    check(ErrorKind::kValue, size.arg < args.size(), "expected an argument below ", args.size(), ", got ", size.arg);
    Arg& arg = args[size.arg];
    const int64_t value = evaluate(size.expression, size_of);
    if (size.element == SizeArgument::kNumber) {
      check(ErrorKind::kValue, arg.kind == Arg::Kind::kInt && arg.size == 0,
            "expected an integer as the argument that depends on sizes");
      arg = Arg(value);
      continue;
    }
    check(ErrorKind::kValue,
          arg.kind == Arg::Kind::kInts && size.element >= 0 && static_cast<uint32_t>(size.element) < arg.size,
          "expected an element of a list of integers as the argument that depends on sizes");
    if (arg.integers != copied) arg.integers = copied = memory.copy(arg.ints()).data();
    const_cast<int64_t*>(arg.integers)[size.element] = value;  // in `memory`
  }
  instruction->args = args;
}

SizedProgram with_sizes(const Program& program, absl::Span<const TensorMeta* const> inputs, bool grad_enabled,
                        VisitTypes visit) {
  SizedProgram sized{program, ProgramTypes(inputs)};
  sized.program.clear_sizes();
  absl::Span<const SizeArgument> left = program.sizes();
  size_t index = 0;
  for (Instruction& instruction : sized.program.mutable_instructions()) {
    visit(index, sized.types);
    size_t count = 0;
    while (count < left.size() && left[count].instruction == index) ++count;
    set_sizes(left.first(count), sized.types, sized.program.memory(), &instruction);
    left.remove_prefix(count);
    sized.types.add(instruction, grad_enabled);
    ++index;
  }
  visit(index, sized.types);
  return sized;
}

}  // namespace tt
