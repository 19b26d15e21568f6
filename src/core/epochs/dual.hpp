// What the epochs of dual coordinate methods share: their data, their point, what a
// pass returns, and the order in which shrinking visits the rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "../losses.hpp"
#include "../random.hpp"
#include "../rows.hpp"

namespace dualgap {

// Labels or targets, costs c_i, and q_i = ||x_i||^2.
template <class L, class Target = std::int8_t>
struct DualDataOf {
  const Target *y;
  const double *cost;
  const double *q;
  L loss;
};
using DualData = DualDataOf<Loss>;

struct DualState {
  Span<double> alpha, w;
};

struct DualPass {
  Index visited = 0;
  Index updates = 0;
  double gap = 0;  // sum of gap shares at visit time
};

inline constexpr double kLongestSleep = 127;  // a counter holds 2 s + 1

// State of shrinking.
struct Sleep {
  Span<std::uint8_t> wake;    // epochs for which the row is still skipped
  Span<std::uint8_t> length;  // epochs of its last skip; 0: it moved at its last visit
  double threshold;  // outward gradient above which a row is skipped; NaN: unknown
  int longest;       // most epochs of a skip, up to kLongestSleep
};

// Multiples b_k w of a point may be better than w itself. Their losses are summed over
// the visits, with b_k = 1 + kStretch[k] thresholds.
inline constexpr Index kScales = 8;
inline constexpr double kStretch[kScales] = {0, 0.25, 0.5, 1, 1.5, 2, 3, 5};

struct SleepingPass : DualPass {
  double linear = 0;            // change of sum a_i - 1/2 sum delta_i a_i^2
  double threshold = 0;         // mean projected gradient of this pass
  double norm = 0;              // ||w||^2 after it
  double saved = 0;             // best_scale(), if wanted
  double scaled[kScales] = {};  // sum c_i l(1 - b_k m_i), if wanted
  double product = 0;           // sum a_i m_i, if wanted

  // Returns the change of the gap at w by the best b_k, at most 0, given ||w||^2 =
  // square. A skipped row has no loss, or a loss that falls by (b - 1) a_i m_i.
  double best_scale(double square, double last_threshold) const {
    double best = 0;
    for (Index k = 1; k < kScales; ++k) {
      const double more = kStretch[k] * last_threshold;
      best = std::min(best, 0.5 * more * (2 + more) * square + scaled[k] - scaled[0] -
                                more * std::max(0.0, square - product));
    }
    return best;
  }
};

inline constexpr Index kFewestChunks = 1000;

// Writes the active rows to `order`, in increasing order, and counts down the skipped
// rows. Eight skipped rows are passed at once. The loop has no other branches, because
// which rows are skipped is unpredictable.
inline Index awake_rows(std::uint8_t *wake, Index n, Order *order) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
  constexpr Index kEight = 8;
  Index m = 0;
  for (Index first = 0; first < n; first += kEight) {
    const Index last = std::min(first + kEight, n);
    if (last == first + kEight) {
      std::uint64_t eight;
      std::memcpy(&eight, wake + first, sizeof eight);
      if (((eight - kOnes) & ~eight & kTops) == 0) {  // no byte is 0
        eight -= kOnes;
        std::memcpy(wake + first, &eight, sizeof eight);
        continue;
      }
    }
    for (Index i = first; i < last; ++i) {
      order[m] = static_cast<Order>(i);
      const bool asleep = wake[i] != 0;
      m += !asleep;
      wake[i] = static_cast<std::uint8_t>(wake[i] - asleep);
    }
  }
  return m;
}

// Fisher-Yates shuffle of chunks of consecutive entries. The remainder comes last.
inline void shuffle_chunks(Order *order, Index m, Index chunk, Random &random) {
  chunk = std::clamp<Index>(m / kFewestChunks, 1, chunk);
  for (Index k = m / chunk - 1; k > 0; --k) {
    const Index other = random.below(static_cast<std::uint32_t>(k + 1));
    if (other == k) continue;
    std::swap_ranges(order + k * chunk, order + (k + 1) * chunk, order + other * chunk);
  }
}

}  // namespace dualgap
