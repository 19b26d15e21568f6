// xoshiro256++ (Blackman and Vigna), seeded by splitmix64. A seed gives the same
// visiting orders on every machine, and there is no global state.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "rows.hpp"

namespace dualgap {

class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (auto &word : state_) {
      seed += 0x9e3779b97f4a7c15ULL;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
      word = z ^ (z >> 31);
    }
  }

  std::array<std::uint64_t, 4> state() const { return state_; }
  void set_state(const std::array<std::uint64_t, 4> &state) { state_ = state; }

  std::uint64_t next() {
    const std::uint64_t result = rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }

  // Returns a uniform number in [0, n) for n < 2^32, without bias (Lemire 2019).
  std::uint32_t below(std::uint32_t n) {
    std::uint64_t product = (next() >> 32) * n;
    if (static_cast<std::uint32_t>(product) < n) {
      const std::uint32_t floor = (0u - n) % n;
      while (static_cast<std::uint32_t>(product) < floor) product = (next() >> 32) * n;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

  // Fisher-Yates shuffle.
  void shuffle(Order *order, Index m) {
    for (Index i = m - 1; i > 0; --i)
      std::swap(order[i], order[below(static_cast<std::uint32_t>(i + 1))]);
  }

  void draw(Order *order, Index m, std::uint32_t n) {
    for (Index i = 0; i < m; ++i) order[i] = below(n);
  }

 private:
  static std::uint64_t rotl(std::uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
  }
  std::array<std::uint64_t, 4> state_;
};

}  // namespace dualgap
