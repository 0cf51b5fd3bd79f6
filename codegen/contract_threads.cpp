// Contractions in any numbers, and other reductions of pairs, by threads alone: tiles of the
// operands come into shared memory, two of each, and a thread has some elements of the result,
// neighbours in groups of 16 bytes.
#include <algorithm>
#include <bit>

#include "codegen/contract.hpp"
#include "codegen/expression.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

constexpr std::int64_t threads_a_side = 16;  // along each side of a tile, and depths of one
/// Depths whose sum is added to the total: the error grows with the number of these.
constexpr std::int64_t run_depth = 512;

/// Whether a thread has a total for each result beside the sum of the run at hand.
bool adds_in_runs(const LoopNest& nest, const PairRoles& roles) {
  return !is_contraction(nest) && is_floating(nest.compute) && *nest.combine == Combine::sum &&
         !(roles.k <= run_depth);
}

std::int64_t size_of_value(const LoopNest& nest) {
  return static_cast<std::int64_t>(size_of(nest.compute));
}
/// Neighbours that a thread has of `length` rows or columns, which it reads at once.
std::int64_t together_of(const LoopNest& nest, std::int64_t length) {
  return std::min<std::int64_t>(length / threads_a_side, 16 / size_of_value(nest));
}

class ThreadsWriter {
 public:
  ThreadsWriter(const LoopNest& nest, const PairRoles& roles, const Tile& tile,
                const std::string& kind, const Context& context)
      : nest_(nest),
        roles_(roles),
        tile_(tile),
        type_(element_type(nest.compute)),
        m_each_(std::to_string(tile.m / threads_a_side)),
        n_each_(std::to_string(tile.n / threads_a_side)),
        is_product_(is_contraction(nest)),
        in_runs_(adds_in_runs(nest, roles)),
        w_(kind + context.suffix, block_threads, has_narrow_indices(nest, roles), 2) {
    const auto name_of = [&](std::size_t input, const char* of_product) {
      return is_product_ ? of_product : "s" + std::to_string(input);
    };
    for (const std::size_t i : roles.left) {
      const std::string base = name_of(i, "a");
      sides_.push_back({i, base + "_tile", base, "m", roles.rows, roles.m, tile.m});
    }
    for (const std::size_t i : roles.right) {
      const std::string base = name_of(i, "b");
      sides_.push_back({i, base + "_tile", base, "n", roles.columns, roles.n, tile.n});
    }
  }

  KernelSource write() {
    declare_operands(w_, nest_, inputs_of(nest_.body));
    for (const ContractSide& s : sides_) {
      // Some columns more spread the elements of a column over the banks.
      w_.line("alignas(16) __shared__ Shared<" + type_ + "> " + s.tile + "[2][" +
              std::to_string(threads_a_side) + "][" + std::to_string(s.length + together(s)) +
              "];");
    }
    w_.block_number("block");
    write_tile_origin(w_, nest_, roles_, tile_, "block");
    write_places(w_, nest_, roles_, sides_);
    w_.line("const u32 across = threadIdx.x % 16u, down = threadIdx.x / 16u;");
    const std::string depth = count(roles_.k);
    std::string declared = type_ + " sum[" + m_each_ + "][" + n_each_ + "] = {}";
    for (const ContractSide& s : sides_) declared += ", " + s.base + "_next[" + each(s) + "]";
    w_.line(declared + ";");
    if (!is_product_) begin_pairs();
    w_.open("const auto fetch = [&](" + w_.unsigned_type() + " k_first) {");
    for (const ContractSide& s : sides_) write_fetch(s);
    w_.close("};");
    w_.open("const auto keep = [&](u32 stage) {");
    for (const ContractSide& s : sides_) write_keep(s);
    w_.close("};");
    w_.line("fetch(0);");
    w_.line("keep(0);");
    w_.line("__syncthreads();");
    w_.line("u32 stage = 0;");
    w_.open(loop(w_.unsigned_type(), "k_first", "0", depth, "16u"));
    // The next tiles are on their way while these are combined; with comparisons, too, threads
    // would have too few registers for that.
    const std::string fetch_next = "if (k_first + 16u < " + depth + ") fetch(k_first + 16u);";
    const bool is_ahead =
        std::all_of(sides_.begin(), sides_.end(), [&](const ContractSide& s) { return fills(s); });
    if (is_ahead) w_.line(fetch_next);
    write_depths();
    if (in_runs_)
      w_.line("if (k_first % " + count(run_depth) + " == " + count(run_depth - threads_a_side) +
              ") end_run();");
    w_.line("stage ^= 1u;");
    if (!is_ahead) w_.line(fetch_next);
    w_.line("if (k_first + 16u < " + depth + ") keep(stage);");
    w_.line("__syncthreads();");
    w_.close();
    if (in_runs_) w_.line("end_run();");
    write_result();
    return w_.finish(tile_.count(roles_));
  }

 private:
  bool is_left(const ContractSide& s) const { return s.name == "m"; }
  /// Rows or columns of a thread.
  const std::string& each(const ContractSide& s) const { return is_left(s) ? m_each_ : n_each_; }
  bool has_whole_depths() const { return always_equal(roles_.k % threads_a_side, 0); }
  /// Whether there is nothing outside of the operand in any of its tiles.
  bool fills(const ContractSide& s) const {
    return always_equal(s.count % s.length, 0) && has_whole_depths();
  }
  std::int64_t together(const ContractSide& s) const { return together_of(nest_, s.length); }
  /// Where row or column `each` of a thread lies in a tile of `length`.
  std::string place_of(const std::string& thread, const std::string& each,
                       std::int64_t length) const {
    const std::int64_t together = together_of(nest_, length);
    const std::string near = std::to_string(together),
                      step = std::to_string(threads_a_side * together);
    if (together == 1) return thread + " + 16 * " + each;
    return thread + " * " + near + " + " + each + " / " + near + " * " + step + " + " + each +
           " % " + near;
  }
  std::string row() const { return place_of("down", "i", tile_.m); }
  std::string column() const { return place_of("across", "j", tile_.n); }

  // --- tiles ---

  /// Declares where element p of a thread's part of a tile lies.
  void write_element_of_tile(const ContractSide& s) {
    const std::string length = count(s.length);
    w_.line("const u32 t = threadIdx.x + " + count(block_threads) + " * p;");
    w_.line(is_along_depth(nest_, roles_, s)
                ? "const u32 k = t % 16u, " + s.name + " = t / 16u;"
                : "const u32 " + s.name + " = t % " + length + ", k = t / " + length + ";");
  }
  void open_elements(const ContractSide& s) {
    w_.open_unrolled("for (u32 p = 0; p < " + count(s.length / threads_a_side) + "; ++p) {");
    write_element_of_tile(s);
  }
  std::string zero() const { return literal(nest_.compute, 0, 0); }
  void write_fetch(const ContractSide& s) {
    open_elements(s);
    const std::string at = s.name + "_first + " + s.name;
    const std::string element = converted(s.base + "[" + s.place(at, "k_first + k") + "]",
                                          nest_.inputs[s.input].dtype, nest_.compute);
    if (!fills(s))
      w_.line("const bool inside = " + at + " < " + count(s.count) + " && k_first + k < " +
              count(roles_.k) + ";");
    w_.line(s.base + "_next[p] = " + (fills(s) ? element : "inside ? " + element + " : " + zero()) +
            ";");
    w_.close();
  }
  void write_keep(const ContractSide& s) {
    open_elements(s);
    w_.line(s.tile + "[stage][k][" + s.name + "] = " + s.base + "_next[p];");
    w_.close();
  }

  // --- depths ---

  /// A thread's rows or columns of a tile, at one depth.
  std::string values(const ContractSide& s) const {
    return is_product_ ? (is_left(s) ? "left" : "right") : s.base + "_at";
  }
  void write_depths() {
    open_depths();
    std::string declared;
    for (const ContractSide& s : sides_)
      declared += (declared.empty() ? type_ + " " : ", ") + values(s) + "[" + each(s) + "]";
    w_.line(declared + ";");
    for (const ContractSide& s : sides_) {
      const std::string i = is_left(s) ? "i" : "j";
      w_.line("for (int " + i + " = 0; " + i + " < " + each(s) + "; ++" + i + ") " + values(s) +
              "[" + i + "] = " + s.tile + "[stage][k][" + (is_left(s) ? row() : column()) + "];");
    }
    if (is_product_) {
      w_.open("for (int i = 0; i < " + m_each_ + "; ++i) {");
      w_.line("for (int j = 0; j < " + n_each_ + "; ++j) sum[i][j] " +
              (is_wrapped(nest_.compute) ? "= plus(sum[i][j], times(left[i], right[j]));"
                                         : "+= left[i] * right[j];"));
      w_.close();
    } else {
      write_pairs();
    }
    w_.close();
  }

  /// Zeros beyond the depth add nothing to a sum of products; elsewhere it ends in time.
  void open_depths() {
    if (is_product_) {
      w_.open_unrolled("for (int k = 0; k < 16; ++k) {");
      return;
    }
    std::string end = "16u";
    if (!has_whole_depths()) {
      end = "depths";
      const std::string left = count(roles_.k) + " - k_first";
      w_.line("const u32 depths = " + left + " < 16u ? " + left + " : 16u;");
    }
    w_.line("#pragma unroll " + std::to_string(unrolled_depths(nest_, tile_)));
    w_.open(loop("u32", "k", "0", end, "1u"));
  }

  // --- pairs that are no products ---

  std::string kept(std::size_t input) const { return "h" + std::to_string(input); }

  /// What stands still along the depth, and the results before anything is combined.
  void begin_pairs() {
    std::vector<std::size_t> of_rows, of_columns, of_both;
    for (const std::size_t i : roles_.still) {
      const LoopNest::Operand& input = nest_.inputs[i];
      const bool has_rows = moves_along(input, roles_.rows),
                 has_columns = moves_along(input, roles_.columns);
      if (!has_rows && !has_columns) {
        w_.line("const " + type_ + " " + kept(i) + " = " + element(i) + ";");
        continue;
      }
      (has_rows && has_columns ? of_both : has_rows ? of_rows : of_columns).push_back(i);
      w_.line(type_ + " " + kept(i) + (has_rows ? "[" + m_each_ + "]" : "") +
              (has_columns ? "[" + n_each_ + "]" : "") + " = {};");
    }
    const auto read = [&](const std::vector<std::size_t>& inputs, const char* at) {
      for (const std::size_t i : inputs) w_.line(kept(i) + at + " = " + element(i) + ";");
    };
    if (!of_rows.empty() || !of_both.empty()) {
      open_rows();
      read(of_rows, "[i]");
      if (!of_both.empty()) {
        open_columns();
        read(of_both, "[i][j]");
        w_.close();
      }
      w_.close();
    }
    if (!of_columns.empty()) {
      open_columns();
      read(of_columns, "[j]");
      w_.close();
    }
    const std::string nothing = identity(*nest_.combine, nest_.compute);
    if (nothing != zero()) {
      open_results();
      w_.line("sum[i][j] = " + nothing + ";");
      close_results();
    }
    if (in_runs_) {
      w_.line(type_ + " total[" + m_each_ + "][" + n_each_ + "] = {};");
      w_.open("const auto end_run = [&] {");
      open_results();
      w_.line("total[i][j] += sum[i][j];");
      w_.line("sum[i][j] = " + zero() + ";");
      close_results();
      w_.close("};");
    }
  }

  /// An input's element at the indices at hand.
  std::string element(std::size_t input) const {
    const LoopNest::Operand& operand = nest_.inputs[input];
    return converted(input_name(input) + "[" + w_.place(operand) + "]", operand.dtype,
                     nest_.compute);
  }

  /// The body of each pair at depth k, and its combination.
  void write_pairs() {
    ElementText at{std::vector<std::string>(nest_.inputs.size())};
    const bool asks_depth = asks_any(roles_.depth);
    if (asks_depth || !roles_.of_depth.empty()) {
      w_.line("const " + w_.unsigned_type() + " depth = k_first + k;");
      w_.indices(nest_, roles_.depth, "depth");
    }
    for (const std::size_t i : roles_.of_depth) {
      at.inputs[i] = "d" + std::to_string(i);
      w_.line("const " + type_ + " " + at.inputs[i] + " = " + element(i) + ";");
    }
    for (const std::size_t i : roles_.still) {
      const LoopNest::Operand& input = nest_.inputs[i];
      at.inputs[i] = kept(i) + (moves_along(input, roles_.rows) ? "[i]" : "") +
                     (moves_along(input, roles_.columns) ? "[j]" : "");
    }
    for (const ContractSide& s : sides_)
      at.inputs[s.input] = values(s) + (is_left(s) ? "[i]" : "[j]");
    w_.open_unrolled("for (int i = 0; i < " + m_each_ + "; ++i) {");
    if (asks_any(roles_.rows)) declare_row();
    w_.open_unrolled("for (int j = 0; j < " + n_each_ + "; ++j) {");
    if (asks_any(roles_.columns)) declare_column();
    const std::string value =
        taken(*nest_.combine, nest_.compute, write_expression(w_, nest_.body, nest_.compute, at));
    w_.line("sum[i][j] = " + combined(*nest_.combine, nest_.compute, "sum[i][j]", value) + ";");
    close_results();
  }
  bool asks_any(const AxisList& axes) const {
    return std::any_of(axes.begin(), axes.end(),
                       [&](std::size_t axis) { return asks_index(nest_.body, axis); });
  }

  // --- results ---

  void open_results() {
    w_.open_unrolled("for (int i = 0; i < " + m_each_ + "; ++i) {");
    w_.open_unrolled("for (int j = 0; j < " + n_each_ + "; ++j) {");
  }
  void close_results() {
    w_.close();
    w_.close();
  }
  void declare_row() {
    w_.line("const " + w_.unsigned_type() + " m = m_first + " + row() + ";");
    w_.indices(nest_, roles_.rows, "m");
  }
  void declare_column() {
    w_.line("const " + w_.unsigned_type() + " n = n_first + " + column() + ";");
    w_.indices(nest_, roles_.columns, "n");
  }
  /// Rows of a thread that are in the result.
  void open_rows() {
    w_.open("for (int i = 0; i < " + m_each_ + "; ++i) {");
    w_.line("const " + w_.unsigned_type() + " m = m_first + " + row() + ";");
    w_.line("if (m >= " + count(roles_.m) + ") break;");
    w_.indices(nest_, roles_.rows, "m");
  }
  void open_columns() {
    w_.open("for (int j = 0; j < " + n_each_ + "; ++j) {");
    w_.line("const " + w_.unsigned_type() + " n = n_first + " + column() + ";");
    w_.line("if (n >= " + count(roles_.n) + ") break;");
    w_.indices(nest_, roles_.columns, "n");
  }
  void write_result() {
    open_rows();
    open_columns();
    write_element(w_, nest_, in_runs_ ? "total[i][j]" : "sum[i][j]");
    close_results();
  }

  const LoopNest& nest_;
  const PairRoles& roles_;
  const Tile& tile_;
  std::string type_;
  std::string m_each_, n_each_;  // rows and columns of a thread
  bool is_product_, in_runs_;
  std::vector<ContractSide> sides_;
  Writer w_;
};

}  // namespace

std::int64_t registers_of(const LoopNest& nest, const PairRoles& roles, const Tile& tile) {
  std::size_t results = adds_in_runs(nest, roles) ? 2 : 1;
  // What is read of a tile, and of the next one.
  std::size_t rows = 2 * roles.left.size(), columns = 2 * roles.right.size();
  for (const std::size_t i : roles.still) {
    const bool has_rows = moves_along(nest.inputs[i], roles.rows),
               has_columns = moves_along(nest.inputs[i], roles.columns);
    (has_rows && has_columns ? results : has_rows ? rows : columns) += 1;
  }
  const std::int64_t m = tile.m / threads_a_side, n = tile.n / threads_a_side;
  return size_of_value(nest) / 4 *
         (m * n * static_cast<std::int64_t>(results) + m * static_cast<std::int64_t>(rows) +
          n * static_cast<std::int64_t>(columns));
}

std::int64_t shared_bytes_of(const LoopNest& nest, const PairRoles& roles, const Tile& tile) {
  const auto bytes = [&](const std::vector<std::size_t>& inputs, std::int64_t length) {
    return static_cast<std::int64_t>(inputs.size()) * 2 * threads_a_side *
           (length + together_of(nest, length)) * size_of_value(nest);
  };
  return bytes(roles.left, tile.m) + bytes(roles.right, tile.n);
}

KernelSource emit_pairs_by_threads(const LoopNest& nest, const PairRoles& roles, const Tile& tile,
                                   const std::string& kind, const Context& context) {
  return ThreadsWriter(nest, roles, tile, kind, context).write();
}

}  // namespace ein::codegen
