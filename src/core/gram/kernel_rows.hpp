// Kernel values of the points of a problem: rows, rows at some columns, and products
// with coefficients.
//
//   rows    k(x_i, x_j) for some i and all j, float32
//   cross   the same at columns that were packed before
//   times   sum_i c_i k(x_i, z_j) for all j or some, values in float32 or float64, sums
//           in float64
//
// Dense points are packed once into float32 panels, 4 d bytes each. Points with few
// entries stay where they are, and meet blocks of 32 queries (sparse_meeting.hpp).
//
// Where rows are `precise` every value is computed in float64 before it is rounded to
// float32: a product less two self products loses digits where points are far from
// the centre on the scale of the kernel. They may also be rows of K - 1, which is all
// that matters while coefficients sum to 0: where kernel values are all near 1, float32
// would hold little of what tells them apart.
//
// Cost: 2 d flops a value (2 nnz where sparse), and the exponential. Threads share the
// points; every value and sum is the work of one thread, in an order that does not
// depend on how many there are.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "../threads.hpp"
#include "sparse_meeting.hpp"

namespace dualgap {

template <class T>
std::vector<T> half_selves(const KernelMap &map, const Points &points, Team &team) {
  constexpr Index kWorth = 1000;  // points
  std::vector<T> h(static_cast<std::size_t>(points.n()));
  const Index parts = std::clamp<Index>(points.n() / kWorth, 1, team.shares());
  team.run(parts, points.n(), [&](Index, Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      points.half_self(i, map.scale, map.overlap(), &h[static_cast<std::size_t>(i)]);
  });
  return h;
}

// Points that are multiplied with coefficients of their own: those who(first), ...,
// who(first + count - 1), into sums of their own.
struct Part {
  Index first, count;
  double *const *sums;  // [outputs], room for targets.n() rounded up to panels
};

// Some points, or where `numbers` is null all `count` of them.
struct Some {
  const Order *numbers;
  Index count;
  Index operator()(Index j) const { return numbers ? numbers[j] : j; }
};

// For every part  sums[o][j] += sum_i coef[o * m + i] k(x_who(i), z_at(j)) of the m
// points `who`, values of type T. `postings`: of those z, if they are known. False: told
// to leave, sums not whole.
template <class T>
bool add_times(const KernelMap &map, bool dense, const Points &points, Some who,
               const double *coef, Index outputs, const std::vector<Part> &parts,
               const Points &targets, Some at, Team &team, Poll &poll,
               const Postings<T> *postings = nullptr) {
  const Index m = who.count, n = at.count, d = targets.d();
  const Index panels = (n + tile::kPanel - 1) / tile::kPanel;
  const Index width = dense ? tile::kRows : tile::kPanel;
  // Packed points at a time: targets are packed anew for the next ones.
  constexpr Index kBytes = 64 << 20;
  const Index bytes = static_cast<Index>(sizeof(T)) * std::max<Index>(d, 1);
  const Index chunk =
      dense ? std::max<Index>(1, kBytes / (bytes * width)) * width : tile::kPanel;

  struct Piece {
    Index first, count;
    double *const *sums;
    std::vector<T> coef;  // [group][output][width]
    Strips<T> strips;
  };
  std::vector<Piece> pieces;
  SharedPoll shared(poll);
  std::vector<T> h, rows;
  std::unique_ptr<const Postings<T>> own;
  if (!dense && !postings && SparseMeeting<T>::by_postings(targets)) {
    const auto features = std::make_shared<const Ranking>(targets);
    own = std::make_unique<const Postings<T>>(map, targets, features, at.numbers, n);
    postings = own.get();
  }
  if (!dense && !postings) h = half_selves<T>(map, targets, team);
  SparseMeeting<T> meeting(map, points, targets, at.numbers, n, h.data(), postings);

  // The pieces gathered so far meet all targets; a strip that came from far meets as
  // many panels as stay near.
  constexpr Index kNear = 1024 << 10;
  const Index together = std::max<Index>(1, kNear / (bytes * tile::kPanel));
  const auto meet_dense = [&](Index, Index begin, Index end) {
    Panels<T> near;
    std::vector<T> buffer;
    for (Index p = begin; p < end; p += together) {
      const Index first = p * tile::kPanel;
      const Index last = std::min(std::min(p + together, end) * tile::kPanel, n);
      pack(
          map, targets, last - first, [&](Index t) { return at(first + t); }, near,
          buffer);
      Index met = 0;
      tile::with_kernel<T>(map.shape, map.parameters, [&](const auto &kernel) {
        for (const Piece &piece : pieces) {
          const auto pass = [&](const auto &then_of) {
            for (Index s = 0; s < piece.strips.groups(); ++s)
              for (Index g = 0; g < near.groups(); ++g)
                tile::compute(piece.strips.values(s), near.values(g), d, kernel,
                              piece.strips.h(s), near.h(g),
                              then_of(piece.coef.data() + s * outputs * width,
                                      first + g * tile::kPanel));
          };
          if (outputs == 1)
            pass([&](const T *of, Index j) {
              return tile::AddTimes<T>{of, piece.sums[0] + j};
            });
          else
            pass([&](const T *of, Index j) {
              return tile::AddManyTimes<T>{of, outputs, piece.sums, j};
            });
          met += piece.count;
        }
      });
      if (shared(met * (d + 16) * near.groups())) return;
    }
  };
  const auto meet_sparse = [&](Index, Index begin, Index end) {
    tile::with_kernel<T>(map.sparse_shape(), map.parameters, [&](const auto &kernel) {
      meeting.meet(kernel, begin, end, shared,
                   [&](Index b, Index j, Index count, const T *values) {
                     const Piece &piece = pieces[static_cast<std::size_t>(b)];
                     for (Index o = 0; o < outputs; ++o)
                       for (Index t = 0; t < count; ++t)
                         piece.sums[o][j + t] += tile::dot(
                             piece.coef.data() + o * width, values + t * tile::kPanel);
                   });
    });
  };
  Index gathered = 0;
  const auto meet = [&] {
    const Index units = dense ? panels : meeting.units();
    const Index shares = std::max<Index>(1, std::min(team.shares(), units));
    if (dense)
      team.run(shares, units, meet_dense);
    else
      team.run(shares, units, meet_sparse);
    pieces.clear();
    meeting.clear();
    gathered = 0;
  };
  for (const Part &part : parts) {
    for (Index first = 0; first < part.count && !shared.leave(); first += chunk) {
      Piece piece{
          part.first + first, std::min(chunk, part.count - first), part.sums, {}, {}};
      const auto of = [&](Index t) { return who(piece.first + t); };
      const Index groups = (piece.count + width - 1) / width;
      piece.coef.assign(static_cast<std::size_t>(groups * outputs * width), T(0));
      for (Index o = 0; o < outputs; ++o)
        for (Index t = 0; t < piece.count; ++t)
          piece.coef[static_cast<std::size_t>((t / width * outputs + o) * width +
                                              t % width)] =
              static_cast<T>(coef[o * m + piece.first + t]);
      if (dense) {
        pack(map, points, piece.count, of, piece.strips, rows);
      } else {
        meeting.add(piece.count, of);
      }
      gathered += piece.count;
      pieces.push_back(std::move(piece));
      if (dense ? gathered >= chunk : meeting.blocks() == meeting.most()) meet();
    }
  }
  if (!pieces.empty() && !shared.leave()) meet();
  return !shared.leave();
}

// Rows of a kernel matrix, however they come about.
class RowSource {
 public:
  explicit RowSource(Index threads) : team_(std::max<Index>(threads, 1)) {}
  virtual ~RowSource() = default;
  virtual Index n() const = 0;
  // Entries of a row, with room to the end of the last panel.
  Index stride() const {
    return (n() + tile::kPanel - 1) / tile::kPanel * tile::kPanel;
  }
  // Those that share what is done with rows.
  Team &team() const { return team_; }
  // What computing a value costs, in additions of a value that is there.
  virtual double cost() const = 0;
  // out[t][j] <- k(x_who[t], x_j), t < m, j < n; out[t] has stride() entries. False:
  // told to leave, rows not whole.
  virtual bool rows(const Order *who, Index m, float *const *out, Poll &poll) const = 0;
  // The same in 16 bits, where all values are from 0 to 1.
  virtual bool fixed() const { return false; }
  virtual bool rows(const Order *, Index, simd::Fixed *const *, Poll &) const {
    throw std::logic_error("rows that are not from 0 to 1");
  }
  // out[t][s] <- k(x_who[t], x_columns[s]), s < many, to the bits that `rows` gives;
  // out[t] has room for `many` rounded up to panels.
  virtual bool cross(const Order *who, Index m, const Order *columns, Index many,
                     float *const *out, Poll &poll) const = 0;
  // sums_j += sum_t coef_t k(x_who[t], x_j); no row is stored.
  virtual bool add_rows(const Order *who, const double *coef, Index m, double *sums,
                        Poll &poll) const = 0;

 private:
  mutable Team team_;
};

class KernelRows final : public RowSource {
 public:
  KernelRows(std::unique_ptr<Points> points, KernelMap map, bool dense, Index threads)
      : RowSource(threads),
        points_(std::move(points)),
        map_(std::move(map)),
        dense_(dense),
        entries_(dense ? static_cast<double>(points_->d()) : points_->mean_entries()) {
    if (!dense_) {
      if (const auto *postings = postings_of<float>())
        h_.assign(postings->h(), postings->h() + n());
      else
        h_ = half_selves<float>(map_, *points_, team());
      return;
    }
    map_.centre_on(*points_);
    std::vector<float> row;
    pack(map_, *points_, n(), [](Index t) { return t; }, panels_, row);
  }

  Index n() const override { return points_->n(); }
  const Points &points() const { return *points_; }
  const KernelMap &map() const { return map_; }
  bool dense() const { return dense_; }
  bool precise() const { return precise_; }
  void set_precise(bool precise) { precise_ = precise; }
  // Whether precise rows of the exponential and Laplacian kernels are those of K - 1.
  bool shifted() const { return shifted_; }
  void set_shifted(bool shifted) { shifted_ = shifted; }
  // Largest h: a value of the exponential kernel is off by about h 2^-23 of itself.
  double largest_half_self() const {
    double largest = 0.0;
    if (!dense_)
      for (const float h : h_) largest = std::max(largest, static_cast<double>(h));
    for (Index g = 0; dense_ && g < panels_.groups(); ++g)
      for (Index t = 0; t < panels_.count(g); ++t)
        largest = std::max(largest, static_cast<double>(panels_.h(g)[t]));
    return largest;
  }

  double cost() const override {
    return 1.0 + (precise_ ? 3.0 : 1.0) * entries_ / (dense_ ? 25.0 : 6.0);
  }

  bool rows(const Order *who, Index m, float *const *out, Poll &poll) const override {
    return precise_ ? rows_of<double>(who, m, nullptr, n(), out, poll)
                    : rows_of<float>(who, m, nullptr, n(), out, poll);
  }

  // Not those of K - 1, nor any that are worth more than float32.
  bool fixed() const override {
    return !precise_ && (map_.shape == tile::Shape::kExponential ||
                         map_.shape == tile::Shape::kLaplacian);
  }
  bool rows(const Order *who, Index m, simd::Fixed *const *out,
            Poll &poll) const override {
    return rows_of<float>(who, m, nullptr, n(), out, poll);
  }

  bool cross(const Order *who, Index m, const Order *columns, Index many,
             float *const *out, Poll &poll) const override {
    return precise_ ? rows_of<double>(who, m, columns, many, out, poll)
                    : rows_of<float>(who, m, columns, many, out, poll);
  }

  bool add_rows(const Order *who, const double *coef, Index m, double *sums,
                Poll &poll) const override {
    return add_rows(who, coef, m, {nullptr, n()}, sums, poll);
  }
  // The same at some rows j; `sums` has room for them rounded up to panels.
  bool add_rows(const Order *who, const double *coef, Index m, Some at, double *sums,
                Poll &poll) const {
    KernelMap map = map_;
    map.parameters = row_parameters();
    return precise_ ? add_at<double>(map, who, coef, m, at, sums, poll)
                    : add_at<float>(map, who, coef, m, at, sums, poll);
  }

  // sums_j += sum_t coef_t k(x_who[t], x_at(j)) in float64; room as above.
  bool times(const Order *who, const double *coef, Index m, Some at, double *sums,
             Poll &poll) const {
    return add_at<double>(map_, who, coef, m, at, sums, poll);
  }

  // errors_i >= |k - k(x_i, x_j)| for the value k of `rows` and any j, and what adding
  // products of these values to a sum may cost; infinity where no bound is known.
  // `fixed`: of values held in 16 bits.
  //
  // With A = ||a|| = sqrt(2 h) of the scaled point a, b another one, r = ||a - b|| and
  // u = 2^-24, k = 2^t, t = -r^2/2, is computed as 2^(s - h_a - h_b):
  //   s    is off by u (sum_k |s_k| + 3 A B), for its partial sums s_k and the rounding
  //        of its entries and, without FMA, of products. |s_k| is at most the product
  //        of the norms of the first k entries, so that sum_k |s_k| <= d p_a p_b A B,
  //        d p_a^2 A^2 being the sum of the squares of these norms. Sparse: for
  //        d p_a p_b the additions that a term passes
  //   h    by what the same sum in float64 says
  //   t    by u (2 |t| + max(h_a, h_b)) more, from two subtractions.
  // B <= A + r, and what r does is paid for by k: r k <= 0.73, |t| k <= 0.54.
  void errors(bool fixed, double *errors) const {
    constexpr double kUnit = 0x1p-24;
    // Of 2^t, its own; of a product, a sum of up to 12 or 32 of them, and its sum.
    constexpr double kPower = 3.0, kDense = 16.0, kSparse = 40.0;
    const double adding = (dense_ ? kDense : kSparse) * kUnit;
    const bool known = map_.shape == tile::Shape::kExponential;
    if (precise_ || !known) {  // precise ones have been rounded once
      std::fill_n(errors, n(),
                  known ? kUnit + adding : std::numeric_limits<double>::infinity());
      return;
    }
    const Selves exact = exact_selves();
    const double spread = *std::max_element(exact.spread.begin(), exact.spread.end());
    double largest = 0.0;
    for (Index i = 0; i < n(); ++i) {
      errors[i] = std::abs(half_self(i) - exact.h[static_cast<std::size_t>(i)]);
      largest = std::max(largest, errors[i]);
    }
    for (Index i = 0; i < n(); ++i) {
      const double h = exact.h[static_cast<std::size_t>(i)];
      const double own = exact.spread[static_cast<std::size_t>(i)];
      const double added = 3.0 + (dense_ ? own * spread : own);
      const double more = 0.73 * std::sqrt(2.0 * h);
      const double exponent =
          kUnit * (added * (2.0 * h + more) + h + more + 1.62) + errors[i] + largest;
      // 2^x - 1 <= 0.74 x up to 0.18. `exponent` is k times the error x of t, and where
      // it is so small x is, wherever k is not next to 0.
      constexpr double kMost = 0.02, kSlope = 0.74;
      errors[i] = exponent <= kMost ? kSlope * exponent + kPower * kUnit + adding
                                    : std::numeric_limits<double>::infinity();
      if (fixed) errors[i] += 0.51 / static_cast<double>(simd::kFixed);
    }
  }

 private:
  static constexpr Index kLongest = 16;  // panels

  template <class T>
  bool add_at(const KernelMap &map, const Order *who, const double *coef, Index m,
              Some at, double *sums, Poll &poll) const {
    const Postings<T> *postings = postings_of<T>();
    std::unique_ptr<const Postings<T>> some;
    if (postings && at.numbers) {
      some = std::make_unique<const Postings<T>>(map, *points_, postings->features(),
                                                 at.numbers, at.count);
      postings = some.get();
    }
    return add_times<T>(map, dense_, *points_, {who, m}, coef, 1, {{0, m, &sums}},
                        *points_, at, team(), poll, postings);
  }

  // Values at some columns, or at all n where `columns` is null.
  template <class T, class Value>
  bool rows_of(const Order *who, Index m, const Order *columns, Index many,
               Value *const *out, Poll &poll) const {
    return dense_ ? dense_rows<T>(who, m, columns, many, out, poll)
                  : sparse_rows<T>(who, m, columns, many, out, poll);
  }

  template <class T, class Value>
  bool dense_rows(const Order *who, Index m, const Order *columns, Index many,
                  Value *const *out, Poll &poll) const {
    constexpr Index kWidth = tile::kRows;
    const Index d = points_->d();
    const Index panels = (many + tile::kPanel - 1) / tile::kPanel;
    // Packed queries that leave the panel its place in the second level of cache;
    // panels that are packed anew each time meet more of them.
    const bool stored = std::is_same_v<T, float> && !columns;
    const Index most = stored ? 384 << 10 : 16 << 20;
    const Index bytes = static_cast<Index>(sizeof(T)) * kWidth * std::max<Index>(d, 1);
    const Index chunk = std::max<Index>(1, most / bytes) * kWidth;
    // Panels that a strip meets one after the other, so that rows are written in long
    // pieces: memory is slower than the tile where d is small.
    constexpr Index kNear = 64 << 10;
    const Index together = std::clamp<Index>(
        kNear / (static_cast<Index>(sizeof(T)) * tile::kPanel * std::max<Index>(d, 1)),
        1, kLongest);
    Strips<T> strips;
    std::vector<T> row;
    std::vector<Value> nowhere(static_cast<std::size_t>(panels * tile::kPanel));
    SharedPoll shared(poll);
    const tile::Parameters parameters = row_parameters();
    for (Index first = 0; first < m && !shared.leave(); first += chunk) {
      const Index some = std::min(chunk, m - first);
      pack(map_, *points_, some, [&](Index t) { return who[first + t]; }, strips, row);
      const auto meet = [&](Index, Index begin, Index end) {
        Panels<T> own;
        std::vector<T> buffer;
        Value *to[kWidth];
        for (Index p = begin; p < end; p += together) {
          const Index last = std::min(p + together, end);
          const T *panel[kLongest], *h[kLongest];
          if (!stored)
            pack(
                map_, *points_, std::min(last * tile::kPanel, many) - p * tile::kPanel,
                [&](Index t) {
                  const Index j = p * tile::kPanel + t;
                  return columns ? columns[j] : j;
                },
                own, buffer);
          for (Index g = p; g < last; ++g) {
            if constexpr (std::is_same_v<T, float>) {
              panel[g - p] = stored ? panels_.values(g) : own.values(g - p);
              h[g - p] = stored ? panels_.h(g) : own.h(g - p);
            } else {
              panel[g - p] = own.values(g - p);
              h[g - p] = own.h(g - p);
            }
          }
          tile::with_kernel<T>(map_.shape, parameters, [&](const auto &kernel) {
            if constexpr (std::is_same_v<Value, float> ||
                          std::decay_t<decltype(kernel)>::kUnit)
              for (Index s = 0; s < strips.groups(); ++s) {
                for (Index r = 0; r < kWidth; ++r) {
                  const Index t = s * kWidth + r;
                  to[r] = t < some ? out[first + t] : nowhere.data();
                }
                for (Index g = p; g < last; ++g)
                  tile::compute(strips.values(s), panel[g - p], d, kernel, strips.h(s),
                                h[g - p], tile::StoreRows<Value>{to, g * tile::kPanel});
              }
          });
          if (shared(some * (d + 16) * (last - p))) return;
        }
      };
      team().run(shares(some, panels), panels, meet);
    }
    return !shared.leave();
  }

  template <class T, class Value>
  bool sparse_rows(const Order *who, Index m, const Order *columns, Index many,
                   Value *const *out, Poll &poll) const {
    const Postings<T> *postings = postings_of<T>();
    std::unique_ptr<const Postings<T>> some;
    std::vector<double> precise;
    const T *h = nullptr;
    if constexpr (std::is_same_v<T, double>) {
      if (!postings) precise = half_selves<double>(map_, *points_, team());
      h = postings ? postings->h() : precise.data();
    } else {
      h = h_.data();
    }
    if (postings && columns) {
      some = std::make_unique<const Postings<T>>(map_, *points_, postings->features(),
                                                 columns, many);
      postings = some.get();
    }
    SharedPoll shared(poll);
    const tile::Parameters parameters = row_parameters();
    SparseMeeting<T> meeting(map_, *points_, *points_, columns, many, h, postings);
    const Index most = meeting.most() * tile::kPanel;
    const Index panels = (many + tile::kPanel - 1) / tile::kPanel;
    const auto queries = [&](Index first) {
      return std::clamp<Index>(m - first, 0, tile::kPanel);
    };
    for (Index start = 0; start < m && !shared.leave(); start += most) {
      meeting.clear();
      for (Index first = start; first < std::min(m, start + most);
           first += tile::kPanel)
        meeting.add(queries(first), [&](Index t) { return who[first + t]; }, h);
      const auto meet = [&](Index, Index begin, Index end) {
        tile::with_kernel<T>(map_.sparse_shape(), parameters, [&](const auto &kernel) {
          meeting.meet(kernel, begin, end, shared,
                       [&](Index b, Index j, Index, const T *values) {
                         const Index first = start + b * tile::kPanel;
                         simd::transpose<tile::kPanel>(values, queries(first),
                                                       out + first, j);
                       });
        });
      };
      const Index units = meeting.units();
      team().run(std::min(shares(std::min(most, m - start), panels), units), units,
                 meet);
    }
    return !shared.leave();
  }

  // h as the values have it.
  double half_self(Index i) const {
    if (!dense_) return static_cast<double>(h_[static_cast<std::size_t>(i)]);
    return static_cast<double>(panels_.h(i / tile::kPanel)[i % tile::kPanel]);
  }
  // h in float64, of entries that were not rounded, and sqrt(d) p, or of sparse points
  // the additions; see `errors`.
  struct Selves {
    std::vector<double> h, spread;
  };
  Selves exact_selves() const {
    Selves selves;
    selves.spread.resize(static_cast<std::size_t>(n()));
    if (!dense_) {
      selves.h = half_selves<double>(map_, *points_, team());
      const bool posted = SparseMeeting<float>::by_postings(*points_);
      Entries entries;
      for (Index i = 0; i < n(); ++i) {
        points_->entries(i, entries);
        const Index m = static_cast<Index>(entries.columns.size());
        // Rare features are added one by one.
        const Index longest = posted ? m + 8 : tile::longest_chain<float>(m);
        selves.spread[static_cast<std::size_t>(i)] = static_cast<double>(longest);
      }
      return selves;
    }
    selves.h.resize(static_cast<std::size_t>(n()));
    const auto d = static_cast<std::size_t>(points_->d());
    std::vector<double> room(d), x(d);
    for (Index i = 0; i < n(); ++i) {
      map_.read(*points_, i, room.data(), x.data());
      double sum = 0.0, sums = 0.0;
      for (const double v : x) {
        sum += v * v;
        sums += sum;
      }
      selves.h[static_cast<std::size_t>(i)] = 0.5 * sum;
      selves.spread[static_cast<std::size_t>(i)] =
          sum > 0.0 ? std::sqrt(sums / sum) : 0.0;
    }
    return selves;
  }

  // Parts for so many queries and panels: each is more to do than waking a thread.
  Index shares(Index queries, Index panels) const {
    constexpr double kWorth = 2e5;  // values times their cost
    const double work = static_cast<double>(queries * panels * tile::kPanel) * cost();
    return std::clamp<Index>(static_cast<Index>(work / kWorth), 1,
                             std::min(team().shares(), panels));
  }

  // Of all points, made when they are first asked for; null where features are few.
  template <class T>
  const Postings<T> *postings_of() const {
    if (dense_ || !SparseMeeting<T>::by_postings(*points_)) return nullptr;
    std::call_once(features_made_,
                   [&] { features_ = std::make_shared<const Ranking>(*points_); });
    Made<T> &made = std::get<Made<T>>(postings_);
    std::call_once(made.once, [&] {
      made.postings =
          std::make_unique<const Postings<T>>(map_, *points_, features_, nullptr, n());
    });
    return made.postings.get();
  }

  tile::Parameters row_parameters() const {
    tile::Parameters parameters = map_.parameters;
    if (shifted_) parameters.shift = 1.0;
    return parameters;
  }

  std::unique_ptr<Points> points_;
  KernelMap map_;
  bool dense_;
  double entries_;  // of a point, those that are stored if few are
  bool precise_ = false, shifted_ = false;
  Panels<float> panels_;
  std::vector<float> h_;  // of points with few entries
  template <class T>
  struct Made {
    std::once_flag once;
    std::unique_ptr<const Postings<T>> postings;
  };
  mutable std::once_flag features_made_;
  mutable std::shared_ptr<const Ranking> features_;
  mutable std::tuple<Made<float>, Made<double>> postings_;
};

}  // namespace dualgap
