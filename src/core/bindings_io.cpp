// Python face of the text readers. Arrays leave without a copy: numpy gets the memory
// and a capsule that frees it.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "svmlight.hpp"

namespace nb = nanobind;
namespace svmlight = dualgap::svmlight;

namespace {

template <class T>
nb::object to_numpy(svmlight::Array<T> &array) {
  const std::size_t size = array.size();
  T *const data = array.data();
  nb::capsule owner(data, [](void *p) noexcept { std::free(p); });
  (void)array.release();
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

template <class Value, class Index>
nb::tuple parse_as(std::string_view text, const svmlight::Options &options) {
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
  return nb::make_tuple(to_numpy(table.labels), to_numpy(table.values),
                        to_numpy(table.indices), to_numpy(table.indptr),
                        to_numpy(table.qid), table.n_features);
}

template <class Value>
nb::tuple parse_values(std::string_view text, const svmlight::Options &options,
                       bool wide) {
  if (!wide) {
    try {
      return parse_as<Value, std::int32_t>(text, options);
    } catch (const svmlight::IndexTooNarrow &) {  // rare, so worth a second parse
    }
  }
  return parse_as<Value, std::int64_t>(text, options);
}

}  // namespace

namespace dualgap {

void bind_io(nb::module_ &m) {
  m.def(
      "parse_svmlight",
      [](nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>
             buffer,
         int n_threads, nb::object zero_based, bool query_id, bool single_precision,
         bool wide_index) {
        svmlight::Options options;
        if (!zero_based.is_none())
          options.base =
              nb::cast<bool>(zero_based) ? svmlight::Base::zero : svmlight::Base::one;
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
      "Parse svmlight text: (labels, values, indices, indptr, qid, n_features).\n\n"
      "zero_based None detects where indices start. ValueError names line and column "
      "of the first malformed line. Indices are int32 unless wide_index is set or "
      "the text needs int64.");
}

}  // namespace dualgap
