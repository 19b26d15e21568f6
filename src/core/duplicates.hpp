// Rows that occur more than once, under the same label.
//
// Problem    partition the rows i into groups of equal (x_i, y_i)
// Update     each row gets a hash, a sum over its entries. A table of hashes with
//            linear probing finds candidates, which are compared entry by entry.
// Guarantee  rows of a group are equal entry by entry. Equal rows are missed if their
//            entries are stored in different orders or only one row stores a zero.
// Cost       1 to 2 products; 16 to 32 bytes a row.
// Source     Knuth, The Art of Computer Programming, vol. 3 (1973), section 6.4.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rows.hpp"
#include "stop.hpp"

namespace dualgap {

template <class Rows>
std::uint64_t row_hash(const Rows &rows, Index i) {
  std::uint64_t sum = 0;
  rows.for_each(i, [&](Index j, double x) {
    auto h = std::bit_cast<std::uint64_t>(x);
    h = (h ^ (h >> 29) ^ (static_cast<std::uint64_t>(j) << 20)) * 0xbf58476d1ce4e5b9u;
    sum += (h ^ (h >> 32)) * 0x94d049bb133111ebu;
  });
  return sum ^ (sum >> 31);
}

// group[i] <- the number of row i's group, in the order of first appearance. Returns
// the number of groups, or 0 if told to stop.
template <class Rows>
Index group_duplicates(const Rows &rows, const std::int8_t *y, Order *group,
                       Poll &poll) {
  constexpr Index kChunk = 64;
  constexpr Order kFree = std::numeric_limits<Order>::max();
  const Index n = rows.rows();
  const auto slots = std::bit_ceil(static_cast<std::size_t>(n + n / 2 + 1));
  std::vector<std::pair<std::uint32_t, Order>> table(slots, {0, kFree});
  std::vector<Order> first;  // row of each group
  for (Index from = 0; from < n; from += kChunk) {
    const Index to = std::min(n, from + kChunk);
    std::uint64_t hash[kChunk];
    Index entries = 0;
    for (Index i = from; i < to; ++i) {
      hash[i - from] = row_hash(rows, i) + static_cast<std::uint64_t>(y[i] > 0);
      prefetch_line(&table[hash[i - from] & (slots - 1)]);
      entries += rows.count(i) + 1;
    }
    for (Index i = from; i < to; ++i) {
      const auto tag = static_cast<std::uint32_t>(hash[i - from] >> 32);
      std::size_t at = hash[i - from] & (slots - 1);
      for (;; at = (at + 1) & (slots - 1)) {
        auto &[known, number] = table[at];
        if (number == kFree) {
          known = tag;
          number = static_cast<Order>(first.size());
          first.push_back(static_cast<Order>(i));
          group[i] = number;
          break;
        }
        const Index other = known == tag ? first[number] : i;
        if (other != i && y[other] == y[i] && rows.equal(other, i)) {
          group[i] = number;
          break;
        }
      }
    }
    if (poll(entries)) return 0;
  }
  return static_cast<Index>(first.size());
}

}  // namespace dualgap
