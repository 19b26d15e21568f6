// Parts of the bindings about proofs of kernel problems.
#pragma once

#include "bindings.hpp"
#include "gram/proof.hpp"

namespace dualgap {

// Sizes of the rounding errors of scores, with the array that Python owns.
struct ScoreSizes {
  Array<const double> lengths;
  double each, more, adding, underflow;
  ScoreRoundings of(Index n) const {
    return {sized(lengths, n, "lengths"), each, more, adding, underflow};
  }
};

}  // namespace dualgap
