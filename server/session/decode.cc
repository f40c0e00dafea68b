#include "server/session/decode.h"

#include "engine/schema/error.h"
#include "formats/program_frame.h"

namespace tt::server {

void decode(const v1::Frame& frame, const Limits& limits, Program* program) {
  program->clear();
  try {
    decode_program_frame(frame,
                         {.instructions = limits.max_instructions,
                          .reads = limits.max_reads,
                          .inline_bytes = limits.max_inline_bytes,
                          .results = limits.max_results,
                          .names = limits.max_names},
                         program);
  } catch (const Error& error) {
    throw ProgramFault{program->instructions().size(), error};
  }
}

void decode_sizes(const v1::Frame& frame, Program* program) {
  constexpr int kNumbers = 3;  // per term
  std::vector<SizeTerm> terms;
  for (const v1::SizeArgument& wire : frame.sizes()) {
    check(ErrorKind::kValue,
          wire.terms_size() % kNumbers == 0 && wire.terms_size() <= kNumbers * static_cast<int>(kMaxSizeTerms),
          "expected three numbers per term, and at most ", kMaxSizeTerms, " terms, got ", wire.terms_size(),
          " numbers");
    terms.clear();
    for (int i = 0; i < wire.terms_size(); i += kNumbers) {
      const int64_t kind = wire.terms(i);
      check(ErrorKind::kValue, kind >= 0 && kind < SizeTerm::kKinds, "expected a kind of term below ", SizeTerm::kKinds,
            ", got ", kind);
      terms.push_back({static_cast<SizeTerm::Kind>(kind), wire.terms(i + 1), static_cast<uint64_t>(wire.terms(i + 2))});
    }
    program->add_size({wire.instruction(), wire.arg(), wire.element(), terms});
  }
}

void decode_scalar_reads(const v1::Frame& frame, const Limits& limits, std::vector<ReadPoint>* reads) {
  reads->clear();
  const auto& fields = frame.scalar_reads();
  const auto count = static_cast<size_t>(fields.size()) / 2;
  check(ErrorKind::kValue, fields.size() % 2 == 0, "expected two numbers per read of a number, got ", fields.size());
  check(ErrorKind::kValue, count <= limits.max_scalar_reads, "a frame must have at most ", limits.max_scalar_reads,
        " reads of numbers, got ", count);
  uint64_t last = 0;
  for (int i = 0; i < fields.size(); i += 2) {
    const uint64_t instruction = fields[i];
    check(ErrorKind::kValue, instruction >= last && instruction <= static_cast<uint64_t>(frame.instructions_size()),
          "expected a read of a number after instruction ", last, " to ", frame.instructions_size(), ", got ",
          instruction);
    reads->push_back({instruction, fields[i + 1]});
    last = instruction;
  }
}

}  // namespace tt::server
