// Decimal numbers of a text, read to the nearest double.
//
// A word of 8 bytes converts a run of up to 8 digits without a branch per digit. If the
// decimal mantissa is at most 2^53 and the power of ten at most 22 in magnitude, both
// are exact doubles, and one multiplication or division gives the nearest double
// (Clinger, "How to read floating point numbers accurately", PLDI 1990, section 3). All
// other numbers use std::from_chars.
#pragma once

#include <array>
#include <bit>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>

// libc++ lacks std::from_chars for double. (The second macro is for testing the
// replacement with other libraries.)
#if defined(__cpp_lib_to_chars) && !defined(DUALGAP_NO_FROM_CHARS)
#define DUALGAP_FROM_CHARS 1
#else
#define DUALGAP_FROM_CHARS 0
#include <locale>
#include <sstream>
#endif

namespace dualgap::svmlight::detail {

// ---------------------------------------------------------------- characters

inline bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n');
}
inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool ends_token(char c) { return c == '\n' || is_blank(c) || c == '#'; }

// Bytes that load8 may read beyond the last '\n' of a piece.
inline constexpr std::size_t padding = 8;

inline std::uint64_t load8(const char *p) {
  std::uint64_t w;
  std::memcpy(&w, p, 8);
  if constexpr (std::endian::native == std::endian::big) {
    std::uint64_t reversed = 0;
    for (int i = 0; i < 8; ++i, w >>= 8) reversed = reversed << 8 | (w & 0xFF);
    w = reversed;
  }
  return w;
}

// The run of at most 8 digits at p.
struct Digits {
  int count;
  std::uint32_t value;
};

inline Digits digits8(const char *p) {
  // Digits become the bytes 0..9; adding 0x76 sets the high bit of any larger one.
  std::uint64_t w = load8(p) ^ 0x3030303030303030;
  const std::uint64_t other = (((w + 0x7676767676767676) | w) & 0x8080808080808080);
  const int count = std::countr_zero(other) >> 3;  // 8 when there is none
  // Shift the digits to the top and zeros in below; the first digit is the lowest byte.
  // Two shifts, because a shift by 64 bits (count 0) is undefined.
  w = w << (4 * (8 - count)) << (4 * (8 - count));
  w = w * 10 + (w >> 8);
  w = ((w & 0x000000FF000000FF) * 0x000F424000000064 +
       ((w >> 16) & 0x000000FF000000FF) * 0x0000271000000001) >>
      32;
  return {count, static_cast<std::uint32_t>(w)};
}

inline constexpr std::array<std::uint64_t, 9> integer_powers = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// Append the digits at p to mantissa (which wraps beyond 19 digits) and return their
// end.
inline const char *read_digits(const char *p, std::uint64_t &mantissa) {
  for (;;) {
    const Digits d = digits8(p);
    mantissa = mantissa * integer_powers[d.count] + d.value;
    p += d.count;
    if (d.count < 8) return p;
  }
}

// ------------------------------------------------------------------- numbers

inline constexpr std::array<double, 23> exact_powers = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Return the double nearest to the decimal text [p, end), which follows the grammar and
// has no sign. Return infinity above the range of double, and zero below it.
inline double nearest_double(const char *p, const char *end, std::int64_t exponent) {
  double value = 0;
#if DUALGAP_FROM_CHARS
  if (std::from_chars(p, end, value).ec != std::errc::result_out_of_range) return value;
  // Too large or too small? Find the decimal exponent of the first non-zero digit.
  const char *first = p;
  while (*first == '0' || *first == '.') ++first;
  const char *point = p;
  while (is_digit(*point)) ++point;
  const std::int64_t shift = point > first ? point - first - 1 : point - first;
  return shift + exponent > 0 ? HUGE_VAL : 0.0;
#else
  (void)exponent;
  std::istringstream stream(std::string(p, end));
  stream.imbue(std::locale::classic());
  stream >> value;
  // Libraries differ in whether they flag subnormal results and in whether an
  // overflow gives the largest double or infinity; all leave the value.
  if (stream.fail() && value == DBL_MAX) value = HUGE_VAL;
  return value;
#endif
}

// Read a number at p. Returns its end, or nullptr if there is none.
inline const char *read_number(const char *p, double &value) {
  const bool negative = *p == '-';
  p += negative || *p == '+';
  const char *const first = p;
  std::uint64_t mantissa = 0;
  // Integer parts are mostly short and of similar length, so this loop is predicted
  // well.
  for (; is_digit(*p); ++p) mantissa = mantissa * 10 + static_cast<unsigned>(*p - '0');
  std::int64_t n_digits = p - first;
  std::int64_t exponent = 0;
  if (*p == '.') {
    const char *const fraction = ++p;
    p = read_digits(p, mantissa);
    exponent = fraction - p;
    n_digits -= exponent;
  }
  if (n_digits == 0) return nullptr;
  std::int64_t written = 0;  // the exponent as written
  if (*p == 'e' || *p == 'E') {
    ++p;
    const bool down = *p == '-';
    p += down || *p == '+';
    if (!is_digit(*p)) return nullptr;
    for (; is_digit(*p); ++p)
      if (written < 1'000'000'000'000'000) written = written * 10 + (*p - '0');
    if (down) written = -written;
    exponent += written;
  }
  // With FLT_EVAL_METHOD other than 0 (x87) one operation would round twice.
  if (FLT_EVAL_METHOD == 0 && n_digits <= 19 && mantissa <= std::uint64_t{1} << 53 &&
      exponent >= -22 && exponent <= 22) {
    value = static_cast<double>(mantissa);
    if (exponent < 0)
      value /= exact_powers[static_cast<std::size_t>(-exponent)];
    else
      value *= exact_powers[static_cast<std::size_t>(exponent)];
  } else {
    value = nearest_double(first, p, written);
  }
  if (negative) value = -value;
  return p;
}

}  // namespace dualgap::svmlight::detail
