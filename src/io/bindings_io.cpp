// Bindings of the text readers and of the file checksums. Arrays are returned without a
// copy: NumPy gets the memory and a capsule that frees it.

#include <vector>

#include "../core/bindings.hpp"
#include "checksum.hpp"
#include "fingerprint.hpp"
#include "svmlight.hpp"

namespace checksum = dualgap::checksum;
namespace svmlight = dualgap::svmlight;

namespace {

namespace nb = nanobind;
using dualgap::NewArray;
using Bytes =
    nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
NewArray<T> to_numpy(svmlight::Array<T> &array) {
  const std::size_t size = array.size();
  T *const data = array.data();
  nb::capsule owner(data, [](void *p) noexcept { std::free(p); });
  (void)array.release();
  return NewArray<T>({data, {size}, owner});
}

// The arrays of parsed text.
struct Parsed {
  NewArray<double> labels;
  nb::object values, indices, indptr;
  NewArray<std::int64_t> qid;
  std::int64_t n_features;
};

template <class Value, class Index>
Parsed parse_as(std::string_view text, const svmlight::Options &options) {
  const auto interrupted = [] {
    nb::gil_scoped_acquire held;
    return PyErr_CheckSignals() != 0;  // the exception stays set
  };
  svmlight::Table<Value, Index> table;
  try {
    nb::gil_scoped_release released;
    table = svmlight::parse<Value, Index>(text, options, interrupted);
  } catch (const svmlight::Interrupted &) {
    throw nb::python_error();
  } catch (const svmlight::Malformed &malformed) {
    throw nb::value_error(malformed.what());
  }
  return {to_numpy(table.labels), to_numpy(table.values), to_numpy(table.indices),
          to_numpy(table.indptr), to_numpy(table.qid),    table.n_features};
}

template <class Value>
Parsed parse_values(std::string_view text, const svmlight::Options &options,
                    bool wide) {
  if (!wide) {
    try {
      return parse_as<Value, std::int32_t>(text, options);
    } catch (const svmlight::IndexTooNarrow &) {  // rare, so a second parse is fine
    }
  }
  return parse_as<Value, std::int64_t>(text, options);
}

}  // namespace

namespace dualgap {

using namespace nb::literals;

void bind_io(nb::module_ &m) {
  nb::class_<Parsed>(m, "ParsedSvmlight", "Arrays of parsed svmlight text.")
      .def_ro("labels", &Parsed::labels)
      .def_ro(
          "values", &Parsed::values,
          nb::for_getter(nb::sig(
              "def values(self) -> NDArray[numpy.float32] | NDArray[numpy.float64]")))
      .def_ro("indices", &Parsed::indices,
              nb::for_getter(nb::sig(
                  "def indices(self) -> NDArray[numpy.int32] | NDArray[numpy.int64]")))
      .def_ro("indptr", &Parsed::indptr,
              nb::for_getter(nb::sig(
                  "def indptr(self) -> NDArray[numpy.int32] | NDArray[numpy.int64]")))
      .def_ro("qid", &Parsed::qid)
      .def_ro("n_features", &Parsed::n_features);
  m.def(
      "parse_svmlight",
      [](Bytes buffer, int n_threads, std::optional<bool> zero_based, bool query_id,
         bool single_precision, bool wide_index) {
        svmlight::Options options;
        if (zero_based)
          options.base = *zero_based ? svmlight::Base::zero : svmlight::Base::one;
        options.query_id = query_id;
        if (n_threads < 1) throw nb::value_error("n_threads must be at least 1");
        options.threads = n_threads;
        const std::string_view text(reinterpret_cast<const char *>(buffer.data()),
                                    buffer.size());
        return single_precision ? parse_values<float>(text, options, wide_index)
                                : parse_values<double>(text, options, wide_index);
      },
      nb::arg("buffer"), nb::arg("n_threads"), nb::arg("zero_based").none(),
      nb::arg("query_id"), nb::arg("single_precision"), nb::arg("wide_index"),
      "Parse svmlight text.\n\n"
      "zero_based None detects where indices start. ValueError names line and column "
      "of the first malformed line. Indices are int32 unless wide_index is set or "
      "the text needs int64.");
  m.def(
      "crc32c",
      [](Bytes data, std::uint32_t before) {
        nb::gil_scoped_release released;
        return checksum::crc32c_fast(data.data(), data.size(), before);
      },
      "data"_a.noconvert(), "before"_a = 0,
      "CRC-32C of bytes that follow those whose CRC-32C is `before`.");
  m.def(
      "fingerprint",
      [](Bytes data) {
        nb::gil_scoped_release released;
        return dualgap::fingerprint(data.data(), data.size());
      },
      "data"_a.noconvert(), "64-bit hash, for comparisons in one process.");
  m.def(
      "crc32c_segments",
      [](Bytes data, std::size_t segment) {
        if (segment == 0) throw nb::value_error("segment must be at least 1");
        const std::size_t size = data.size();
        auto *sums =
            new std::vector<std::uint32_t>(size / segment + (size % segment != 0));
        nb::capsule owner(sums, [](void *p) noexcept {
          delete static_cast<std::vector<std::uint32_t> *>(p);
        });
        {
          nb::gil_scoped_release released;
          checksum::crc32c_segments(data.data(), size, segment, sums->data());
        }
        return NewArray<std::uint32_t>({sums->data(), {sums->size()}, owner});
      },
      "data"_a.noconvert(), "segment"_a,
      "CRC-32C of consecutive segments of bytes; the last one may be shorter.");
}

}  // namespace dualgap
