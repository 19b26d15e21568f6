// What a problem that is solved in one call tells of an epoch.
#pragma once

#include "rows.hpp"

namespace dualgap {

// P and D after an epoch, estimates or exact, and the steps or updates so far.
struct Epoch {
  double primal, dual;
  Index steps;
};

}  // namespace dualgap
