#include "autograd/matrix.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include "linalg/function.hpp"
#include "size/ask.hpp"

namespace ein::autograd {
namespace {

/// Values of shape (batch..., dims...), in index notation: a letter names a dimension behind those
/// of the batch.
class IndexNotation {
 public:
  struct Indexed {
    ValueId id;
    std::string_view letters;
  };

  IndexNotation(Graph& graph, std::vector<Axis> batch, DType dtype)
      : graph_(graph), batch_(std::move(batch)), dtype_(dtype) {}

  void set_sizes(std::string_view letters, Size size) {
    for (const char letter : letters) sizes_[static_cast<unsigned char>(letter)] = size;
  }
  Size size_of(char letter) const { return sizes_[static_cast<unsigned char>(letter)]; }

  /// The product of two, summed over the letters that the result lacks.
  ValueId product(Indexed a, Indexed b, std::string_view result) {
    const std::string all = united(united(std::string(result), a.letters), b.letters);
    return add(op_of(OpKind::contract, {named(a, all), named(b, all)}, place(result, all), dtype_),
               all);
  }
  ValueId map(const std::vector<Indexed>& inputs, const Ex& formula, std::string_view result) {
    const std::string all(result);
    std::vector<NamedValue> values;
    for (const Indexed& input : inputs) values.push_back(named(input, all));
    Op op = op_of(OpKind::map, values, place(result, all), dtype_);
    op.expr = formula;
    op.compute = dtype_;
    return add(std::move(op), all);
  }
  /// The index of letter number `k` of a map's result.
  Ex index(int k) const { return Ex::index(static_cast<int>(batch_.size()) + k); }

  /// A function of the matrix whose rows and columns have these letters; a second operand has the
  /// rows, and others. The result has the dimensions of linalg::result_axes.
  ValueId apply(MatrixFunction function, Indexed a, std::string_view matrix) {
    return apply(function, {a}, matrix, "");
  }
  ValueId apply(MatrixFunction function, Indexed a, std::string_view matrix, Indexed b) {
    std::string right;
    for (const char letter : b.letters) {
      if (letter != matrix[0]) right += letter;
    }
    return apply(function, {a, b}, matrix, right);
  }

  /// Elements from `first` on of a value with one dimension, in row-major order.
  ValueId part(ValueId packed, Size first, std::string_view letters) {
    const std::string all(letters);
    NamedValue from{packed, access("", all)};
    DimIndex along{first, {}};
    Size step = 1;
    for (std::size_t k = all.size(); k-- > 0; step *= size_of(all[k]))
      along.terms.insert(along.terms.begin(), {axis(k), step});
    from.access.push_back(std::move(along));
    return add(op_of(OpKind::reindex, {from}, place(letters, all), dtype_), all);
  }
  /// Columns from `first` on: a dimension of the second letter's size.
  ValueId columns(ValueId matrix, Size first, std::string_view letters) {
    const std::string all(letters);
    NamedValue from{matrix, access(letters, all)};
    from.access.back().offset = first;
    return add(op_of(OpKind::reindex, {from}, place(letters, all), dtype_), all);
  }
  /// Two matrices with these letters side by side.
  ValueId joined(ValueId a, std::string_view a_letters, ValueId b, std::string_view b_letters) {
    Place all = place(a_letters, std::string(a_letters));
    all.shape.back() += size_of(b_letters.back());
    Op op{.kind = OpKind::concat, .dtype = dtype_, .shape = all.shape};
    op.inputs = {a, b};
    op.dim = static_cast<int>(all.shape.rank()) - 1;
    return append(graph_, std::move(op));
  }

 private:
  ValueId apply(MatrixFunction function, const std::vector<Indexed>& operands,
                std::string_view matrix, const std::string& right) {
    const Size rows = size_of(matrix[0]), columns = size_of(matrix[1]);
    std::string all = std::string(matrix) + right;
    std::vector<MatrixAxis> roles(batch_.size(), MatrixAxis::batch);
    roles.insert(roles.end(), {MatrixAxis::rows, MatrixAxis::columns});
    roles.insert(roles.end(), right.size(), MatrixAxis::right);
    constexpr char packed = '#';
    if (info(function).is_packed) {
      all += packed;
      roles.push_back(MatrixAxis::packed);
      set_sizes({&packed, 1}, packed_size(function, rows, columns));
    }
    std::string result;
    const auto [outer, inner] = linalg::result_axes(function);
    for (const MatrixAxis role : {outer, inner}) {
      if (role == MatrixAxis::rows) result += matrix[0];
      if (role == MatrixAxis::columns) result += matrix[1];
      if (role == MatrixAxis::right) result += right;
      if (role == MatrixAxis::packed) result += packed;
    }
    std::vector<NamedValue> values;
    for (const Indexed& operand : operands) values.push_back(named(operand, all));
    Op op = op_of(OpKind::matrix, values, place(result, all), dtype_);
    op.function = function;
    op.roles = std::move(roles);
    return add(std::move(op), all);
  }

  static std::string united(std::string letters, std::string_view more) {
    for (const char letter : more) {
      if (letters.find(letter) == letters.npos) letters += letter;
    }
    return letters;
  }
  int axis(std::size_t letter) const { return static_cast<int>(batch_.size() + letter); }
  Access access(std::string_view letters, const std::string& all) const {
    Access access = plain_access(batch_.size());
    for (const char letter : letters) access.push_back({0, {{axis(all.find(letter)), 1}}});
    return access;
  }
  NamedValue named(const Indexed& value, const std::string& all) const {
    return {value.id, access(value.letters, all)};
  }
  Place place(std::string_view letters, const std::string& all) const {
    const Access at = access(letters, all);
    return {at, shape_of(at, axes(all))};
  }
  std::vector<Axis> axes(const std::string& all) const {
    std::vector<Axis> axes = batch_;
    for (const char letter : all) axes.push_back({std::string(1, letter), size_of(letter)});
    return axes;
  }
  ValueId add(Op op, const std::string& all) {
    op.axes = axes(all);
    return append(graph_, std::move(op));
  }

  Graph& graph_;
  std::vector<Axis> batch_;
  DType dtype_;
  std::array<Size, 128> sizes_{};
};

Ex equal(const Ex& a, const Ex& b) { return Ex::apply(ScalarOp::eq, a, b); }
Ex is_less(const Ex& a, const Ex& b) { return Ex::apply(ScalarOp::lt, a, b); }
/// 1 / x, and 0 where x is 0: what equal singular values or eigenvalues leave open is taken to be
/// 0.
Ex inverse_or_zero(const Ex& x) {
  const Ex is_zero = equal(x, Ex(0.0));
  return where(is_zero, Ex(0.0), Ex(1.0) / where(is_zero, Ex(1.0), x));
}

/// The rules, after Giles, An extended collection of matrix derivative results for forward and
/// reverse mode algorithmic differentiation, 2008; of qr, svd and eigh in the conventions of
/// PyTorch. The first operand has letters ij, of n and m; a second ik. Letters s and t are of
/// r = min(n, m).
class Rule {
 public:
  Rule(Graph& graph, const Op& op, ValueId result, ValueId cotangent)
      : graph_(graph), op_(op), x_(graph, batch_of(op), op.dtype) {
    n_ = rows_of(op);
    m_ = columns_of(op);
    r_ = always_equal(n_, m_) || n_ <= m_ ? n_ : m_;
    x_.set_sizes("ip", n_);
    x_.set_sizes("jq", m_);
    x_.set_sizes("st", r_);
    Size right = 1;
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      if (op.roles[a] == MatrixAxis::right) right *= op.axes[a].size;
    }
    x_.set_sizes("k", right);
    a_ = canonical({op.inputs[0], op.reads[0]}, {MatrixAxis::rows, MatrixAxis::columns});
    if (op.inputs.size() > 1)
      b_ = canonical({op.inputs[1], op.reads[1]}, {MatrixAxis::rows, MatrixAxis::right});
    const auto [outer, inner] = linalg::result_axes(op.function);
    y_ = canonical({result, op.write}, {outer, inner});
    g_ = canonical({cotangent, op.write}, {outer, inner});
  }

  std::vector<NamedValue> run(const std::vector<bool>& wanted) {
    std::vector<NamedValue> sent(op_.inputs.size(), {-1, {}});
    if (op_.inputs.size() > 1) {
      // Aᵀ u = g, or the least squares of that.
      const ValueId u = x_.apply(op_.function, {a_, "ij"}, "ji", {g_, "jk"});
      if (wanted[1]) sent[1] = {u, access({MatrixAxis::rows, MatrixAxis::right})};
      if (wanted[0]) sent[0].id = op_.function == MatrixFunction::solve ? solve(u) : lstsq(u);
    } else {
      sent[0].id = of_matrix();
    }
    if (sent[0].id >= 0) sent[0].access = access({MatrixAxis::rows, MatrixAxis::columns});
    return sent;
  }

 private:
  using Roles = std::array<MatrixAxis, 2>;

  static std::vector<Axis> batch_of(const Op& op) {
    std::vector<Axis> axes;
    for (std::size_t a = 0; a < op.axes.size(); ++a) {
      if (op.roles[a] == MatrixAxis::batch) axes.push_back(op.axes[a]);
    }
    return axes;
  }

  /// A dimension for each axis of the batch, and for each role one of all its axes.
  Access access(const Roles& roles) const {
    Access access;
    for (std::size_t a = 0; a < op_.axes.size(); ++a) {
      if (op_.roles[a] == MatrixAxis::batch) access.push_back({0, {{static_cast<int>(a), 1}}});
    }
    for (const MatrixAxis role : roles) {
      if (role == MatrixAxis::batch) continue;
      DimIndex dim;
      Size step = 1;
      for (std::size_t a = op_.axes.size(); a-- > 0;) {
        if (op_.roles[a] != role) continue;
        dim.terms.insert(dim.terms.begin(), {static_cast<int>(a), step});
        step *= op_.axes[a].size;
      }
      access.push_back(std::move(dim));
    }
    return access;
  }
  ValueId canonical(const NamedValue& value, const Roles& roles) {
    const Access to = access(roles);
    if (value.access == to) return value.id;
    Op op = op_of(OpKind::reindex, {value}, {to, shape_of(to, op_.axes)}, op_.dtype);
    op.axes = op_.axes;
    drop_unused_axes(op);
    return append(graph_, std::move(op));
  }

  ValueId of_matrix() {
    switch (op_.function) {
      case MatrixFunction::inverse:
        return inverse();
      case MatrixFunction::det:
        return det();
      case MatrixFunction::cholesky:
        return cholesky();
      case MatrixFunction::qr:
        return qr();
      case MatrixFunction::svd:
        return svd();
      case MatrixFunction::eigh:
        return eigh();
      case MatrixFunction::solve:
      case MatrixFunction::lstsq:
        break;
    }
    throw std::logic_error("vjp: a function of matrices without a rule");
  }

  const Ex x0 = Ex::input(0), x1 = Ex::input(1), x2 = Ex::input(2);

  /// -Yᵀ G Yᵀ
  ValueId inverse() {
    const ValueId yg = x_.product({y_, "qi"}, {g_, "qp"}, "ip");
    return negated(x_.product({yg, "ip"}, {y_, "jp"}, "ij"));
  }
  ValueId negated(ValueId matrix) {
    return x_.map({{matrix, "ij"}}, Ex::apply(ScalarOp::neg, x0), "ij");
  }

  /// g det A⁻ᵀ
  ValueId det() {
    const ValueId inverted = x_.apply(MatrixFunction::inverse, {a_, "ij"}, "ij");
    return x_.map({{g_, ""}, {y_, ""}, {inverted, "ji"}}, x0 * x1 * x2, "ij");
  }

  /// -U Xᵀ
  ValueId solve(ValueId u) { return negated(x_.product({u, "ik"}, {y_, "jk"}, "ij")); }

  /// Golub, Pereyra, The differentiation of pseudo-inverses, 1973, where the rank is full.
  ValueId lstsq(ValueId u) {
    const ValueId first = solve(u);
    if (always_equal(n_, m_) || ask_equal(n_, m_)) return first;
    const auto minus_product = [&](ValueId from, std::string_view result, ValueId with,
                                   std::string_view letters) {
      const ValueId product = x_.product({a_, "ij"}, {with, letters}, result);
      return x_.map({{from, result}, {product, result}}, x0 - x1, result);
    };
    ValueId second = -1;
    if (n_ > m_) {  // the residual, by A⁺ U
      const ValueId residual = minus_product(b_, "ik", y_, "jk"),
                    w = x_.apply(MatrixFunction::lstsq, {a_, "ij"}, "ij", {u, "ik"});
      second = x_.product({residual, "ik"}, {w, "jk"}, "ij");
    } else {  // A⁺ᵀ X, by what of G is in the null space
      const ValueId v = x_.apply(MatrixFunction::lstsq, {a_, "ij"}, "ji", {y_, "jk"}),
                    ag = x_.product({a_, "ij"}, {g_, "jk"}, "ik"),
                    seen = x_.apply(MatrixFunction::lstsq, {a_, "ij"}, "ij", {ag, "ik"}),
                    rest = x_.map({{g_, "jk"}, {seen, "jk"}}, x0 - x1, "jk");
      second = x_.product({v, "ik"}, {rest, "jk"}, "ij");
    }
    return x_.map({{first, "ij"}, {second, "ij"}}, x0 + x1, "ij");
  }

  /// L⁻ᵀ Φ(Lᵀ G) L⁻¹, made symmetric; Φ halves the diagonal of a lower triangle.
  ValueId cholesky() {
    const Ex row = x_.index(0), column = x_.index(1);
    const ValueId g = x_.map({{g_, "ij"}}, where(is_less(row, column), Ex(0.0), x0), "ij"),
                  lg = x_.product({y_, "ip"}, {g, "iq"}, "pq"),
                  phi = x_.map({{lg, "pq"}},
                               where(is_less(row, column), Ex(0.0),
                                     where(equal(row, column), x0 * Ex(0.5), x0)),
                               "pq"),
                  left = x_.apply(MatrixFunction::solve, {y_, "ij"}, "ji", {phi, "jq"}),
                  both = x_.apply(MatrixFunction::solve, {y_, "ij"}, "ji", {left, "pj"});
    return x_.map({{both, "ij"}, {both, "ji"}}, (x0 + x1) * Ex(0.5), "ij");
  }

  // --- with parts ---

  ValueId qr() {
    const ValueId q = x_.part(y_, 0, "is"), r = x_.part(y_, n_ * r_, "sj"),
                  gq = x_.part(g_, 0, "is"), gr = x_.part(g_, n_ * r_, "sj");
    if (always_equal(n_, m_) || n_ >= m_) return qr_of_tall(q, r, gq, gr);
    // Of A = (A₁ A₂), A₁ = Q R₁ and R₂ = Qᵀ A₂.
    x_.set_sizes("d", m_ - n_);
    x_.set_sizes("jq", n_);
    const ValueId a2 = x_.columns(a_, n_, "id"), r1 = x_.columns(r, 0, "sj"),
                  gr1 = x_.columns(gr, 0, "sj"), gr2 = x_.columns(gr, n_, "sd"),
                  of_r2 = x_.product({a2, "id"}, {gr2, "sd"}, "is"),
                  all_gq = x_.map({{gq, "is"}, {of_r2, "is"}}, x0 + x1, "is"),
                  first = qr_of_tall(q, r1, all_gq, gr1),
                  second = x_.product({q, "is"}, {gr2, "sd"}, "id");
    return x_.joined(first, "ij", second, "id");
  }
  /// (GQ + Q M) R⁻ᵀ, where M is GR Rᵀ - Qᵀ GQ above its diagonal and on it, and its mirror below.
  ValueId qr_of_tall(ValueId q, ValueId r, ValueId gq, ValueId gr) {
    const Ex row = x_.index(0), column = x_.index(1);
    const ValueId g = x_.map({{gr, "sj"}}, where(is_less(column, row), Ex(0.0), x0), "sj"),
                  of_r = x_.product({g, "sj"}, {r, "tj"}, "st"),
                  of_q = x_.product({q, "is"}, {gq, "it"}, "st"),
                  m = x_.map({{of_r, "st"}, {of_q, "st"}, {of_r, "ts"}, {of_q, "ts"}},
                             where(is_less(column, row), x2 - Ex::input(3), x0 - x1), "st"),
                  qm = x_.product({q, "it"}, {m, "ts"}, "is"),
                  sum = x_.map({{gq, "is"}, {qm, "is"}}, x0 + x1, "is"),
                  mirrored = x_.apply(MatrixFunction::solve, {r, "sj"}, "sj", {sum, "is"});
    return x_.map({{mirrored, "ji"}}, x0, "ij");
  }

  /// For each pair of s and t: antisymmetric part of Aᵀ B, twice.
  ValueId turns(ValueId product) {
    return x_.map({{product, "st"}, {product, "ts"}}, x0 - x1, "st");
  }

  ValueId svd() {
    const Size of_u = n_ * r_;
    const ValueId u = x_.part(y_, 0, "is"), s = x_.part(y_, of_u, "s"),
                  v = x_.part(y_, of_u + r_, "sj"), gu = x_.part(g_, 0, "is"),
                  gs = x_.part(g_, of_u, "s"), gv = x_.part(g_, of_u + r_, "sj");
    const ValueId ugu = x_.product({u, "is"}, {gu, "it"}, "st"),
                  vgv = x_.product({v, "sj"}, {gv, "tj"}, "st");
    const Ex at_s = Ex::input(2), at_t = Ex::input(3), of_s = Ex::input(4);
    const Ex turned = (x0 * at_t + at_s * x1) * inverse_or_zero((at_t - at_s) * (at_t + at_s));
    const ValueId inner =
        x_.map({{turns(ugu), "st"}, {turns(vgv), "st"}, {s, "s"}, {s, "t"}, {gs, "s"}},
               where(equal(x_.index(0), x_.index(1)), of_s, turned), "st");
    ValueId left = x_.product({u, "is"}, {inner, "st"}, "it");
    // What of GU is orthogonal to all u, and of GV to all v.
    const Ex outside = (x0 - x1) * inverse_or_zero(x2);
    if (!always_equal(n_, r_) && n_ > r_) {
      const ValueId inside = x_.product({u, "is"}, {ugu, "st"}, "it"),
                    rest = x_.map({{gu, "it"}, {inside, "it"}, {s, "t"}}, outside, "it");
      left = x_.map({{left, "it"}, {rest, "it"}}, x0 + x1, "it");
    }
    const ValueId all = x_.product({left, "it"}, {v, "tj"}, "ij");
    if (always_equal(m_, r_) || m_ <= r_) return all;
    const ValueId inside = x_.product({vgv, "ts"}, {v, "tj"}, "sj"),
                  rest = x_.map({{gv, "sj"}, {inside, "sj"}, {s, "s"}}, outside, "sj"),
                  more = x_.product({u, "is"}, {rest, "sj"}, "ij");
    return x_.map({{all, "ij"}, {more, "ij"}}, x0 + x1, "ij");
  }

  ValueId eigh() {
    const ValueId values = x_.part(y_, 0, "s"), vectors = x_.part(y_, n_, "is"),
                  of_values = x_.part(g_, 0, "s"), of_vectors = x_.part(g_, n_, "is"),
                  product = x_.product({vectors, "is"}, {of_vectors, "it"}, "st");
    const Ex gap = Ex::input(2) - x1, of_s = Ex::input(3);
    const ValueId inner = x_.map(
        {{turns(product), "st"}, {values, "s"}, {values, "t"}, {of_values, "s"}},
        where(equal(x_.index(0), x_.index(1)), of_s, x0 * Ex(0.5) * inverse_or_zero(gap)), "st");
    const ValueId left = x_.product({vectors, "is"}, {inner, "st"}, "it");
    return x_.product({left, "it"}, {vectors, "jt"}, "ij");
  }

  Graph& graph_;
  const Op& op_;
  IndexNotation x_;
  Size n_ = 0, m_ = 0, r_ = 0;
  ValueId a_ = -1, b_ = -1, y_ = -1, g_ = -1;  // the operands, the result and its cotangent
};

}  // namespace

std::vector<NamedValue> pull_matrix(Graph& graph, const Op& op, ValueId result, ValueId cotangent,
                                    const std::vector<bool>& wanted) {
  return Rule(graph, op, result, cotangent).run(wanted);
}

}  // namespace ein::autograd
