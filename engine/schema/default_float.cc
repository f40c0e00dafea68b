#include "engine/schema/default_float.h"

#include <utility>

namespace tt {
namespace {

thread_local DType current = kDefaultFloat;

}  // namespace

DType default_float() { return current; }
DType default_complex() { return to_complex(current); }
bool is_default_float(DType t) { return is_floating(t) && !is_float8(t); }

DefaultFloat::DefaultFloat(DType t) : before_(std::exchange(current, t)) {}
DefaultFloat::~DefaultFloat() { current = before_; }
void DefaultFloat::set(DType t) { current = t; }

}  // namespace tt
