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
// in the file. decimal.hpp reads numbers.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "malformed.hpp"

namespace dualgap::svmlight {

enum class Base { zero, one, detect };  // the first feature's index in the file

struct Options {
  Base base = Base::detect;
  bool query_id = false;  // return the qids (and demand one of every example)
  int threads = 1;
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
inline void run_pieces(std::size_t n, int threads, std::atomic<bool> &stop,
                       const std::function<bool()> &interrupted,
                       const std::function<void(std::size_t)> &work) {
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
