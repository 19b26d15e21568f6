// Checks CRC-32C against its definition, bit by bit: the tables, the instruction and
// the products of 512 bits, whichever of them the level that this is compiled for has.
//
//     c++ -std=c++20 -Isrc/io tests/core/checksums.cpp -o checksums && ./checksums
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "checksum.hpp"

using namespace dualgap::checksum;

namespace {

std::uint32_t by_definition(const std::uint8_t *at, std::size_t size,
                            std::uint32_t before) {
  std::uint32_t remainder = ~before;
  for (std::size_t k = 0; k < size; ++k) {
    remainder ^= at[k];
    for (int bit = 0; bit < 8; ++bit)
      remainder = remainder >> 1 ^ (remainder & 1 ? 0x82F63B78u : 0u);
  }
  return ~remainder;
}

void expect(std::uint32_t found, std::uint32_t wanted, const char *what) {
  if (found == wanted) return;
  std::printf("%s: %08x instead of %08x\n", what, found, wanted);
  std::exit(1);
}

}  // namespace

int main() {
  const char *digits = "123456789";  // RFC 3720 and catalogues of checksums
  std::vector<std::uint8_t> data(digits, digits + std::strlen(digits));
  expect(by_definition(data.data(), data.size(), 0), 0xE3069283u, "the definition");

  std::uint32_t state = 1;
  data.clear();
  for (int k = 0; k < 1003; ++k) {
    state = state * 1664525u + 1013904223u;
    data.push_back(static_cast<std::uint8_t>(state >> 24));
  }
  expect(~add_word_by_tables(~0u, data.data()), by_definition(data.data(), 8, 0),
         "tables");
  for (std::size_t size = 0; size <= data.size(); ++size) {
    const std::uint8_t *at = data.data() + data.size() - size;  // any alignment
    for (const std::uint32_t before : {0u, 0xDEADBEEFu}) {
      const std::uint32_t wanted = by_definition(at, size, before);
      expect(crc32c(at, size, before), wanted, "crc32c");
      expect(crc32c_fast(at, size, before), wanted, "crc32c_fast");
    }
  }
  for (const std::size_t segment : {7, 100, 256, 2000}) {
    std::vector<std::uint32_t> lanes(data.size() / segment + 1), fast = lanes;
    crc32c_lanes(data.data(), data.size(), segment, lanes.data());
    crc32c_segments(data.data(), data.size(), segment, fast.data());
    for (std::size_t k = 0; k < lanes.size(); ++k) {
      const std::size_t first = k * segment, left = data.size() - first;
      const std::uint32_t wanted =
          by_definition(data.data() + first, left < segment ? left : segment, 0);
      expect(lanes[k], wanted, "crc32c_lanes");
      expect(fast[k], wanted, "crc32c_segments");
    }
  }
  std::printf("every checksum is right\n");
}
