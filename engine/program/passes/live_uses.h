// LiveUses: the definitions and the number of reads of a Program's names, kept current while a pass changes calls.
//
// UseDefs (schema/program.h) has the instructions that read a name, too, but has to be made anew after a change.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "engine/schema/program.h"

namespace tt {

class LiveUses {
 public:
  static constexpr int kOutside = -1;  // no instruction of the Program defines the name

  struct Name {
    int definition = kOutside;
    size_t reads = 0;  // by instructions, which may also write; an instruction that reads a name twice counts twice
    bool is_output = false;
  };

  explicit LiveUses(const Program& program);
  // Null for a name that does not occur in the Program.
  const Name* find(Slot slot) const;
  bool is_read(Slot slot) const;  // by an instruction or the caller

  // The instruction begins, or ceases, to read its arguments. Results that it defines stay as they are.
  void add_reads(const Instruction& instruction);
  void remove_reads(const Instruction& instruction);
  // The number that the instruction adds to Name::reads of `slot`.
  static size_t count_reads(const Instruction& instruction, Slot slot);

 private:
  absl::flat_hash_map<Slot, Name> names_;
};

}  // namespace tt
