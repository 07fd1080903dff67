// Statuses of the C ABI as Python exceptions.
#pragma once

#include "headrace/client.h"

namespace headrace::python {

// Throws the exception of headrace/errors.py for `status`, with headrace_last_error(), unless it is OK. Needs the GIL.
void Check(headrace_status status);

}  // namespace headrace::python
