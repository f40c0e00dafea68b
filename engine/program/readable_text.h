// The text of a Program for people: as to_string() (schema/program.h), with the steps of chains instead of their code.
#pragma once

#include <string>

#include "engine/schema/program.h"

namespace tt {

// A chain's line is followed by one line per result that it stores, for example
//     %7, %9 = pointwise_chain([%1, %2])
//         %7 = mul(add(%1, other=1), %2)
//         %9 = sum(%7)
// Results that other steps of the chain read more than once, and that it does not store, are t1, t2, ... of the chain.
std::string readable_text(const Program& program);

// The lines of a chain's results, each preceded by four spaces; empty if its code is invalid.
std::string chain_text(const Instruction& chain);

}  // namespace tt
