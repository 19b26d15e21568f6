// Threaded reader of svmlight / LIBSVM text into CSR arrays.
//
// Grammar (one example a line; blanks are space, \t, \r, \v, \f; lines end in \n):
//
//   line    = [label [qid] {feature}] ['#' any bytes]
//   label   = number                   feature = index ':' number
//   qid     = 'qid:' [sign] digits     index   = digits, strictly increasing
//   number  = [sign] (digits ['.' [digits]] | '.' digits) [('e'|'E') [sign] digits]
//
// Tokens are separated by blanks. A line without a token is not an example, the last
// line needs no '\n', and a '\r' before '\n' is a blank. The reader accepts what
// sklearn.datasets.load_svmlight_file accepts, except ambiguous text: numbers must be
// finite plain decimals (no nan, inf, 1_000), indices bare digits, every qid an
// integer, and with query_id every example must have a qid.
//
// The text is cut at line ends into pieces of about 1 MiB, which the threads take in
// order, in two passes:
//   1. Count '\n' and ':' in each piece. They bound its numbers of examples and
//      features (exactly, except for comments, blank lines and qids). Prefix sums then
//      give every piece its own place in the result.
//   2. Parse each piece into its place. If a piece has fewer examples or features than
//      its bound, the following pieces are moved down and the arrays shrunk.
//
// Guarantee: labels and values are the doubles nearest to the decimal text (the same
// bits as Python's float). Explicit zeros are kept. The arrays depend neither on the
// number of threads nor on the cut. No byte outside the text is read. Of several
// malformed lines the first in the file is reported. This requires the default rounding
// mode and a build without -ffast-math.
//
// Cost: O(bytes) time. Memory is the arrays plus O(pieces); no size depends on an index
// in the file. A word of 8 bytes converts a run of up to 8 digits without a branch per
// digit. If the decimal mantissa is at most 2^53 and the power of ten at most 22 in
// magnitude, both are exact doubles, and one multiplication or division gives the
// nearest double (Clinger, "How to read floating point numbers accurately", PLDI 1990,
// section 3). All other numbers use std::from_chars.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cfloat>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

// libc++ lacks std::from_chars for double. (The second macro is for testing the
// replacement with other libraries.)
#if defined(__cpp_lib_to_chars) && !defined(DUALGAP_NO_FROM_CHARS)
#define DUALGAP_FROM_CHARS 1
#else
#define DUALGAP_FROM_CHARS 0
#include <locale>
#include <sstream>
#endif

namespace dualgap::svmlight {

enum class Base { zero, one, detect };  // the first feature's index in the file

struct Options {
  Base base = Base::detect;
  bool query_id = false;  // return the qids (and demand one of every example)
  int threads = 1;
};

// The first malformed line; what() reads "line 3, column 7: expected ..., found ...".
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Index is too narrow for the file; the caller parses again with a wider one.
struct IndexTooNarrow {};
struct Interrupted {};

// An array from malloc. Unlike std::vector it is not filled with zeros, shrinks without
// a copy, and can be handed to another owner.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);
  struct Free {
    void operator()(T *p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> data_;
  std::size_t size_ = 0;

 public:
  Array() = default;
  explicit Array(std::size_t size) : size_(size) {
    if (size > std::numeric_limits<std::size_t>::max() / sizeof(T))
      throw std::bad_alloc();
    data_.reset(
        static_cast<T *>(std::malloc(std::max(size, std::size_t{1}) * sizeof(T))));
    if (!data_) throw std::bad_alloc();
  }
  void shrink(std::size_t size) {
    if (size == size_) return;
    size_ = size;
    const std::size_t bytes = std::max(size, std::size_t{1}) * sizeof(T);
    if (void *p = std::realloc(data_.get(), bytes)) {
      (void)data_.release();
      data_.reset(static_cast<T *>(p));
    }  // else keep the larger block
  }
  std::size_t size() const { return size_; }
  T *data() const { return data_.get(); }
  T &operator[](std::size_t i) const { return data_[i]; }
  T *release() { return data_.release(); }
};

template <class Value, class Index>
struct Table {
  Array<double> labels;
  Array<Value> values;
  Array<Index> indices;  // zero-based
  Array<Index> indptr;
  Array<std::int64_t> qid;      // empty unless Options::query_id
  std::int64_t n_features = 1;  // largest index + 1
};

namespace detail {

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

// ------------------------------------------------------------- malformed lines

enum class Fault : std::uint8_t {
  none,
  label,
  feature,
  colon,
  negative_index,
  zero_index,
  order,
  index_overflow,
  index_too_narrow,
  value,
  value_range,
  qid_missing,
  qid_place,
  qid_value,
};

inline std::string_view expected(Fault fault) {
  switch (fault) {
    case Fault::label:
      return "a label (a finite decimal number)";
    case Fault::feature:
      return "a feature <index>:<value> (the index in digits) or a comment";
    case Fault::colon:
      return "':' and a value after the index (<index>:<value>)";
    case Fault::negative_index:
      return "an index that is not negative";
    case Fault::zero_index:
      return "an index of at least 1, as zero_based=False says (zero_based=True or "
             "'auto' reads indices from 0)";
    case Fault::order:
      return "an index larger than the one before it (indices must be sorted and "
             "unique within a line)";
    case Fault::index_overflow:
      return "an index of at most 9223372036854775806";
    case Fault::value:
      return "a value (a finite decimal number)";
    case Fault::value_range:
      return "a value within the range of float32 (dtype=numpy.float64 has a wider "
             "one)";
    case Fault::qid_missing:
      return "'qid:<integer>' after the label, as query_id=True says (query_id=False "
             "reads lines without)";
    case Fault::qid_place:
      return "a feature <index>:<value> ('qid:' may stand only once, after the label)";
    case Fault::qid_value:
      return "an integer after 'qid:' (at most 64 bits)";
    case Fault::none:
    case Fault::index_too_narrow:
      break;
  }
  return "";
}

struct Failure {
  Fault fault = Fault::none;
  const char *line = nullptr;     // start of the malformed line
  const char *at = nullptr;       // start of the faulty token
  std::int64_t lines_before = 0;  // within the piece
};

// Return the token at p, shortened, with bytes outside printable ASCII as \xNN.
inline std::string quoted(const char *p) {
  constexpr std::ptrdiff_t longest = 40;
  if (*p == '\n' || *p == '#') return *p == '#' ? "a comment" : "the end of the line";
  std::string text = "'";
  const char *const start = p;
  for (; !ends_token(*p) && p - start < longest; ++p) {
    constexpr std::string_view hex = "0123456789abcdef";
    const auto c = static_cast<unsigned char>(*p);
    if (c > ' ' && c < 0x7F)
      text += *p;
    else
      (text += "\\x") += {hex[c >> 4], hex[c & 15]};
  }
  if (p == start) return "a blank";
  return text + (ends_token(*p) ? "'" : "...'");
}

inline Malformed describe(const Failure &failure, std::int64_t line) {
  std::string text = "line " + std::to_string(line) + ", column " +
                     std::to_string(failure.at - failure.line + 1) + ": expected ";
  text += expected(failure.fault);
  text += ", found " + quoted(failure.at);
  if (failure.fault == Fault::label) {
    const char *end = failure.at;
    while (!ends_token(*end)) ++end;
    const std::string_view token(failure.at,
                                 static_cast<std::size_t>(end - failure.at));
    while (*end != ':' && *end != '\n') ++end;
    const bool several = token.find(',') != token.npos;
    if (token.find(':') != token.npos)
      text +=
          "; put a label (0, say) before the features, and give weights of examples "
          "(label:weight) as sample_weight=...";
    else if (several && *end == ':')
      text +=
          "; several labels a line (multi-label) train LinearSVC in Python: read them "
          "with sklearn.datasets.load_svmlight_file(multilabel=True) and encode them "
          "with sklearn.preprocessing.MultiLabelBinarizer";
    else if (several)
      text +=
          "; of a table (CSV) make svmlight text with "
          "sklearn.datasets.dump_svmlight_file";
  }
  return Malformed(text);
}

// -------------------------------------------------------------------- threads

// A fuzzer needs many pieces in little text, and no threads.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
inline constexpr std::size_t piece_size = 24;
inline constexpr bool no_threads = true;
#else
inline constexpr std::size_t piece_size = std::size_t{1} << 20;
inline constexpr bool no_threads = false;
#endif

// Call work(0), ..., work(n - 1), started in this order, on up to `threads` threads.
// Meanwhile interrupted() is called on this thread every 20 ms. Once it returns true,
// `stop` is set, and Interrupted is thrown when all threads have returned.
template <class Work, class Poll>
void run_pieces(std::size_t n, int threads, std::atomic<bool> &stop, Poll &&interrupted,
                Work &&work) {
  std::atomic<std::size_t> next = 0;
  const auto loop = [&] {
    for (std::size_t k; !stop && (k = next.fetch_add(1)) < n;) work(k);
  };
  const std::size_t wanted =
      no_threads ? 0 : std::min(n, static_cast<std::size_t>(threads));
  if (no_threads) loop();
  std::vector<std::future<void>> workers;  // their destructors wait
  try {
    for (std::size_t t = 0; t < wanted; ++t)
      workers.push_back(std::async(std::launch::async, loop));
  } catch (const std::system_error &) {  // no more threads available: use fewer
    if (workers.empty()) loop();
  }
  for (auto &worker : workers)
    while (worker.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready)
      if (!stop && interrupted()) stop = true;
  for (auto &worker : workers) worker.get();
  if (stop) throw Interrupted();
}

// --------------------------------------------------------------------- pieces

struct Piece {
  const char *begin, *end;  // whole lines: end[-1] is '\n'
  std::int64_t lines = 0;   // '\n' in the piece
  std::int64_t colons = 0;
  // Its place in the result: sums of the counts above over the pieces before.
  std::int64_t row = 0, entry = 0;
  // Actual numbers of examples and features.
  std::int64_t rows = 0, entries = 0;
  std::int64_t largest = -1;  // index as written, less 1 unless Base::zero
  bool has_zero = false;      // index 0 as written
  Failure failure{};
};

// Cut the text into pieces. The last lines are copied to `tail`, which ends in '\n' and
// has the padding that load8 needs.
inline std::vector<Piece> cut(std::string_view text, std::string &tail) {
  const char *p = text.data();
  const std::size_t safe = text.size() > padding ? text.size() - padding : 0;
  const std::size_t last = text.substr(0, safe).rfind('\n');
  const char *const end = p + (last == text.npos ? 0 : last + 1);
  std::vector<Piece> pieces;
  while (p != end) {
    const char *q = end;
    if (static_cast<std::size_t>(end - p) > piece_size) {
      q = p + piece_size;
      q = static_cast<const char *>(
              std::memchr(q, '\n', static_cast<std::size_t>(end - q))) +
          1;
    }
    pieces.push_back({p, q});
    p = q;
  }
  tail.assign(end, text.data() + text.size());
  if (!tail.empty()) {
    if (tail.back() != '\n') tail += '\n';
    const std::size_t size = tail.size();
    tail.append(padding, '\0');
    pieces.push_back({tail.data(), tail.data() + size});
  }
  return pieces;
}

inline void count(Piece &piece, const std::atomic<bool> &stop) {
  const char *p = piece.begin;
  while (p != piece.end && !stop) {
    const auto n = std::min<std::ptrdiff_t>(piece.end - p, 1 << 16);
    std::int32_t lines = 0, colons = 0;  // narrow, for more lanes per vector
    for (std::ptrdiff_t i = 0; i < n; ++i) {
      lines += p[i] == '\n';
      colons += p[i] == ':';
    }
    piece.lines += lines;
    piece.colons += colons;
    p += n;
  }
}

// Parses one piece into its place in the table. A failure is stored in piece.failure.
template <class Value, class Index>
class PieceParser {
  Piece &piece_;
  const Table<Value, Index> &table_;
  const Options &options_;
  const std::atomic<bool> &stop_;
  const std::int64_t shift_;
  const char *line_ = nullptr;
  std::int64_t lines_before_ = 0;

  bool fail(Fault fault, const char *at) {
    piece_.failure = {fault, line_, at, lines_before_};
    return false;
  }

 public:
  PieceParser(Piece &piece, const Table<Value, Index> &table, const Options &options,
              const std::atomic<bool> &stop)
      : piece_(piece),
        table_(table),
        options_(options),
        stop_(stop),
        shift_(options.base == Base::zero ? 0 : 1) {}

  void operator()() {
    std::int64_t row = piece_.row;
    const char *p = piece_.begin;
    Value *value = table_.values.data() + piece_.entry;
    Index *index = table_.indices.data() + piece_.entry;
    for (; p != piece_.end && !stop_.load(std::memory_order_relaxed); ++p) {
      line_ = p;
      while (is_blank(*p)) ++p;
      if (*p != '\n' && *p != '#') {
        if (!head(p, row) || !features(p, value, index)) return;
        table_.indptr[++row] = static_cast<Index>(value - table_.values.data());
      }
      if (*p == '#')
        p = static_cast<const char *>(
            std::memchr(p, '\n', static_cast<std::size_t>(piece_.end - p)));
      ++lines_before_;
    }
    piece_.rows = row - piece_.row;
    piece_.entries = value - table_.values.data() - piece_.entry;
  }

 private:
  // Parses the label and the qid.
  bool head(const char *&p, std::int64_t row) {
    const char *const start = p;
    double label;
    p = read_number(p, label);
    if (!p || !ends_token(*p) || !std::isfinite(label))
      return fail(Fault::label, start);
    table_.labels[row] = label;
    while (is_blank(*p)) ++p;
    if (*p == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':') {
      const char *const sign = p + 4;
      const char *end = sign + (*sign == '-' || *sign == '+');
      while (is_digit(*end)) ++end;
      std::int64_t qid;
      const auto [stopped, error] = std::from_chars(sign + (*sign == '+'), end, qid);
      if (error != std::errc() || stopped != end || !ends_token(*end))
        return fail(Fault::qid_value, sign);
      if (options_.query_id) table_.qid[row] = qid;
      p = end;
    } else if (options_.query_id) {
      return fail(Fault::qid_missing, p);
    }
    return true;
  }

  bool features(const char *&p, Value *&value, Index *&index) {
    std::int64_t previous = -1;
    const char *check = p + piece_size;  // one line may be most of the file
    for (;;) {
      while (is_blank(*p)) ++p;
      const char *const start = p;
      const Digits digits = digits8(p);
      std::int64_t i = digits.value;
      p += digits.count;
      if (digits.count == 0) {
        if (*p == '\n' || *p == '#') break;
        return bad_feature(p);
      }
      if (digits.count == 8) {
        if (!long_index(p, i)) return fail(Fault::index_overflow, start);
        if (i > std::numeric_limits<Index>::max())
          return fail(Fault::index_too_narrow, start);
      }
      if (*p != ':') return fail(Fault::colon, p);
      if (i <= previous) return fail(Fault::order, start);
      if (previous < 0 && i == 0) {
        if (options_.base == Base::one) return fail(Fault::zero_index, start);
        piece_.has_zero = true;
      }
      previous = i;
      *index++ = static_cast<Index>(i - shift_);
      const char *const number = ++p;
      double x;
      p = read_number(p, x);
      if (!p || !ends_token(*p) || !std::isfinite(x)) return fail(Fault::value, number);
      *value = static_cast<Value>(x);
      if constexpr (!std::is_same_v<Value, double>)
        if (!std::isfinite(*value)) return fail(Fault::value_range, number);
      ++value;
      if (p > check) {
        if (stop_.load(std::memory_order_relaxed)) return true;
        check = p + piece_size;
      }
    }
    piece_.largest = std::max(piece_.largest, previous - shift_);
    return true;
  }

  // Parses the digits of an index after its first 8. Returns false if it is too large.
  static bool long_index(const char *&p, std::int64_t &i) {
    constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max() - 1;
    for (; is_digit(*p); ++p) {
      const int digit = *p - '0';
      if (i > (largest - digit) / 10) return false;
      i = i * 10 + digit;
    }
    return true;
  }

  bool bad_feature(const char *p) {
    if (p[0] == '-' && is_digit(p[1])) return fail(Fault::negative_index, p);
    if (p[0] == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':')
      return fail(Fault::qid_place, p);
    return fail(Fault::feature, p);
  }
};

// Close the gaps behind pieces that have fewer examples or features than counted.
template <class Value, class Index, class Poll>
void compact(const std::vector<Piece> &pieces, Table<Value, Index> &table,
             Poll &&interrupted) {
  std::int64_t row = 0, entry = 0, since_poll = 0;
  const auto move = [](auto &array, std::int64_t to, std::int64_t from,
                       std::int64_t n) {
    if (to != from && n > 0 && array.size() > 0)
      std::memmove(array.data() + to, array.data() + from,
                   static_cast<std::size_t>(n) * sizeof(array[0]));
  };
  for (const Piece &piece : pieces) {
    move(table.labels, row, piece.row, piece.rows);
    move(table.qid, row, piece.row, piece.rows);
    move(table.indices, entry, piece.entry, piece.entries);
    move(table.values, entry, piece.entry, piece.entries);
    move(table.indptr, row + 1, piece.row + 1, piece.rows);
    if (const auto gap = static_cast<Index>(piece.entry - entry); gap != 0)
      for (std::int64_t i = row + 1; i <= row + piece.rows; ++i) table.indptr[i] -= gap;
    row += piece.rows;
    entry += piece.entries;
    if (++since_poll % 64 == 0 && interrupted()) throw Interrupted();
  }
  table.labels.shrink(row);
  table.indptr.shrink(row + 1);
  table.indices.shrink(entry);
  table.values.shrink(entry);
  if (table.qid.size() > 0) table.qid.shrink(row);
}

}  // namespace detail

// Parse svmlight text. Throws Malformed, IndexTooNarrow (Index cannot hold an index or
// the number of features of the file), Interrupted (interrupted(), called on this
// thread, returned true) or std::bad_alloc.
template <class Value, class Index, class Poll>
Table<Value, Index> parse(std::string_view text, const Options &options,
                          Poll &&interrupted) {
  using namespace detail;
  std::string tail;
  std::vector<Piece> pieces = cut(text, tail);
  std::atomic<bool> stop = false;
  run_pieces(pieces.size(), options.threads, stop, interrupted,
             [&](std::size_t k) { count(pieces[k], stop); });

  std::int64_t rows = 0, entries = 0;
  for (Piece &piece : pieces) {
    piece.row = rows;
    piece.entry = entries;
    rows += piece.lines;
    entries += piece.colons;
  }
  if (entries > std::numeric_limits<Index>::max()) throw IndexTooNarrow();
  Table<Value, Index> table;
  table.labels = Array<double>(rows);
  table.values = Array<Value>(entries);
  table.indices = Array<Index>(entries);
  table.indptr = Array<Index>(rows + 1);
  table.indptr[0] = 0;
  if (options.query_id) table.qid = Array<std::int64_t>(rows);

  // Pieces start in order. When a piece fails, the pieces before it still run to their
  // end and the pieces after it are skipped, so the first failure is always found.
  std::atomic<std::size_t> failed = pieces.size();
  run_pieces(pieces.size(), options.threads, stop, interrupted, [&](std::size_t k) {
    if (k > failed) return;
    PieceParser<Value, Index>(pieces[k], table, options, stop)();
    if (pieces[k].failure.fault != Fault::none) failed = k;
  });
  for (const Piece &piece : pieces) {
    const Failure &failure = piece.failure;
    if (failure.fault == Fault::none) continue;
    if (failure.fault == Fault::index_too_narrow) throw IndexTooNarrow();
    throw describe(failure, piece.row + failure.lines_before + 1);
  }

  std::int64_t largest = -1;
  bool has_zero = false;
  for (const Piece &piece : pieces) {
    largest = std::max(largest, piece.largest);
    has_zero |= piece.has_zero;
  }
  if (largest + (options.base == Base::detect && has_zero) >=
      std::numeric_limits<Index>::max())
    throw IndexTooNarrow();
  // Base::detect reads indices as one-based until it sees a 0.
  if (options.base == Base::detect && has_zero) {
    ++largest;
    run_pieces(pieces.size(), options.threads, stop, interrupted, [&](std::size_t k) {
      Index *const index = table.indices.data() + pieces[k].entry;
      for (std::int64_t i = 0; i < pieces[k].entries; ++i) ++index[i];
    });
  }
  compact(pieces, table, interrupted);
  table.n_features = std::max<std::int64_t>(largest, 0) + 1;
  return table;
}

}  // namespace dualgap::svmlight
