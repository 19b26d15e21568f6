// 64-bit fingerprint of an array in memory, to notice that it was changed.
//
// Guarantee  a change of one word of 8 bytes is always noticed, any other change missed
//            with probability about 2^-64; not for data that somebody chose on purpose
// Cost       a multiplication for 8 bytes in kLanes independent chains, so that memory
//            limits the speed. CRC-32C is 5 times as slow without wide products.
// Value      for comparisons in one process, as it depends on the byte order
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dualgap {

inline std::uint64_t fingerprint(const std::uint8_t *at, std::size_t size) {
  constexpr std::size_t kLanes = 32;
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
  // Every bit of x reaches a bit below the 32nd, from where the product spreads it over
  // at least half of the word.
  const auto mixed = [](std::uint64_t state, std::uint64_t word) {
    const std::uint64_t x = state ^ word;
    return (x ^ x >> 32) * kOdd;
  };
  const auto spread = [&](std::uint64_t x) { return mixed(mixed(x, 0), 0); };
  std::uint64_t state[kLanes], words[kLanes];
  for (std::size_t l = 0; l < kLanes; ++l) state[l] = l;
  std::uint64_t sum = size;
  for (; size >= sizeof words; at += sizeof words, size -= sizeof words) {
    std::memcpy(words, at, sizeof words);
    for (std::size_t l = 0; l < kLanes; ++l) state[l] = mixed(state[l], words[l]);
  }
  for (; size > 0;) {
    const std::size_t some = size < 8 ? size : 8;
    std::uint64_t word = 0;
    std::memcpy(&word, at, some);
    sum = spread(mixed(sum, word));
    at += some;
    size -= some;
  }
  for (const std::uint64_t lane : state) sum = spread(mixed(sum, spread(lane)));
  return sum;
}

}  // namespace dualgap
