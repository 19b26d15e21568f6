// libFuzzer's way into the svmlight parser: `make fuzz` builds and runs it.
//
// The first byte chooses options, the rest is text. Beside what the sanitizers see, an
// answer has to be whole: pointers that rise from 0 to the number of entries, indices
// that rise inside every row and stay below n_features, finite values; and the same
// for either width of index, and for text that is one piece or many.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "../../src/io/svmlight.hpp"

namespace svmlight = dualgap::svmlight;

namespace {

void require(bool holds, const char *what) {
  if (holds) return;
  std::fprintf(stderr, "the answer is not whole: %s\n", what);
  std::abort();
}

template <class Value, class Index>
struct Answer {
  std::optional<svmlight::Table<Value, Index>> table;
  std::string error;
  bool narrow = false;
};

template <class Value, class Index>
Answer<Value, Index> parse(std::string_view text, const svmlight::Options &options) {
  Answer<Value, Index> answer;
  try {
    answer.table = svmlight::parse<Value, Index>(text, options, [] { return false; });
  } catch (const svmlight::Malformed &malformed) {
    answer.error = malformed.what();
    require(answer.error.rfind("line ", 0) == 0, "an error without its place");
  } catch (const svmlight::IndexTooNarrow &) {
    answer.narrow = true;
  }
  return answer;
}

template <class Value, class Index>
void check(const svmlight::Table<Value, Index> &table, bool query_id) {
  const std::size_t rows = table.labels.size(), entries = table.values.size();
  require(table.indptr.size() == rows + 1, "number of pointers");
  require(table.indices.size() == entries, "number of indices");
  require(table.qid.size() == (query_id ? rows : 0), "number of qids");
  require(table.indptr[0] == 0, "first pointer");
  for (std::size_t i = 0; i < rows; ++i) {
    require(std::isfinite(table.labels[i]), "a label");
    require(table.indptr[i] <= table.indptr[i + 1], "pointers fall");
    for (auto k = table.indptr[i]; k < table.indptr[i + 1]; ++k) {
      require(table.indices[k] >= 0 && table.indices[k] < table.n_features, "an index");
      require(k == table.indptr[i] || table.indices[k - 1] < table.indices[k],
              "indices fall");
      require(std::isfinite(table.values[k]), "a value");
    }
  }
  require(static_cast<std::size_t>(table.indptr[rows]) == entries, "last pointer");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0) return 0;
  svmlight::Options options;
  const svmlight::Base bases[] = {svmlight::Base::zero, svmlight::Base::one,
                                  svmlight::Base::detect, svmlight::Base::detect};
  options.base = bases[data[0] & 3];
  options.query_id = data[0] & 4;
  const std::string_view text(reinterpret_cast<const char *>(data) + 1, size - 1);
  const auto wide = parse<double, std::int64_t>(text, options);
  if (wide.table) check(*wide.table, options.query_id);
  const auto narrow = parse<float, std::int32_t>(text, options);
  if (narrow.table) {
    check(*narrow.table, options.query_id);
    require(wide.table && wide.table->n_features == narrow.table->n_features,
            "widths differ");
    for (std::size_t k = 0; k < narrow.table->values.size(); ++k)
      require(narrow.table->indices[k] == wide.table->indices[k] &&
                  narrow.table->values[k] == static_cast<float>(wide.table->values[k]),
              "entries differ");
  }
  return 0;
}
