// What may surprise in a plan that is right: each in words, with field, effect and remedy.
#pragma once

#include "common/spec/plan.h"

namespace headrace {

// Appends to plan->warnings what follows from the spec alone; TopologyWarnings (plan.h) adds what needs the run's size.
void AddWarnings(Plan* plan);

}  // namespace headrace
