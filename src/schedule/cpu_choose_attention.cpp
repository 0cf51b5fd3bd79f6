// The schedule of attention and of its gradients: tiles of scores that never reach memory (Dao et
// al. 2022, "FlashAttention"; Dao 2023, "FlashAttention-2").
//
// A tile has keys as rows and queries side by side. So what is known of each query (the maximum of
// its scores, the sum of its weights) is one row, and products read a tile as it lies.
#include <algorithm>
#include <limits>

#include "nest/attention.hpp"
#include "schedule/cpu_choose.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

using Place = Schedule::Place;
using Part = Schedule::Part;
using Extent = Schedule::Extent;
using RowNest = Schedule::RowNest;
using Operand = LoopNest::Operand;

/// What a maximum of scores, which are f32, begins as. It is finite: lowest - lowest is 0.
constexpr double lowest = std::numeric_limits<float>::lowest();
constexpr double ln2 = 0.693147180559945309417;

Ex exp_of(const Ex& x) { return Ex::apply(ScalarOp::exp, x); }
/// The exponential of at most 0, beside others of which one is 1: what is no normal number in f32
/// is 0, since processors take long for it. Functions make such scores, of masks and of distances.
Ex weight_of(const Ex& x) {
  const Ex is_tiny = Ex::apply(ScalarOp::lt, x, Ex(-87.0));
  return where(is_tiny, Ex(0.0), exp_of(where(is_tiny, Ex(0.0), x)));
}

/// The value of one step of an expression.
ScalarExpr part_of(const ScalarExpr& expr, std::size_t step) {
  ScalarExpr part = expr;
  part.steps.resize(step + 1);
  return Ex::of(part);
}

/// What takes long to compute, and is in both expressions.
std::optional<ScalarExpr> common_part(const ScalarExpr& a, const ScalarExpr& b) {
  for (std::size_t i = a.steps.size(); i-- > 0;) {
    if (info(a.steps[i].op).cost != CostClass::transcendental) continue;
    const ScalarExpr part = part_of(a, i);
    for (std::size_t j = 0; j < b.steps.size(); ++j) {
      if (b.steps[j].op == a.steps[i].op && part_of(b, j) == part) return part;
    }
  }
  return std::nullopt;
}

/// The expression with an input in the place of a part.
ScalarExpr reading(ScalarExpr expr, const ScalarExpr& part, int input) {
  for (std::size_t i = 0; i < expr.steps.size(); ++i) {
    if (expr.steps[i].op == part.steps.back().op && part_of(expr, i) == part)
      expr.steps[i] = {.op = ScalarOp::input, .which = input};
  }
  return Ex::of(expr);
}

/// Numbers of the axes of attention; those before are the batch's.
struct Axes {
  explicit Axes(const Attention& attention)
      : of(attention.axes),
        query(of.size() - 4),
        key(query + 1),
        depth(key + 1),
        width(depth + 1) {}
  const std::vector<LoopNest::NestAxis>& of;
  std::size_t query, key, depth, width;
};

Place turned(Place place) {
  std::swap(place.row_step, place.step);
  return place;
}

/// A step with loops over some axes of attention.
class StepBuilder {
 public:
  StepBuilder(Schedule& schedule, const Attention& attention, const Target& target)
      : schedule_(schedule), attention_(attention), target_(target), axes_(attention) {
    loop_of_.assign(axes_.of.size(), -1);
  }
  void finish() { schedule_.steps.push_back(std::move(step_)); }

  /// Outer loops first.
  void add_loop(std::size_t axis, bool is_serial) {
    const auto loop = static_cast<int>(step_.loops.size());
    loop_of_[axis] = loop;
    step_.loops.push_back({axes_.of[axis].name, axes_.of[axis].size, block(axis), is_serial});
    if (axis < axes_.query) step_.loops.back().axis += std::to_string(axis);
    const int query = loop_of_[axes_.query], key = loop_of_[axes_.key];
    if ((attention_.reach || attention_.back) && query >= 0 && key >= 0)
      step_.mask = {static_cast<std::size_t>(query), static_cast<std::size_t>(key),
                    attention_.reach, attention_.back};
  }

  // --- loops ---

  Size block(std::size_t axis) const {
    const Size most = axis == axes_.query ? target_.queries_in_tile
                      : axis == axes_.key ? target_.keys_in_tile
                                          : 1;
    return std::min(most, axes_.of[axis].size);
  }
  bool is_serial(std::size_t axis) const {
    return loop_of_[axis] >= 0 && step_.loops[static_cast<std::size_t>(loop_of_[axis])].is_serial;
  }
  /// So many serial loops go round what is done for each piece of an axis.
  std::size_t inside(std::size_t axis) const {
    std::size_t result = 0;
    if (is_serial(axis)) {
      for (int l = 0; l <= loop_of_[axis]; ++l)
        result += step_.loops[static_cast<std::size_t>(l)].is_serial;
    }
    return result;
  }
  std::size_t innermost() const { return std::max(inside(axes_.query), inside(axes_.key)); }

  /// All points of an axis; or those of a piece, where a loop goes over it.
  Extent all(std::size_t axis) const { return {axes_.of[axis].size}; }
  Extent piece(std::size_t axis) const {
    return loop_of_[axis] < 0 ? all(axis) : Extent{block(axis), loop_of_[axis]};
  }

  // --- places ---

  /// Of an operand: what belongs to the pieces that the loops are at.
  Place place(const Operand& operand, std::size_t rows, std::size_t along) const {
    Place place{.buffer = operand.buffer,
                .dtype = operand.dtype,
                .offset = operand.offset,
                .strides = std::vector<Size>(step_.loops.size(), 0),
                .row_step = operand.strides[rows],
                .step = operand.strides[along]};
    for (std::size_t a = 0; a < loop_of_.size(); ++a) {
      if (loop_of_[a] >= 0)
        place.strides[static_cast<std::size_t>(loop_of_[a])] = operand.strides[a] * block(a);
    }
    return place;
  }
  /// The same for all of an axis.
  Place with_all(Place place, std::size_t axis) const {
    if (loop_of_[axis] >= 0) place.strides[static_cast<std::size_t>(loop_of_[axis])] = 0;
    return place;
  }
  /// f32 of the thread: `rows` rows of `length`.
  Place scratch(Size rows, Size length) {
    const auto buffer = static_cast<int>(schedule_.buffers + schedule_.scratch.size());
    schedule_.scratch.push_back({rows * length, DType::f32, true});
    return {.buffer = buffer,
            .strides = std::vector<Size>(step_.loops.size(), 0),
            .row_step = ask_equal(rows, 1) ? Size(0) : length,
            .step = 1};
  }
  /// A value for each query of a piece.
  Place row_of_queries() { return scratch(1, block(axes_.query)); }

  // --- parts ---

  void add(Part part) { step_.parts.push_back(std::move(part)); }
  static Part rows(Extent rows, Extent length, std::size_t inside) {
    Part part;
    part.rows.rows = rows;
    part.rows.length = length;
    part.inside = inside;
    return part;
  }
  void add_rows(Extent rows, Extent length, std::size_t inside, std::vector<Place> places,
                std::vector<RowNest> nests) {
    Part part = StepBuilder::rows(rows, length, inside);
    part.places = std::move(places);
    part.rows.nests = std::move(nests);
    add(std::move(part));
  }
  void add_copy(const Place& from, const Place& to, Extent rows, Extent length,
                std::size_t inside) {
    add_rows(rows, length, inside, {from, to},
             {{.inputs = {0}, .output = 1, .body = Ex::input(0)}});
  }
  void add_product(const Place& c, const Place& a, const Place& b, std::size_t rows,
                   std::size_t depth, std::size_t columns, bool adds) {
    Part part;
    part.places = {a, b, c};
    part.product = {piece(rows), piece(columns), piece(depth), adds};
    part.inside = innermost();
    add(std::move(part));
  }
  /// What is computed of tiles: of those without hidden points, and, with `hidden` as the first
  /// nest's value of such points, of others.
  void add_of_tiles(std::vector<Place> places, std::vector<RowNest> nests, double hidden) {
    Part part = rows(piece(axes_.key), piece(axes_.query), innermost());
    part.places = std::move(places);
    part.rows.nests = std::move(nests);
    if (!step_.mask) return add(std::move(part));
    part.pieces = Schedule::Pieces::whole;
    add(part);
    part.pieces = Schedule::Pieces::cut;
    part.rows.axes = query_and_key();
    ScalarExpr& body = part.rows.nests[0].body;
    const Ex query = Ex::index(0), key = Ex::index(1);
    if (attention_.reach) {
      const Ex last = query + Ex::size(*attention_.reach);
      body = where(Ex::apply(ScalarOp::le, key, last), Ex::of(body), Ex(hidden));
    }
    if (attention_.back) {
      const Ex first = query - Ex::size(*attention_.back);
      body = where(Ex::apply(ScalarOp::ge, key, first), Ex::of(body), Ex(hidden));
    }
    add(std::move(part));
  }
  /// attention.operands at a tile: as they lie, or, where code does not read them so, copied.
  std::vector<Place> places_beside() {
    std::vector<Place> places;
    for (const Operand& operand : attention_.operands) {
      places.push_back(place(operand, axes_.key, axes_.query));
      if (target_.reads(operand.dtype, places.back().step, DType::f32)) continue;
      const Place copied = scratch(block(axes_.key), block(axes_.query));
      add_elements({places.back(), copied}, {{.inputs = {0}, .output = 1, .body = Ex::input(0)}},
                   true);
      places.back() = copied;
    }
    return places;
  }
  struct Function {
    ScalarExpr body;  // of the first places
    std::size_t to;   // the place of its values
  };
  /// Functions of elements of tiles, one after the other: by code, row by row, or, as strips have
  /// all functions, each in strips.
  void add_functions(const std::vector<Place>& places, const std::vector<Function>& functions) {
    const bool has_code =
        std::all_of(functions.begin(), functions.end(), [&](const Function& function) {
          return std::all_of(
              function.body.steps.begin(), function.body.steps.end(),
              [&](const ScalarStep& step) { return target_.has(step.op, DType::f32); });
        });
    std::vector<RowNest> nests;
    for (const auto& [body, to] : functions) {
      RowNest nest{.output = to, .body = body};
      int most = 0;
      for (const ScalarStep& step : body.steps)
        if (step.op == ScalarOp::input) most = std::max(most, step.which);
      for (int p = 0; p <= most; ++p) nest.inputs.push_back(static_cast<std::size_t>(p));
      nests.push_back(std::move(nest));
    }
    if (has_code) return add_elements(places, std::move(nests), false);
    for (RowNest& nest : nests) {
      // Of its own places alone.
      std::vector<Place> own;
      for (std::size_t& p : nest.inputs) own.push_back(places[p]);
      own.push_back(places[nest.output]);
      nest.output = own.size() - 1;
      add_elements(std::move(own), {std::move(nest)}, true);
    }
  }
  /// An operand of products: as it lies, or converted for each piece.
  Place matrix(const Operand& operand, std::size_t rows, std::size_t along) {
    Place as_it_lies = place(operand, rows, along);
    if (operand.dtype == DType::f32) return as_it_lies;
    Place converted = scratch(block(rows), axes_.of[along].size);
    add_copy(as_it_lies, converted, piece(rows), all(along), inside(rows));
    return converted;
  }
  /// Parts so far are done in the order of the loops that they are inside of.
  void sort_parts() {
    std::stable_sort(step_.parts.begin(), step_.parts.end(),
                     [](const Part& a, const Part& b) { return a.inside < b.inside; });
  }

 private:
  void add_elements(std::vector<Place> places, std::vector<RowNest> nests, bool in_strips) {
    Part part = rows(piece(axes_.key), piece(axes_.query), innermost());
    part.places = std::move(places);
    part.rows.nests = std::move(nests);
    part.rows.in_strips = in_strips;
    part.rows.axes = query_and_key();
    add(std::move(part));
  }
  /// Their indices, which expressions ask for.
  std::vector<Schedule::Rows::Axis> query_and_key() const {
    return {{.loop = loop_of_[axes_.query], .is_along = true},
            {.loop = loop_of_[axes_.key], .is_row = true}};
  }

  Schedule& schedule_;
  const Attention& attention_;
  const Target& target_;
  Axes axes_;
  Schedule::Step step_;
  std::vector<int> loop_of_;  // of each axis
};

class AttentionChooser {
 public:
  AttentionChooser(const Program& program, const Attention& attention, const Target& target)
      : attention_(attention), target_(target), axes_(attention) {
    schedule_.buffers = program.buffers.size();
  }

  Schedule run() {
    if (!attention_.gradients) {
      forward();
      return std::move(schedule_);
    }
    delta();
    Size heads = 1;
    for (std::size_t a = 0; a < axes_.query; ++a)
      heads *= stands_still(a) ? Size(1) : axes_.of[a].size;
    if (heads >= target_.least_heads) {
      gradients(true, true);
    } else {
      // All scores are computed twice, but there are units enough for many threads.
      gradients(true, false);
      gradients(false, true);
    }
    return std::move(schedule_);
  }

 private:
  /// Whether keys and values are the same along an axis of the batch.
  bool stands_still(std::size_t axis) const {
    return ask_equal(attention_.k.strides[axis], 0) && ask_equal(attention_.v.strides[axis], 0);
  }

  void forward() {
    StepBuilder step(schedule_, attention_, target_);
    const auto [of, query, key, depth, width] = axes_;
    for (std::size_t a = 0; a < query; ++a) step.add_loop(a, false);
    step.add_loop(query, false);
    step.add_loop(key, true);
    const Extent one, queries = step.piece(query), all_width = step.all(width);
    const Place tile = step.scratch(step.block(key), step.block(query)),
                sum = step.scratch(step.block(query), of[width].size);
    const Place maximum = step.row_of_queries(), total = step.row_of_queries(),
                factor = step.row_of_queries(), of_tile = step.row_of_queries();
    step.add_rows(one, queries, 0, {maximum, total},
                  {{.output = 0, .body = Ex(lowest)}, {.output = 1, .body = Ex(0.0)}});
    step.add_rows(queries, all_width, 0, {sum}, {{.output = 0, .body = Ex(0.0)}});
    const Place q = step.matrix(attention_.q, query, depth),
                k = step.matrix(attention_.k, key, depth),
                v = step.matrix(attention_.v, key, width);

    step.add_product(tile, k, turned(q), key, depth, query, false);
    if (attention_.has_function()) {
      std::vector<Place> places = step.places_beside();
      places.insert(places.begin(), tile);
      step.add_functions(places, {{attention_.function, 0}});
    }
    step.add_of_tiles({tile, of_tile},
                      {{.inputs = {0},
                        .output = 1,
                        .body = Ex::input(0),
                        .combine = Combine::max,
                        .over = Schedule::Over::rows}},
                      -std::numeric_limits<double>::infinity());
    // What was added up so far was less the maximum before.
    const Ex less = (Ex::input(0) - Ex::input(1)) * Ex(attention_.scale),
             weight = attention_.has_function() ? weight_of(less) : exp_of(less);
    step.add_rows(one, queries, 1, {of_tile, maximum, factor, total},
                  {{.inputs = {0, 1},
                    .output = 0,
                    .body = Ex::apply(ScalarOp::max, Ex::input(0), Ex::input(1))},
                   {.inputs = {1, 0}, .output = 2, .body = weight},
                   {.inputs = {3, 2}, .output = 3, .body = Ex::input(0) * Ex::input(1)},
                   {.inputs = {0}, .output = 1, .body = Ex::input(0)}});
    step.add_of_tiles({tile, maximum, of_tile},
                      {{.inputs = {0, 1}, .output = 0, .body = weight},
                       {.inputs = {0},
                        .output = 2,
                        .body = Ex::input(0),
                        .combine = Combine::sum,
                        .over = Schedule::Over::rows}},
                      0);
    step.add_rows(one, queries, 1, {total, of_tile},
                  {{.inputs = {0, 1}, .output = 0, .body = Ex::input(0) + Ex::input(1)}});
    step.add_rows(queries, all_width, 1, {sum, turned(factor)},
                  {{.inputs = {0, 1}, .output = 0, .body = Ex::input(0) * Ex::input(1)}});
    step.add_product(sum, turned(tile), v, query, key, width, true);

    step.add_rows(queries, all_width, 0,
                  {sum, turned(total), step.place(attention_.out, query, width)},
                  {{.inputs = {0, 1}, .output = 2, .body = Ex::input(0) / Ex::input(1)}});
    if (attention_.log_sums) {
      const Ex log_sum =
          Ex::apply(ScalarOp::log, Ex::input(0)) + Ex::input(1) * Ex(attention_.scale);
      step.add_rows(
          queries, one, 0,
          {turned(total), turned(maximum), step.place(*attention_.log_sums, query, width)},
          {{.inputs = {0, 1}, .output = 2, .body = log_sum * Ex(1 / ln2), .is_scalar = true}});
    }
    step.finish();
  }

  /// The sum of dout · out of each query.
  void delta() {
    StepBuilder step(schedule_, attention_, target_);
    const auto [of, query, key, depth, width] = axes_;
    for (std::size_t a = 0; a < query; ++a) step.add_loop(a, false);
    step.add_loop(query, false);
    step.add_rows(step.piece(query), step.all(width), 0,
                  {step.place(attention_.gradients->dout, query, width),
                   step.place(attention_.out, query, width),
                   step.place(attention_.gradients->delta, query, width)},
                  {{.inputs = {0, 1},
                    .output = 2,
                    .body = Ex::input(0) * Ex::input(1),
                    .combine = Combine::sum}});
    step.finish();
  }

  /// A gradient, which is a sum over the pieces of loops.
  struct Sum {
    Place piece{};                  // of which products are added to
    Place all{};                    // where the sum is in the end, and what is cleared first
    std::optional<Place> result{};  // what it is converted to
    Extent rows, length;
    std::size_t inside = 0;
  };
  static Sum sum_of(StepBuilder& step, const Operand& result, std::size_t rows, std::size_t along,
                    Size length, bool is_of_all) {
    Sum sum{.rows = is_of_all ? step.all(rows) : step.piece(rows),
            .length = step.all(along),
            .inside = is_of_all ? 0 : step.inside(rows)};
    const auto all = [&](const Place& place) {
      return is_of_all ? step.with_all(place, rows) : place;
    };
    sum.piece = step.place(result, rows, along);
    sum.all = all(sum.piece);
    if (result.dtype == DType::f32) return sum;
    sum.result = sum.all;
    Operand scratch{.buffer = 0, .strides = std::vector<Size>(result.strides.size(), 0)};
    scratch.buffer = step.scratch(sum.rows.size, length).buffer;
    scratch.strides[along] = 1;
    scratch.strides[rows] = length;
    sum.piece = step.place(scratch, rows, along);
    if (!is_of_all) sum.piece = step.with_all(sum.piece, rows);
    sum.all = all(sum.piece);
    return sum;
  }

  /// Of queries, of keys and values, or of both. A unit goes over all queries and keys of a head,
  /// or, where only one of the two is wanted, has a piece of these and goes over the others.
  void gradients(bool of_queries, bool of_keys) {
    const Attention::Gradients& g = *attention_.gradients;
    const auto [of, query, key, depth, width] = axes_;
    StepBuilder step(schedule_, attention_, target_);
    const auto is_summed = [&](std::size_t a) { return of_keys && stands_still(a); };
    for (std::size_t a = 0; a < query; ++a) {
      if (!is_summed(a)) step.add_loop(a, false);
    }
    if (!of_queries) step.add_loop(key, false);
    if (!of_keys) step.add_loop(query, false);
    for (std::size_t a = 0; a < query; ++a) {
      if (is_summed(a)) step.add_loop(a, true);
    }
    if (of_keys) step.add_loop(query, true);
    if (of_queries) step.add_loop(key, true);

    std::vector<Sum> sums;
    const auto sum = [&](const std::optional<Operand>& result, std::size_t rows,
                         std::size_t along) -> std::optional<Place> {
      if (!result || !(rows == key ? of_keys : of_queries)) return std::nullopt;
      sums.push_back(
          sum_of(step, *result, rows, along, of[along].size, rows == key && step.is_serial(key)));
      return sums.back().piece;
    };
    const auto dq = sum(g.dq, query, depth), dk = sum(g.dk, key, depth), dv = sum(g.dv, key, width);
    if (sums.empty()) return;
    for (const Sum& of_sum : sums)
      step.add_rows(of_sum.rows, of_sum.length, of_sum.inside, {of_sum.all},
                    {{.output = 0, .body = Ex(0.0)}});
    const Place q = step.matrix(attention_.q, query, depth),
                k = step.matrix(attention_.k, key, depth),
                v = step.matrix(attention_.v, key, width), dout = step.matrix(g.dout, query, width);
    const Place log_sums = step.row_of_queries(), delta = step.row_of_queries();
    step.add_rows(step.piece(query), {}, step.inside(query),
                  {step.place(*attention_.log_sums, query, width), turned(log_sums),
                   step.place(g.delta, query, width), turned(delta)},
                  {{.inputs = {0}, .output = 1, .body = Ex::input(0) * Ex(ln2), .is_scalar = true},
                   {.inputs = {2}, .output = 3, .body = Ex::input(0), .is_scalar = true}});
    step.sort_parts();

    const Place tile = step.scratch(step.block(key), step.block(query)),
                slopes = step.scratch(step.block(key), step.block(query));
    const bool has_slope = (dq || dk) && !g.slope.steps.empty();
    std::optional<Place> of_scores;
    if (has_slope) of_scores = step.scratch(step.block(key), step.block(query));
    step.add_product(tile, k, turned(q), key, depth, query, false);
    if (attention_.has_function()) add_functions(step, tile, of_scores);
    const Ex less = Ex::input(0) * Ex(attention_.scale) - Ex::input(1),
             weight = attention_.has_function() ? weight_of(less) : exp_of(less);
    std::vector<Place> places{tile, log_sums, slopes, delta};
    std::vector<RowNest> nests{{.inputs = {0, 1}, .output = 0, .body = weight}};
    if (dq || dk) {
      step.add_product(slopes, v, turned(dout), key, width, query, false);
      RowNest nest{.inputs = {0, 2, 3},
                   .output = 2,
                   .body = Ex::input(0) * Ex(g.scale) * (Ex::input(1) - Ex::input(2))};
      if (has_slope) {
        nest.inputs.push_back(places.size());
        nest.body = Ex::of(nest.body) * Ex::input(3);
        places.push_back(*of_scores);
      }
      nests.push_back(std::move(nest));
    }
    step.add_of_tiles(std::move(places), std::move(nests), 0);
    if (dv) step.add_product(*dv, tile, dout, key, query, width, true);
    if (dk) step.add_product(*dk, slopes, q, key, query, depth, true);
    if (dq) step.add_product(*dq, turned(slopes), k, query, key, depth, true);
    std::stable_sort(sums.begin(), sums.end(),
                     [](const Sum& a, const Sum& b) { return a.inside > b.inside; });
    for (const Sum& of_sum : sums) {
      if (of_sum.result)
        step.add_copy(of_sum.all, *of_sum.result, of_sum.rows, of_sum.length, of_sum.inside);
    }
    step.finish();
  }

  /// tile = the function of the products in it, and `of_scores` its slope.
  void add_functions(StepBuilder& step, const Place& tile, const std::optional<Place>& of_scores) {
    std::vector<Place> places = step.places_beside();
    places.insert(places.begin(), tile);
    ScalarExpr function = attention_.function,
               slope = of_scores ? attention_.gradients->slope : ScalarExpr{};
    std::vector<StepBuilder::Function> functions;
    if (const auto common = common_part(function, slope)) {
      const std::size_t shared = places.size();
      places.push_back(step.scratch(step.block(axes_.key), step.block(axes_.query)));
      functions.push_back({*common, shared});
      function = reading(function, *common, static_cast<int>(shared));
      slope = reading(slope, *common, static_cast<int>(shared));
    }
    if (of_scores) {
      functions.push_back({slope, places.size()});
      places.push_back(*of_scores);
    }
    functions.push_back({function, 0});
    step.add_functions(places, functions);
  }

  const Attention& attention_;
  const Target& target_;
  Axes axes_;
  Schedule schedule_;
};

/// Whether code for rows reads or writes an operand along an axis.
bool is_read(const Operand& operand, std::size_t along, const Target& target) {
  return target.reads(operand.dtype, operand.strides[along], DType::f32);
}
bool is_written(const Operand& operand, std::size_t along, const Target& target) {
  return ask_equal(operand.strides[along], 1) && target.writes(operand.dtype, DType::f32);
}

}  // namespace

bool is_for_tiles(const Attention& attention, const Target& target) {
  const Axes axes(attention);
  const auto [of, query, key, depth, width] = axes;
  constexpr ScalarOp needed[] = {ScalarOp::mul, ScalarOp::sub, ScalarOp::add, ScalarOp::div,
                                 ScalarOp::max, ScalarOp::le,  ScalarOp::lt,  ScalarOp::where,
                                 ScalarOp::exp, ScalarOp::log};
  const auto has = [&](ScalarOp op) { return target.has(op, DType::f32); };
  if (!target.has_rows() || !std::all_of(std::begin(needed), std::end(needed), has)) return false;
  Size scores;
  if (multiply_overflows(of[query].size, of[key].size, scores) ||
      scores < target.least_score_bytes / static_cast<std::int64_t>(size_of(attention.q.dtype)))
    return false;
  const auto is_matrix = [&](const Operand& operand, std::size_t along) {
    return operand.dtype == DType::f32 || is_read(operand, along, target);
  };
  const auto is_result = [&](const std::optional<Operand>& operand, std::size_t along) {
    return !operand || is_written(*operand, along, target);
  };
  if (!is_matrix(attention.q, depth) || !is_matrix(attention.k, depth) ||
      !is_matrix(attention.v, width) || !is_written(attention.out, width, target))
    return false;
  if (!attention.gradients) return true;
  const Attention::Gradients& g = *attention.gradients;
  return is_matrix(g.dout, width) && is_read(g.dout, width, target) &&
         is_read(attention.out, width, target) && is_result(g.dq, depth) &&
         is_result(g.dk, depth) && is_result(g.dv, width);
}

Schedule choose(const Program& program, const Attention& attention, const Target& target) {
  return AttentionChooser(program, attention, target).run();
}

}  // namespace ein
