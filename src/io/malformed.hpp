// What a line of a text lacks, for error messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "decimal.hpp"

namespace dualgap::svmlight {

// The first malformed line; what() reads "line 3, column 7: expected ..., found ...".
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

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

}  // namespace detail

}  // namespace dualgap::svmlight
