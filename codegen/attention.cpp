// Attention and its gradients, without a matrix of scores in memory: forward with a running maximum
// and sum of each query (Milakov and Gimelshein 2018, Dao et al. 2022), backward from the logarithm
// of that sum. Each result belongs to one block, so that the order of all additions is fixed.
#include "codegen/attention.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "codegen/elements.hpp"
#include "codegen/expression.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

/// What any device from sm_80 on gives a block.
constexpr std::size_t most_shared_bytes = 99 << 10;
/// Sizes of heads that kernels are made for.
constexpr std::int64_t least_width = 16, most_width = 256, width_step = 8;

/// Axes of the batch; those along which keys and values stand still are apart.
struct Batch {
  AxisList moving, still, all;
};
Batch batch_of(const Attention& a) {
  Batch batch;
  for (std::size_t i = 0; i + 4 < a.axes.size(); ++i) {
    (always_equal(a.k.strides[i], 0) && always_equal(a.v.strides[i], 0) ? batch.still
                                                                        : batch.moving)
        .push_back(i);
    batch.all.push_back(i);
  }
  return batch;
}

class AttentionKernel : AttentionWriter {
 public:
  enum class Kind { forward, queries, keys };

  /// `dk`, `dv`: which gradients the kernel of that kind writes.
  AttentionKernel(const Attention& a, const AttentionTiles& tiles, const std::string& name,
                  Kind kind, bool dk = false, bool dv = false)
      : AttentionWriter(a, tiles, name), kind_(kind), batch_(batch_of(a)) {
    const std::size_t query = a.axes.size() - 4;
    const auto rows = [&](const char* name, const LoopNest::Operand& operand, bool of_queries,
                          bool of_width) {
      const std::size_t axis = query + (of_queries ? 0 : 1), inner = query + (of_width ? 3 : 2);
      return AttentionRows{name,
                           &operand,
                           of_queries == (kind != Kind::keys),
                           a.axes[axis].size,
                           a.axes[inner].size,
                           operand.strides[axis],
                           operand.strides[inner]};
    };
    queries_ = a.axes[query].size;
    keys_ = a.axes[query + 1].size;
    // All keys are within reach of all queries.
    if (a.reach && *a.reach < keys_ - 1) reach_ = *a.reach;
    if (a.back && *a.back < queries_ - 1) back_ = *a.back;
    q_ = rows("q", a.q, true, false);
    k_ = rows("k", a.k, false, false);
    v_ = rows("v", a.v, false, true);
    if (kind == Kind::forward) {
      out_ = rows("out", a.out, true, true);
      return;
    }
    const Attention::Gradients& g = *a.gradients;
    dout_ = rows("dout", g.dout, true, true);
    if (kind == Kind::queries) dq_ = rows("dq", *g.dq, true, false);
    if (dk) dk_ = rows("dk", *g.dk, false, false);
    if (dv) dv_ = rows("dv", *g.dv, false, true);
  }

  KernelSource write() {
    const std::vector<const AttentionRows*> rows = operands();
    declare_arguments(rows);
    for (std::size_t i = 0; i < attention_.operands.size(); ++i) {
      const LoopNest::Operand& operand = attention_.operands[i];
      w_.pointer("const " + element_type(operand.dtype), beside(i), operand);
    }
    if (kind_ == Kind::forward) {
      if (attention_.log_sums) w_.pointer("float", "log_sums", *attention_.log_sums);
    } else {
      w_.pointer("const float", "log_sums", *attention_.log_sums);
      if (has_scores_gradient()) w_.pointer("const float", "delta", attention_.gradients->delta);
    }
    for (const AttentionRows* result : results())
      w_.pointer(element_type(result->operand->dtype), result->name, *result->operand);
    declare_tiles(rows, kind_ == Kind::keys);
    write_block();
    write_thread();
    for (const AttentionRows* result : results())
      w_.line(declared(result->name + "_sum", tiles_.slots_of(result->width)));
    kind_ == Kind::keys ? write_by_keys() : write_by_queries();
    KernelSource kernel = w_.finish(blocks());
    kernel.shared_bytes = shared_bytes();
    return kernel;
  }

 private:
  bool has_scores_gradient() const { return kind_ == Kind::queries || dk_; }
  std::vector<const AttentionRows*> operands() const {
    std::vector<const AttentionRows*> all{&q_, &k_};
    if (kind_ == Kind::forward || has_scores_gradient()) all.push_back(&v_);
    if (dout_) all.push_back(&*dout_);
    return all;
  }
  std::vector<const AttentionRows*> results() const {
    std::vector<const AttentionRows*> all;
    for (const auto* result : {&out_, &dq_, &dk_, &dv_}) {
      if (*result) all.push_back(&**result);
    }
    return all;
  }

  Size kept_count() const { return kind_ == Kind::keys ? keys_ : queries_; }
  Size tile_count() const { return ceil_div(kept_count(), tiles_.rows); }
  const AxisList& block_axes() const { return kind_ == Kind::keys ? batch_.moving : batch_.all; }
  Size blocks() const { return tile_count() * size_of_axes(shape_, block_axes()); }

  void write_block() {
    w_.block_number("block");
    std::string tile = modulo("block", tile_count());
    // The queries that see most keys first: they take longest.
    if (reach_ && kind_ != Kind::keys && !is_one(tile_count()))
      tile = "(" + count(tile_count() - 1) + " - " + tile + ")";
    w_.line("const u32 kept_first = " + times(tile, tiles_.rows) + ";");
    w_.indices(shape_, block_axes(), divided("block", tile_count()));
  }

  std::string factor() const {
    return literal(DType::f32, attention_.scale * std::numbers::log2e, 0);
  }
  static std::string beside(std::size_t i) { return "beside" + std::to_string(i); }
  /// Where operands beside the product begin.
  void write_bases_beside() {
    for (std::size_t i = 0; i < attention_.operands.size(); ++i)
      write_base(attention_.operands[i], beside(i), batch_.all);
  }
  static std::string infinity() { return literal(DType::f32, INFINITY, 0); }
  static std::string minus_infinity() { return literal(DType::f32, -INFINITY, 0); }
  std::string row_place(const std::string& name, const std::string& query) const {
    const std::size_t axis = attention_.axes.size() - 4;
    return name + "_at[" + w_.index_type() + "(" + query + ")" +
           (is_one(attention_.log_sums->strides[axis])
                ? ""
                : " * " + w_.number(attention_.log_sums->strides[axis])) +
           "]";
  }

  // --- the loop over tiles ---

  /// Opens a loop over the rows [`begin`, `end`) of the other side.
  void open_tiles(const std::string& begin, const std::string& end) {
    if (tiles_.by_mma) {
      w_.open("const auto fetch = [&](u32 into, u32 next) {");
      for (const AttentionRows* rows : operands()) {
        if (!rows->is_kept) write_fetch(*rows);
      }
      if (kind_ == Kind::keys) write_sums("into", "next");
      w_.close("};");
      w_.line("fetch(0, " + begin + ");");
      w_.line("u32 stage = 0;");
    }
    w_.open("for (u32 first = " + begin + "; first < " + end +
            "; first += " + count(tiles_.columns) + ") {");
    if (tiles_.by_mma) {
      w_.line("commit_copies();");
      w_.line("wait_for_copies<0>();");
      w_.line("__syncthreads();");
      w_.line("if (first + " + count(tiles_.columns) + " < " + end + ") fetch(stage ^ 1, first + " +
              count(tiles_.columns) + ");");
      if (has_hidden_tiles()) {
        const std::string rows = "kept_first + warp_row";
        w_.open(kind_ == Kind::keys
                    ? "if (" + rows + " <= first + " + count(tiles_.columns - 1 + *reach_) + ") {"
                    : "if (first <= " + rows + " + " + count(16 * tiles_.each - 1 + *reach_) +
                          ") {");
      }
    } else if (kind_ == Kind::keys) {
      w_.line("const u32 stage = 0;");
      write_sums("stage", "first");
    }
  }
  void close_tiles() {
    if (has_hidden_tiles()) w_.close();
    if (tiles_.by_mma) w_.line("stage ^= 1;");
    w_.close();
  }
  /// Whether some of a block's warps see nothing of a tile that others see.
  bool has_hidden_tiles() const { return tiles_.by_mma && reach_ && tiles_.rows > tiles_.columns; }
  void fetch_kept() {
    if (!tiles_.by_mma) return;
    for (const AttentionRows* rows : operands()) {
      if (rows->is_kept) write_fetch(*rows);
    }
  }

  /// Hides what a query does not see. `query` and `key` are of element r, n of the scores.
  void write_mask(const std::string& query, const std::string& key, const std::string& is_sure) {
    std::string hidden;
    if (kind_ != Kind::keys && !always_equal(keys_ % tiles_.columns, 0))
      hidden = key + " >= " + count(keys_);
    const std::string either = " || ";
    if (reach_)
      hidden += (hidden.empty() ? "" : either) + key + " > " + added(query, count(*reach_));
    if (back_) hidden += (hidden.empty() ? "" : either) + added(key, count(*back_)) + " < " + query;
    if (hidden.empty()) return;
    w_.open("if (!(" + is_sure + ")) {");
    open_rows();
    open_columns(tiles_.column_slots());
    w_.line("if (" + hidden + ") " + at("s", "r", "n") + " = " + minus_infinity() + ";");
    w_.close();
    w_.close();
    w_.close();
  }

  // --- functions of the product ---

  /// An operand beside it at the query and the key at hand, which may lie behind the last.
  std::string read_beside(std::size_t i) const {
    const LoopNest::Operand& operand = attention_.operands[i];
    const std::size_t query = attention_.axes.size() - 4;
    std::string place;
    for (std::size_t axis : {query, query + 1}) {
      if (always_equal(operand.strides[axis], 0)) continue;
      const std::string last = count(attention_.axes[axis].size - 1), index = axis_name(axis);
      std::string term =
          w_.index_type() + "(" + index + " < " + last + " ? " + index + " : " + last + ")";
      if (!is_one(operand.strides[axis])) term += " * " + w_.number(operand.strides[axis]);
      place = place.empty() ? term : place + " + " + term;
    }
    return converted(beside(i) + "_at[" + (place.empty() ? "0" : place) + "]", operand.dtype,
                     DType::f32);
  }
  /// `to` = a function of the products s. `query` and `key` are of element r, n.
  void write_function(const std::string& to, ScalarExpr function, const std::string& query,
                      const std::string& key) {
    const std::size_t axis = attention_.axes.size() - 4;
    for (ScalarStep& step : function.steps) {
      if (step.op == ScalarOp::index) step.which += static_cast<int>(axis);
    }
    open_rows();
    open_columns(tiles_.column_slots());
    w_.line("const u32 " + axis_name(axis) + " = " + query + ", " + axis_name(axis + 1) + " = " +
            key + ";");
    ElementText element{.inputs = {at("s", "r", "n")}};
    for (std::size_t i = 0; i < attention_.operands.size(); ++i)
      element.inputs.push_back(read_beside(i));
    w_.line(at(to, "r", "n") + " = " + write_expression(w_, function, DType::f32, element) + ";");
    w_.close();
    w_.close();
  }
  bool has_slope() const {
    return kind_ != Kind::forward && has_scores_gradient() &&
           !attention_.gradients->slope.steps.empty();
  }
  void write_functions(const std::string& query, const std::string& key) {
    if (has_slope()) {
      w_.line(declared("slope", tiles_.column_slots()));
      write_function("slope", attention_.gradients->slope, query, key);
    }
    if (attention_.has_function()) write_function("s", attention_.function, query, key);
  }
  /// Whether a query may see no key of a tile that is computed for it.
  bool may_see_nothing() const { return back_ || attention_.has_function(); }

  // --- blocks of queries: forward, and dq ---

  void write_by_queries() {
    for (const AttentionRows* rows : operands()) write_base(*rows, batch_.all);
    for (const AttentionRows* rows : results()) write_base(*rows, batch_.all);
    write_bases_beside();
    if (attention_.log_sums) write_base(*attention_.log_sums, "log_sums", batch_.all);
    if (kind_ == Kind::queries) write_base(attention_.gradients->delta, "delta", batch_.all);
    const std::string rows = std::to_string(tiles_.row_slots());
    if (kind_ == Kind::forward) {
      w_.line("float largest[" + rows + "], total[" + rows + "];");
      w_.line("for (int r = 0; r < " + rows + "; ++r) largest[r] = " + minus_infinity() +
              ", total[r] = 0.0f;");
    } else {
      w_.line("float log_sum[" + rows + "], mean[" + rows + "];");
      open_rows();
      const std::string query = "kept_first + " + row("r");
      w_.line("const bool inside = " + query + " < " + count(queries_) + ";");
      w_.line("log_sum[r] = inside ? " + row_place("log_sums", query) + " : 0.0f;");
      w_.line("mean[r] = inside ? " + row_place("delta", query) + " : 0.0f;");
      w_.close();
    }
    std::string end = count(keys_), seen_by_all = end;
    if (reach_) {
      w_.line("const u32 end = kept_first + " + count(tiles_.rows + *reach_) + " < " + end +
              " ? kept_first + " + count(tiles_.rows + *reach_) + " : " + end + ";");
      seen_by_all = "(kept_first + " + count(*reach_ + 1) + " < " + end + " ? kept_first + " +
                    count(*reach_ + 1) + " : " + end + ")";
      end = "end";
    }
    std::string begin = "0", sure = "first + " + count(tiles_.columns) + " <= " + seen_by_all;
    if (back_) {
      // Keys before these no query of the block sees.
      const std::string tile = count(tiles_.columns), back = count(*back_);
      w_.line("const u32 begin = (kept_first > " + back + " ? kept_first - " + back + " : 0u) / " +
              tile + " * " + tile + ";");
      begin = "begin";
      sure += " && kept_first + " + count(tiles_.rows - 1) + " <= " + added("first", back);
    }
    const std::string query = "kept_first + " + row("r"), key = "first + " + column("n");
    fetch_kept();
    open_tiles(begin, end);
    write_product("s", q_, k_);
    write_functions(query, key);
    write_mask(query, key, sure);
    if (kind_ == Kind::forward) {
      write_weights();
      write_accumulation("out_sum", "s", v_);
    } else {
      write_product("ds", *dout_, v_);
      write_gradient_of_scores("log_sum[r]", "mean[r]");
      write_accumulation("dq_sum", "ds", k_);
    }
    close_tiles();
    // Queries that see no key have waited for nothing yet.
    if (tiles_.by_mma && back_ && queries_ > keys_ + *back_) {
      w_.line("commit_copies();");
      w_.line("wait_for_copies<0>();");
    }
    if (kind_ == Kind::queries)
      return write_result(*dq_, "dq_sum", literal(DType::f32, attention_.gradients->scale, 0));
    open_rows();
    w_.line("total[r] = " + across_lanes("total[r]", "a + b") + ";");
    if (attention_.log_sums) {
      const std::string query = "kept_first + " + row("r");
      w_.line("if (column == 0 && " + query + " < " + count(queries_) + ") " +
              row_place("log_sums", query) + " = largest[r] * " + factor() + " + log2f(total[r]);");
    }
    w_.line("total[r] = 1.0f / total[r];");
    w_.close();
    write_result(*out_, "out_sum", "total[r]");
  }

  /// Scores become weights, relative to the largest so far.
  void write_weights() {
    const std::int64_t slots = tiles_.column_slots();
    open_rows();
    w_.line("float most = largest[r];");
    open_columns(slots);
    w_.line("most = fmaxf(most, " + at("s", "r", "n") + ");");
    w_.close();
    w_.line("most = " + across_lanes("most", "fmaxf(a, b)") + ";");
    // -inf less -inf would be NaN.
    w_.line("const float shift = " +
            (may_see_nothing() ? "most == " + minus_infinity() + " ? 0.0f : " : std::string()) +
            "most * " + factor() + ";");
    w_.line("const float correction = power_of_two(largest[r] * " + factor() + " - shift);");
    w_.line("largest[r] = most;");
    w_.line("total[r] *= correction;");
    open_columns(slots);
    w_.line(at("s", "r", "n") + " = power_of_two(" + at("s", "r", "n") + " * " + factor() +
            " - shift);");
    w_.line("total[r] += " + at("s", "r", "n") + ";");
    w_.close();
    open_columns(tiles_.slots_of(v_.width));
    w_.line(at("out_sum", "r", "n") + " *= correction;");
    w_.close();
    w_.close();
  }

  /// s become probabilities, and ds, the gradients of those, become those of the scores.
  void write_gradient_of_scores(const std::string& log_sum, const std::string& mean) {
    open_rows();
    open_columns(tiles_.column_slots());
    const std::string s = at("s", "r", "n"), ds = at("ds", "r", "n");
    w_.line(s + " = power_of_two(" + s + " * " + factor() + " - " + log_sum + ");");
    if (has_scores_gradient())
      w_.line(ds + " = " + s + " * (" + ds + " - " + mean + ")" +
              (has_slope() ? " * " + at("slope", "r", "n") : "") + ";");
    w_.close();
    w_.close();
  }

  // --- blocks of keys: dk and dv ---

  void write_by_keys() {
    for (const AttentionRows* rows : operands()) {
      if (rows->is_kept) write_base(*rows, batch_.moving);
    }
    for (const AttentionRows* rows : results()) write_base(*rows, batch_.moving);
    fetch_kept();
    const Size groups = size_of_axes(shape_, batch_.still);
    if (!is_one(groups)) {
      w_.open("for (u32 group = 0; group < " + count(groups) + "; ++group) {");
      w_.line("__syncthreads();");
    }
    w_.indices(shape_, batch_.still, "group");
    for (const AttentionRows* rows : operands()) {
      if (!rows->is_kept) write_base(*rows, batch_.all);
    }
    write_bases_beside();
    write_base(*attention_.log_sums, "log_sums", batch_.all);
    if (has_scores_gradient()) write_base(attention_.gradients->delta, "delta", batch_.all);
    std::string begin = "0", end = count(queries_), sure;
    if (reach_) {
      // Queries before these see none of the block's keys.
      const std::string tile = count(tiles_.columns), reach = count(*reach_);
      const std::string least =
          always_equal(*reach_, 0)
              ? "kept_first"
              : "(kept_first > " + reach + " ? kept_first - " + reach + " : 0u)";
      w_.line("const u32 begin = " + least + " / " + tile + " * " + tile + ";");
      begin = "begin";
      sure = "kept_first + " + count(tiles_.rows - 1) + " <= " + added("first", reach);
    }
    if (back_) {
      // Nor do queries from there on.
      const std::string behind = "kept_first + " + count(tiles_.rows + *back_);
      w_.line("const u32 end = " + behind + " < " + end + " ? " + behind + " : " + end + ";");
      end = "end";
      sure += (sure.empty() ? "" : " && ") + ("first + " + count(tiles_.columns - 1)) +
              " <= " + added("kept_first", count(*back_));
    }
    const std::string query = "first + " + column("n"), key = "kept_first + " + row("r");
    open_tiles(begin, end);
    write_product("s", k_, q_);
    write_functions(query, key);
    write_mask(query, key, sure);
    if (has_scores_gradient()) write_product("ds", v_, *dout_);
    write_gradient_of_scores("tiles.log_sums[stage][" + column("n") + "]",
                             "tiles.delta[stage][" + column("n") + "]");
    if (dv_) write_accumulation("dv_sum", "s", *dout_);
    if (dk_) write_accumulation("dk_sum", "ds", q_);
    close_tiles();
    if (!is_one(groups)) w_.close();
    // Keys that no query sees have waited for nothing yet.
    if (tiles_.by_mma && reach_ && keys_ > queries_ + *reach_) {
      w_.line("commit_copies();");
      w_.line("wait_for_copies<0>();");
    }
    if (dk_) write_result(*dk_, "dk_sum", literal(DType::f32, attention_.gradients->scale, 0));
    if (dv_) write_result(*dv_, "dv_sum", "");
  }

  /// The sums of a tile of queries. Where there is no query, probabilities are 0.
  void write_sums(const std::string& stage, const std::string& first) {
    w_.open(loop("u32", "t", "threadIdx.x", count(tiles_.columns), count(tiles_.threads)));
    const std::string query = first + " + t";
    w_.line("const bool inside = " + query + " < " + count(queries_) + ";");
    w_.line("tiles.log_sums[" + stage + "][t] = inside ? " + row_place("log_sums", query) + " : " +
            infinity() + ";");
    if (has_scores_gradient())
      w_.line("tiles.delta[" + stage + "][t] = inside ? " + row_place("delta", query) + " : 0.0f;");
    w_.close();
  }

  Kind kind_;
  Batch batch_;
  Size queries_ = 0, keys_ = 0;
  std::optional<Size> reach_, back_;
  AttentionRows q_, k_, v_;
  std::optional<AttentionRows> dout_, out_, dq_, dk_, dv_;
};

using Kind = AttentionKernel::Kind;

/// Rows of shared memory are filled up to what is multiplied at once, and 16 bytes longer.
std::size_t bytes_of_row(std::int64_t width) {
  return 2 * static_cast<std::size_t>(ceil_div(width, 16) * 16 + 8);
}

/// Twice the rows to a warp read what comes by tiles half as often, if there are blocks enough and
/// the sums leave registers for it. Tiles are as long as memory and registers allow.
AttentionTiles tiles_for(const Attention& a, const Context& context, Kind kind) {
  if (!is_for_mma(a, context.target)) return {};
  const std::size_t query_axis = a.axes.size() - 4;
  const std::int64_t depth = a.axes[query_axis + 2].size, width = a.axes[query_axis + 3].size,
                     widest = std::max(depth, width);
  AttentionTiles tiles{.by_mma = true, .threads = 128, .each = 1, .rows = 64, .columns = 64};
  Size blocks = ceil_div(a.axes[query_axis + (kind == Kind::keys)].size, 128);
  for (std::size_t i = 0; i < query_axis; ++i) blocks *= a.axes[i].size;
  // The sums of wide rows take the registers of twice the rows; beside gradients, so do functions
  // of the scores.
  const bool has_room =
      widest <= (kind == Kind::keys ? 64 : 128) && !(kind != Kind::forward && a.has_function());
  if (blocks >= context.target.busy_blocks && has_room) {
    tiles.each = 2;
    tiles.rows = 128;
    if (kind == Kind::keys || widest > 64) tiles.columns = 32;
  }
  const auto bytes = [&] {
    const std::size_t both = bytes_of_row(depth) + bytes_of_row(width);
    const std::size_t kept = kind == Kind::forward ? bytes_of_row(depth) : both;
    return static_cast<std::size_t>(tiles.rows) * kept +
           static_cast<std::size_t>(tiles.columns) * (2 * both + (kind == Kind::keys ? 16 : 0));
  };
  while (bytes() > most_shared_bytes) {
    if (tiles.columns > 16) {
      tiles.columns /= 2;
    } else {
      tiles.rows /= 2;
      tiles.threads /= 2;
    }
  }
  return tiles;
}

/// delta: Σ dout · out of each query.
Kernels emit_delta(const Attention& a, const Context& context) {
  LoopNest nest;
  nest.axes = a.axes;
  nest.axes.back().reduced = true;
  nest.inputs = {a.gradients->dout, a.out};
  nest.output = a.gradients->delta;
  nest.body = Ex::input(0) * Ex::input(1);
  nest.combine = Combine::sum;
  nest.compute = DType::f32;
  // Nothing moves along the depth and the keys.
  nest.axes[a.axes.size() - 2].size = nest.axes[a.axes.size() - 3].size = 1;
  simplify(nest);
  return emit_reduce(nest, context);
}

}  // namespace

bool has_kernels_for(const Attention& attention) {
  return std::all_of(attention.axes.end() - 2, attention.axes.end(), [](const auto& axis) {
    return axis.size >= least_width && axis.size <= most_width &&
           ask_equal(axis.size % width_step, 0);
  });
}

Kernels emit_attention(const Attention& a, const Context& context) {
  Kernels kernels;
  const std::string type(name(a.q.dtype));
  const auto add = [&](const std::string& form, Kind kind, bool dk = false, bool dv = false) {
    kernels.push_back(AttentionKernel(a, tiles_for(a, context, kind),
                                      "attention_" + form + type + context.suffix, kind, dk, dv)
                          .write());
  };
  if (!a.gradients) {
    add("", Kind::forward);
    return kernels;
  }
  const Attention::Gradients& g = *a.gradients;
  if (g.dq || g.dk) kernels = emit_delta(a, context);
  if (g.dq) add("queries_", Kind::queries);
  // Sums for both take more registers than there are if rows are long.
  const std::size_t depth = a.axes.size() - 2;
  const bool at_once = a.axes[depth].size + a.axes[depth + 1].size <= 256;
  if (g.dk && g.dv && at_once) {
    add("keys_", Kind::keys, true, true);
  } else {
    if (g.dk) add("keys_", Kind::keys, true, false);
    if (g.dv) add("values_", Kind::keys, false, true);
  }
  return kernels;
}

}  // namespace ein::codegen
