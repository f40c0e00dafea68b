// The C++ client of teletensor, with libtorch's names in the namespace `teletensor`; see docs/cpp.md.
#pragma once

#include "client/api/autograd.h"
#include "client/api/creation.h"
#include "client/api/errors.h"
#include "client/api/functions.h"
#include "client/api/indexing.h"
#include "client/api/options.h"
#include "client/api/session.h"
#include "client/api/tensor.h"
