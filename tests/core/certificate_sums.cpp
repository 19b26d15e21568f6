// Checks the sums of a certificate against exact arithmetic: the compensated sums, the
// product of a row with w, the squared norms, and everything that `evaluate` sums up in
// one pass. Each result must lie within the bound that src/core promises for it,
// however the compiler contracts products and sums into fused operations.
//
//     c++ -std=c++20 -O2 -Isrc/core tests/core/certificate_sums.cpp -pthread
//         -o certificate_sums && ./certificate_sums
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "certify.hpp"

using namespace dualgap;

namespace {

// A sum of digits times 2^(24 (k + low)), without rounding. All digits but the highest
// are from 0 to 2^24 - 1; the highest is -1 in a negative number, and not 0.
class Exact {
 public:
  Exact() = default;
  Exact(double x) {
    if (!std::isfinite(x)) {
      std::printf("a result is not finite\n");
      std::exit(1);
    }
    if (x == 0.0) return;
    int exponent;
    const auto whole =
        static_cast<std::int64_t>(std::ldexp(std::frexp(x, &exponent), 53));
    exponent -= 53;
    const int rest = (exponent % kBits + kBits) % kBits;
    low_ = (exponent - rest) / kBits;
    for (int k = 0; k < 3; ++k) {
      const std::int64_t digit = whole >> k * kBits;
      digits_.push_back((k < 2 ? digit & kMask : digit) * (std::int64_t{1} << rest));
    }
    carry();
  }

  friend Exact operator+(const Exact &a, const Exact &b) { return add(a, b, 1); }
  friend Exact operator-(const Exact &a, const Exact &b) { return add(a, b, -1); }
  friend Exact operator*(const Exact &a, const Exact &b) {
    Exact product;
    product.low_ = a.low_ + b.low_;
    product.digits_.resize(a.digits_.size() + b.digits_.size());
    for (std::size_t i = 0; i < a.digits_.size(); ++i)
      for (std::size_t j = 0; j < b.digits_.size(); ++j)
        product.digits_[i + j] += a.digits_[i] * b.digits_[j];
    product.carry();
    return product;
  }
  int sign() const { return digits_.empty() ? 0 : digits_.back() < 0 ? -1 : 1; }
  Exact size() const { return sign() < 0 ? Exact() - *this : *this; }
  bool operator<=(const Exact &other) const { return (other - *this).sign() >= 0; }

 private:
  static constexpr int kBits = 24;
  static constexpr std::int64_t kMask = (std::int64_t{1} << kBits) - 1;

  static Exact add(const Exact &a, const Exact &b, int sign) {
    if (b.digits_.empty()) return a;
    Exact sum;
    sum.low_ = a.digits_.empty() ? b.low_ : std::min(a.low_, b.low_);
    const auto end = [](const Exact &x) {
      return x.low_ + static_cast<int>(x.digits_.size());
    };
    const int top = a.digits_.empty() ? end(b) : std::max(end(a), end(b));
    sum.digits_.resize(static_cast<std::size_t>(top - sum.low_));
    const auto put = [&](const Exact &x, int factor) {
      auto at = sum.digits_.begin() + (x.low_ - sum.low_);
      for (const std::int64_t digit : x.digits_) *at++ += factor * digit;
    };
    if (!a.digits_.empty()) put(a, 1);
    put(b, sign);
    sum.carry();
    return sum;
  }
  void carry() {
    std::int64_t over = 0;
    for (std::int64_t &digit : digits_) {
      over += digit;
      digit = over & kMask;
      over >>= kBits;
    }
    for (; over != 0 && over != -1; over >>= kBits) digits_.push_back(over & kMask);
    if (over == -1) digits_.push_back(-1);
    while (!digits_.empty() && digits_.back() == 0) digits_.pop_back();
  }

  std::vector<std::int64_t> digits_;
  int low_ = 0;
};

Exact larger(const Exact &a, const Exact &b) { return a <= b ? b : a; }

std::string place;  // the input being checked, for messages

void require(bool holds, const char *what) {
  if (holds) return;
  std::printf("%s: %s\n", place.c_str(), what);
  std::exit(1);
}

// |found - wanted| <= bound
void within(double found, const Exact &wanted, const Exact &bound, const char *what) {
  require((wanted - found).size() <= bound, what);
}

std::mt19937_64 engine(1);
Index below(Index n) {
  return static_cast<Index>(engine() % static_cast<std::uint64_t>(n));
}
double between(double low, double high) {
  return low + (high - low) * static_cast<double>(engine() >> 11) * 0x1p-53;
}
double scaled(double x, Index exponent) {
  return std::ldexp(x, static_cast<int>(exponent));
}

// ------------------------------------------------------------ compensated sums

std::vector<double> nasty_terms(int kind, Index n) {
  std::vector<double> terms;
  while (static_cast<Index>(terms.size()) < n) {
    const double x = between(-1.0, 1.0);
    switch (kind) {
      case 0:  // random signs and a narrow range
        terms.push_back(x);
        break;
      case 1:  // a wide range
        terms.push_back(scaled(x, below(1800) - 900));
        break;
      case 2:  // large terms that cancel, small ones that remain
        terms.insert(terms.end(), {scaled(x, 60), between(-1.0, 1.0), scaled(-x, 60)});
        break;
      case 3:  // denormal numbers and zeros of either sign
        terms.push_back(scaled(x, -1040 - below(40)));
        break;
      case 4:  // carries over all digits
        terms.insert(terms.end(), {1.0, 0x1p-53, -0x1p-105, 0x1.fffffffffffffp-1});
        break;
      default:  // every size cancels in another order
        terms.insert(terms.begin() + below(static_cast<Index>(terms.size()) + 1),
                     {scaled(x, below(100)), scaled(-x, below(100))});
    }
  }
  return terms;
}

void compensated_sums() {
  for (int kind = 0; kind < 6; ++kind)
    for (const Index n : {1, 2, 7, 8, 9, 64, 65, 700}) {
      place = "sum of terms " + std::to_string(kind) + ", " + std::to_string(n);
      const std::vector<double> terms = nasty_terms(kind, n);
      const auto count = static_cast<double>(terms.size());
      Sum sum;
      LaneSums lanes, singly;
      Exact exact, sizes;
      for (const double term : terms) {
        sum += term;
        singly += term;
        exact = exact + term;
        sizes = sizes + std::abs(term);
      }
      lanes.add(terms.data(), static_cast<Index>(terms.size()));
      const Exact squared =
          Exact(kSlack * count * count * kRounding<double> * kRounding<double>) * sizes;
      const auto bound = [&](double value) {
        return Exact(kRounding<double>) * std::abs(value) + squared;
      };
      within(sum.value(), exact, bound(sum.value()), "Sum");
      within(singly.value(), exact, bound(singly.value()), "LaneSums, one by one");
      within(lanes.value(), exact, bound(lanes.value()), "LaneSums of an array");
    }
}

// ------------------------------------------------------------------------ rows

enum Kind : int {
  kPlain,
  kWide,        // entries of very different size
  kCancelling,  // scores that are nothing but rounding
  kHuge,
  kTiny,
  kDenormal,
  kZeros,     // rows and parts of w that are zero, other parts denormal
  kOnMargin,  // scores next to 1, where the hinge bends
  kZeroModel,
  kKinds
};

template <class V>
struct Data {
  Index n, d;
  double constant;
  std::vector<V> dense, values;
  std::vector<std::int32_t> indices;
  std::vector<std::int64_t> indptr{0};
  std::vector<double> w;
};

template <class V>
Data<V> draw(Kind kind, Index n, Index d, double constant) {
  constexpr bool kSingle = std::is_same_v<V, float>;
  const Index huge = kSingle ? 100 : 400, denormal = kSingle ? 140 : 1060;
  Data<V> data{n, d, constant, {}, {}, {}, {0}, {}};
  for (Index j = 0; j < d + (constant != 0.0); ++j) {
    const double x = between(-1.0, 1.0);
    switch (kind) {
      case kWide:
        data.w.push_back(scaled(x, below(60) - 30));
        break;
      case kCancelling:
        data.w.push_back(j % 2 ? -data.w.back() : scaled(x, 20));
        break;
      case kHuge:
        data.w.push_back(scaled(x, -huge));
        break;
      case kTiny:
        data.w.push_back(scaled(x, huge));
        break;
      case kDenormal:
        data.w.push_back(scaled(x, 300));
        break;
      case kZeros:
        data.w.push_back(j % 3 == 0 ? 0.0 : scaled(x, j % 3 == 1 ? 0 : -1060));
        break;
      case kZeroModel:
        data.w.push_back(j == d ? x : 0.0);
        break;
      default:
        data.w.push_back(x);
    }
  }
  for (Index i = 0; i < n; ++i) {
    std::vector<double> row;
    for (Index j = 0; j < d; ++j) {
      const double x = between(-1.0, 1.0);
      switch (kind) {
        case kWide:
          row.push_back(scaled(x, below(60) - 30));
          break;
        case kCancelling:
          row.push_back(j % 2 ? row.back() : scaled(x, below(20)));
          break;
        case kHuge:
          row.push_back(scaled(x, huge));
          break;
        case kTiny:
          row.push_back(scaled(x, -huge));
          break;
        case kDenormal:
          row.push_back(scaled(x, -denormal));
          break;
        case kZeros:
          row.push_back(i % 4 == 0 || below(10) < 8 ? 0.0 : x);
          break;
        default:
          row.push_back(below(4) == 0 ? 0.0 : x);
      }
    }
    if (kind == kOnMargin) {
      double score = 0.0;
      for (Index j = 0; j < d; ++j) score += row[j] * data.w[j];
      if (constant != 0.0) score /= 1.0 - constant * data.w[d];
      for (double &x : row) x = score != 0.0 ? x / score : x;
    }
    for (Index j = 0; j < d; ++j) {
      data.dense.push_back(static_cast<V>(row[j]));
      if (data.dense.back() == V(0)) continue;
      data.values.push_back(data.dense.back());
      data.indices.push_back(static_cast<std::int32_t>(j));
    }
    data.indptr.push_back(static_cast<std::int64_t>(data.values.size()));
  }
  return data;
}

// What `Problem` in Python makes of the sums: docs/certificate.md.
double term_error(Index n) {
  const double adding = static_cast<double>(n) * kRounding<double>;
  return 12.0 * kRounding<double> + adding * adding;
}
constexpr double kLeast = 0x1p-1074;

// The losses, for exact numbers; a curvature is a power of two.
Exact exact_loss(const Loss &loss, const Exact &excess) {
  const Exact u = larger(excess, 0.0);
  if (loss.curvature == 0.0) return u;
  const double knee = loss.slope * loss.curvature;
  if (std::isinf(knee) || u <= knee) return u * u * (0.5 / loss.curvature);
  return Exact(loss.slope) * (u - 0.5 * knee);
}

template <class Rows, class Terms, class LossOf>
void check_pass(const Rows &rows, const Terms &terms, const std::vector<double> &q,
                const std::vector<double> &w, const std::vector<double> &given,
                const std::vector<Exact> &scores, const LossOf &exact_loss_of) {
  const Index n = rows.rows(), width = rows.width();
  Team team(2);
  std::vector<double> alpha = given, v(static_cast<std::size_t>(width), 0.0);
  const Values found = evaluate(rows, terms, q.data(), w.data(), Dual::kGiven,
                                alpha.data(), v.data(), nullptr, team);
  std::vector<Exact> exact_v(static_cast<std::size_t>(width));
  Exact loss, along, sum, sum_sizes, diagonal;
  for (Index i = 0; i < n; ++i) {
    const double a = given[i];
    loss = loss + Exact(terms.cost[i]) * exact_loss_of(i);
    const Exact signed_a = Exact(a) * terms.sign(i);
    along = along + signed_a * scores[i];
    rows.for_each(i, [&](Index j, double x) {
      if (a != 0.0) exact_v[j] = exact_v[j] + signed_a * x;
    });
    diagonal = diagonal + Exact(terms.form.diagonal(terms.cost[i])) * a * a;
    sum = sum + terms.linear(i, a);
    sum_sizes = sum_sizes + std::abs(terms.linear(i, a));
  }
  const double term = term_error(n);
  const double underflow = static_cast<double>(n + width + 4) * kLeast;
  require(loss <= Exact(found.loss) + kSlack * (found.loss_error + term * found.loss) +
                      underflow,
          "the losses exceed their bound");
  within(found.along, along, Exact(kSlack * found.along_error) + underflow, "w.v");
  within(found.sum, sum, Exact(kSlack * term) * sum_sizes, "the sum of alpha");
  within(found.diagonal, diagonal, Exact(kSlack * term) * diagonal + underflow,
         "the squares of alpha");
  const double drift = kSlack * (found.used + 3.0) * kRounding<double> * found.reach +
                       found.used * std::sqrt(static_cast<double>(width)) * kLeast;
  Exact apart;
  for (Index j = 0; j < width; ++j)
    apart = apart + (exact_v[j] - v[j]) * (exact_v[j] - v[j]);
  require(apart <= Exact(drift) * drift, "v is further from the sum than its bound");
}

template <class Rows>
void check_rows(const Rows &rows, const std::vector<double> &w) {
  const Index n = rows.rows(), d = rows.cols();
  const double constant = rows.constant();
  std::vector<double> q(static_cast<std::size_t>(n));
  bool unique;
  Index where;
  require(!rows.inspect(q.data(), 1 << 30, &unique, &where), "the rows are refused");

  Exact norm;
  for (const double x : w) norm = norm + Exact(x) * x;
  const double underflow = static_cast<double>(n + rows.width() + 4) * kLeast;
  within(squared_norm(w.data(), rows.width()), norm,
         Exact(kNormRoundings * kRounding<double>) * norm + underflow, "squared_norm");
  Exact square = norm;
  if (constant != 0.0) square = square - Exact(w[d]) * w[d];
  const double length = length_of(w.data(), d);
  require(square <= Exact(length) * length, "length_of is too short");

  const Sizes sizes{q.data(), constant * constant, length,
                    constant != 0.0 ? std::abs(constant * w[d]) : 0.0,
                    static_cast<double>(d + 2)};
  const BlockedDot<Rows> dot{rows, w.data()};
  std::vector<Exact> scores;
  for (Index i = 0; i < n; ++i) {
    Exact score, row;
    rows.for_each(i, [&](Index j, double x) {
      score = score + Exact(x) * w[j];
      if (j < d) row = row + Exact(x) * x;
    });
    const double size = sizes.row(i);
    require(row <= Exact(size) * size, "a row is longer than its bound");
    within(dot(i), score, sizes.off(sizes.product(size), dot.roundings(i)), "x.w");
    scores.push_back(score);
  }

  const Loss losses[] = {{1.0, 0.0}, {1.0, 0.25}, {HUGE_VAL, 0.5}};
  for (const Loss &loss : losses) {
    std::vector<std::int8_t> y;
    std::vector<double> cost, alpha, either;
    for (Index i = 0; i < n; ++i) {
      y.push_back(below(2) ? 1 : -1);
      // With a curvature alpha^2 is divided by the cost: exactly for a power of two.
      cost.push_back(loss.curvature == 0.0 ? between(0.0, 10.0)
                                           : scaled(1.0, below(40) - 20));
      alpha.push_back(below(3) ? between(0.0, cost.back()) : 0.0);
      either.push_back(below(2) ? alpha.back() : -alpha.back());
    }
    check_pass(rows, MarginTerms{y.data(), cost.data(), loss}, q, w, alpha, scores,
               [&](Index i) {
                 return exact_loss(loss, Exact(1.0) - Exact(y[i]) * scores[i]);
               });
    // A large epsilon next to the targets leaves little but rounding of the residuals.
    for (const double epsilon : {0.1, 0x1p30 + 0.1}) {
      std::vector<double> target;
      for (Index i = 0; i < n; ++i)
        target.push_back((below(2) ? epsilon : -epsilon) + between(-2.0, 2.0));
      check_pass(rows, ResidualTerms{target.data(), cost.data(), loss, epsilon}, q, w,
                 either, scores, [&](Index i) {
                   return exact_loss(loss,
                                     (Exact(target[i]) - scores[i]).size() - epsilon);
                 });
    }
  }
}

template <class V>
void check(Kind kind, Index n, Index d, double constant) {
  place = std::string(sizeof(V) == 4 ? "float32" : "float64") + " rows " +
          std::to_string(kind) + ", " + std::to_string(n) + " x " + std::to_string(d) +
          ", constant " + std::to_string(constant);
  const Data<V> data = draw<V>(kind, n, d, constant);
  check_rows(DenseRows<V>(data.dense.data(), n, d, constant), data.w);
  place += ", sparse";
  check_rows(CsrRows<V, std::int32_t>(data.values.data(), data.indices.data(),
                                      Pointers(data.indptr.data()), n, d, constant),
             data.w);
}

}  // namespace

int main() {
  compensated_sums();
  // Row lengths with every kind of rest, and beyond the blocks of 64 and 256 entries.
  constexpr Index kSizes[][2] = {{3, 1}, {70, 7}, {5, 33}, {9, 130}, {3, 300}};
  for (int kind = 0; kind < kKinds; ++kind)
    for (const auto &[n, d] : kSizes)
      for (const double constant : {0.0, 1.0, 0.3, 0x1p20}) {
        check<double>(static_cast<Kind>(kind), n, d, constant);
        check<float>(static_cast<Kind>(kind), n, d, constant);
      }
  std::printf("every sum is within its bound\n");
}
