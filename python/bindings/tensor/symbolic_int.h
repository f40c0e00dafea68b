// SymInt: an integer that a traced function has computed from sizes (client/session/traced_sizes.h).
//
// Sums, differences, products, quotients rounded down and remainders of SymInts and ints are SymInts, and operators
// take them as arguments, so that each run of the Program computes them for its inputs. Comparisons are SymBools. Every
// other use (int(), range(), a format) has the result for the trace's example, and is required of the runs. After the
// trace it is an int.
#pragma once

#include <Python.h>

#include "client/session/program_trace.h"

namespace tt::python {

// Adds SymInt to the module.
bool init_symbolic_int(PyObject* module);

bool is_symbolic(PyObject* o);
// Whether an object is a SymBool: the result of a comparison of sizes, or of numbers computed from sizes.
bool is_symbolic_bool(PyObject* o);
// The outcome of a SymBool, True or False, which runs are then required to have; any other object itself. Borrowed
// reference; throws Error. A SymBool has an index, so that code which tells bools from ints asks for this first.
PyObject* decided(PyObject* o);
// Whether an object is a bool or a SymBool.
bool is_bool(PyObject* o);
// Requires is_symbolic(o). The number that stands for it among the arguments of a call. Throws Error.
int64_t marked_int(PyObject* o);
// Whether an object is a size of a recording (python/teletensor/fx/experimental/_sizes.py): no int, but an argument of
// calls, for which the recording finds the expression.
bool is_recorded_size(PyObject* o);
// Whether an object is a size or a float of a recording, and the float that stands for it among the arguments of a
// call. Throws Error.
bool is_recorded_number(PyObject* o);
double recorded_double(PyObject* o);
// The number that stands for a recorded size among the arguments of a call; any other object itself. New reference;
// throws Error.
PyObject* peeked(PyObject* o);
// An int or a SymInt. New reference.
PyObject* number_object(const client::ProgramTrace::Number& number);
// The sizes of a tensor of `trace`, as a Size. New reference; throws Error.
PyObject* traced_shape(client::ProgramTrace& trace, const client::Handle& tensor);
// Their product.
PyObject* traced_numel(client::ProgramTrace& trace, const client::Handle& tensor);

}  // namespace tt::python
