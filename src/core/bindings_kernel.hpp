// Shared parts of the bindings of kernels.
#pragma once

#include <memory>

#include "bindings.hpp"
#include "gram/points.hpp"
#include "gram/proof.hpp"

namespace dualgap {

// All rows, or the named ones.
std::unique_ptr<Points> points_of(const AnyRows &rows,
                                  const Maybe<const Order> &named = {});

// Sizes of the rounding errors of scores, with the array that Python owns.
struct ScoreSizes {
  Array<const double> lengths;
  double each, more, adding, underflow;
  ScoreRoundings of(Index n) const {
    return {sized(lengths, n, "lengths"), each, more, adding, underflow};
  }
};

}  // namespace dualgap
