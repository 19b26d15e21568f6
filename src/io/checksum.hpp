// CRC-32C (Castagnoli), the checksum of the segments of row stores.
//
// Problem    the remainder of the bytes, as a polynomial over GF(2), modulo
//            0x11EDC6F41, with reflected bits, initial value and final xor 2^32 - 1
// Guarantee  any 1, 2 or 3 flipped bits and any burst of up to 32 bits change the
//            checksum, in segments of up to 2^28 bytes; other damage is missed with
//            probability 2^-32
// Cost       two carry-less products for 64 bytes with 512-bit products (VPCLMULQDQ);
//            else one instruction for 8 bytes (SSE 4.2, ARMv8 CRC), with kLanes
//            segments at a time to hide its latency; else 8 table look-ups for 8 bytes
// Source     Castagnoli, Brauer and Herrmann, IEEE Trans. Communications 41 (1993);
//            RFC 3720, appendix B.4. Tables: Kounavis and Berry, ISCC 2005. Products:
//            Gopal et al., Intel white paper 323102 (2009).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if (defined(__x86_64__) && defined(__SSE4_2__)) || defined(_M_X64)
#include <nmmintrin.h>
#define DUALGAP_CRC32C_X86
#if defined(__GNUC__) || defined(__clang__)
#if !defined(__clang__)
// GCC 12 warns about registers that its own header leaves undefined on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
#define DUALGAP_CRC32C_WIDE  // at every level; the processor is checked at run time
#endif
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define DUALGAP_CRC32C_ARM
#endif

namespace dualgap::checksum {

inline constexpr std::size_t kLanes = 4;

// kTables[k][b] is the remainder of byte b followed by k bytes of zeros.
inline constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t r = b;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ (r & 1 ? 0x82F63B78u : 0u);
    tables[0][b] = r;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t r = tables[k - 1][b];
      tables[k][b] = (r >> 8) ^ tables[0][r & 0xff];
    }
  return tables;
}();

inline std::uint32_t add_byte(std::uint32_t r, std::uint8_t byte) {
  return (r >> 8) ^ kTables[0][(r ^ byte) & 0xff];
}

// Adds eight bytes by tables, independent of the byte order of the machine.
inline std::uint32_t add_word_by_tables(std::uint32_t r, const std::uint8_t *at) {
  std::uint32_t sum = 0;
  for (std::size_t k = 0; k < 4; ++k)
    sum ^= kTables[7 - k][(at[k] ^ (r >> (8 * k))) & 0xff];
  for (std::size_t k = 4; k < 8; ++k) sum ^= kTables[7 - k][at[k]];
  return sum;
}

inline std::uint32_t add_word(std::uint32_t r, const std::uint8_t *at) {
#if defined(DUALGAP_CRC32C_X86)
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return static_cast<std::uint32_t>(_mm_crc32_u64(r, word));
#elif defined(DUALGAP_CRC32C_ARM)
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return __crc32cd(r, word);
#else
  return add_word_by_tables(r, at);
#endif
}

// Returns the checksum of the data with checksum `before` followed by these bytes.
inline std::uint32_t crc32c(const std::uint8_t *at, std::size_t size,
                            std::uint32_t before) {
  std::uint32_t r = ~before;
  for (; size >= 8; at += 8, size -= 8) r = add_word(r, at);
  for (; size > 0; ++at, --size) r = add_byte(r, *at);
  return ~r;
}

#if defined(DUALGAP_CRC32C_WIDE)

inline bool has_wide_products() {
  static const bool has =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
  return has;
}

// Returns x^n modulo the polynomial in the form for a product: reflected, in the upper
// half.
constexpr std::uint64_t power(int n) {
  std::uint32_t r = 1u << 31;
  for (; n > 0; --n) r = (r >> 1) ^ (r & 1 ? 0x82F63B78u : 0u);
  return static_cast<std::uint64_t>(r) << 32;
}

// Computes crc32c by folding: 128 bits L x^64 + H that lie D bits before others are
// replaced by L x^(64+D) + H x^D, added to the others. A product of reflected words has
// one factor x too many.
__attribute__((target("avx512f,vpclmulqdq,sse4.2"))) inline std::uint32_t crc32c_wide(
    const std::uint8_t *at, std::size_t size, std::uint32_t before) {
  constexpr std::size_t kStep = 256;  // bytes of four registers
  if (size < kStep) return crc32c(at, size, before);
  constexpr int kDistance = 8 * kStep;
  const __m512i k = _mm512_set4_epi64(static_cast<long long>(power(kDistance - 1)),
                                      static_cast<long long>(power(kDistance + 63)),
                                      static_cast<long long>(power(kDistance - 1)),
                                      static_cast<long long>(power(kDistance + 63)));
  alignas(64) std::uint64_t words[kStep / 8] = {~before};
  __m512i r[4];
  for (int j = 0; j < 4; ++j)
    r[j] = _mm512_xor_si512(_mm512_load_si512(words + 8 * j),
                            _mm512_loadu_si512(at + 64 * j));
  for (at += kStep, size -= kStep; size >= kStep; at += kStep, size -= kStep)
    for (int j = 0; j < 4; ++j) {
      const __m512i next = _mm512_loadu_si512(at + 64 * j);
      const __m512i low = _mm512_clmulepi64_epi128(r[j], k, 0x00);
      const __m512i high = _mm512_clmulepi64_epi128(r[j], k, 0x11);
      r[j] = _mm512_ternarylogic_epi64(low, high, next, 0x96);  // all three xor-ed
    }
  for (int j = 0; j < 4; ++j) _mm512_store_si512(words + 8 * j, r[j]);
  std::uint64_t sum = 0;
  for (const std::uint64_t word : words) sum = _mm_crc32_u64(sum, word);
  return crc32c(at, size, ~static_cast<std::uint32_t>(sum));
}

#endif

// Writes the checksums of consecutive segments, kLanes at a time. The last segment may
// be shorter.
inline void crc32c_lanes(const std::uint8_t *at, std::size_t size, std::size_t segment,
                         std::uint32_t *out) {
  for (; size >= kLanes * segment; at += kLanes * segment, size -= kLanes * segment) {
    std::array<std::uint32_t, kLanes> r;
    r.fill(~0u);
    std::size_t i = 0;
    for (; i + 8 <= segment; i += 8)
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        r[lane] = add_word(r[lane], at + lane * segment + i);
    for (; i < segment; ++i)
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        r[lane] = add_byte(r[lane], at[lane * segment + i]);
    for (const std::uint32_t lane : r) *out++ = ~lane;
  }
  for (std::size_t whole; size > 0; at += whole, size -= whole) {
    whole = size < segment ? size : segment;
    *out++ = crc32c(at, whole, 0);
  }
}

// crc32c and crc32c_lanes by the fastest instructions of this processor.
inline std::uint32_t crc32c_fast(const std::uint8_t *at, std::size_t size,
                                 std::uint32_t before) {
#if defined(DUALGAP_CRC32C_WIDE)
  if (has_wide_products()) return crc32c_wide(at, size, before);
#endif
  return crc32c(at, size, before);
}

inline void crc32c_segments(const std::uint8_t *at, std::size_t size,
                            std::size_t segment, std::uint32_t *out) {
#if defined(DUALGAP_CRC32C_WIDE)
  if (has_wide_products()) {
    for (std::size_t whole; size > 0; at += whole, size -= whole) {
      whole = size < segment ? size : segment;
      *out++ = crc32c_wide(at, whole, 0);
    }
    return;
  }
#endif
  crc32c_lanes(at, size, segment, out);
}

}  // namespace dualgap::checksum
