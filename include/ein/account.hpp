// Account: what a model has, costs and holds, as a tree of lines.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ein/count.hpp>
#include <ein/dtype.hpp>
#include <ein/hardware.hpp>

namespace ein {

struct MemoryPlan;
struct StepBill;

namespace nn {
struct DecoderConfig;
}

/// A line, and the lines that belong to it. The root is one too, with an empty key.
struct Account {
  /// A count is exact; a double is in the unit, or a number without one; a text is a word.
  using Value = std::variant<std::monostate, Count, double, std::string>;

  std::string key;           ///< one word; keys from the root on, joined by dots, name a line
  std::string name{};        ///< for people
  Value value{};             ///< none of a line that is a heading
  std::string unit{};        ///< "FLOP", "B", "s"; empty: a number of things
  std::string note{};        ///< the formula, or where the number is from
  bool is_estimate = false;  ///< a formula that others defined, or an assumption; not the graph's
  bool is_sum = false;       ///< the values of its parts add up to its own
  std::vector<Account> parts{};

  /// Appends a line and returns it; the reference holds until the next one is appended.
  Account& add(Account line);
  /// The line of this path, "parameters.total"; null where there is none.
  const Account* find(std::string_view path) const;
  /// The count of such a line. An Error of kind `value` where there is none, or it has no count.
  Count count(std::string_view path) const;
};

/// What a decoder is to do.
struct AccountOptions {
  /// Tokens of a sequence; 0: those that the model is made for, at most 8192.
  std::int64_t context = 0;
  std::int64_t batch = 1;     ///< sequences
  DType dtype = DType::bf16;  ///< of weights, cache and products
  bool of_training = true, of_serving = true;
  std::optional<Hardware> device{};  ///< for times, and for what fits
  std::int64_t devices = 1;          ///< that share weights and work alike
  std::int64_t planned = 0;          ///< devices to place a training run on: ein::plan::plans
};

/// The account of a decoder, of which nothing is in memory (ein::ShapesOnly). Lines are
///
/// - `parameters`: total, active for a token (of a mixture the chosen experts), by module;
/// - `kv_bytes_per_token`, and `kv_bytes` of the context, where a window holds no more than itself;
/// - `flops_per_token.prefill`, `.decode`, `.training`: `counted`, which are the sums of products
///   of the graph, with attention in full; `causal`, without those that the mask hides; and the
///   conventions of others, each with its formula and its source (docs/account.md);
/// - `memory.training` and `memory.serving`, in bytes;
/// - `times` and `fits`, with a device; `plans`, where so many devices are to be planned for.
///
/// Products, parameters, caches and activations are taken of the graphs of one layer of each kind,
/// times the number of such layers. Errors: those of nn::Decoder; of kind `value` for a context, a
/// batch or devices below 1, for more positions than are learned, and for a dtype that is none of
/// f32, bf16 and f16; of kind `dtype` where the device promises no peak for it.
Account account(const nn::DecoderConfig& config, const AccountOptions& options = {});

/// Of a step that was compiled: `flops`, `bytes_moved` and `memory`, by phase and by kind.
Account account(const StepBill& bill, const MemoryPlan& memory);

}  // namespace ein
