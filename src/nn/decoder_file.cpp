#include <ein/nn/decoder_file.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include <ein/error.hpp>
#include "graph/domain.hpp"
#include "io/file.hpp"
#include "io/json.hpp"
#include "nn/config_reader.hpp"
#include "nn/decoder_json.hpp"
#include "nn/require.hpp"

namespace ein::nn {
namespace {

/// Which whole numbers a field may be. Products of two sizes do not overflow.
struct Whole {
  std::int64_t least = 1, most = std::int64_t{1} << 24;
};
constexpr Whole a_size{}, size_or_default{0};
constexpr Domain any_number{.least = std::numeric_limits<double>::lowest()};

/// The names of enumerators, in their order.
template <class E>
constexpr std::array<std::string_view, 0> words_of{};
template <>
constexpr std::array<std::string_view, 3> words_of<NormConfig::Kind>{"layer", "rms", "none"};
template <>
constexpr std::array<std::string_view, 3> words_of<DecoderConfig::NormPlace>{"before", "after",
                                                                             "both"};
template <>
constexpr std::array<std::string_view, 3> words_of<DecoderConfig::Positions>{
    "learned", "in_attention", "none"};
template <>
constexpr std::array<std::string_view, 2> words_of<DecoderConfig::Initial>{"normal", "glorot"};
template <>
constexpr std::array<std::string_view, 4> words_of<Activation>{"gelu", "gelu_tanh", "silu", "relu"};
template <>
constexpr std::array<std::string_view, 2> words_of<Rotary::Layout>{"halves", "neighbours"};
template <>
constexpr std::array<std::string_view, 4> words_of<RotaryScaling::Rule>{"none", "linear", "llama3",
                                                                        "yarn"};

// Each struct's fields by name, with what numbers they may be: the one list for reading and
// writing. A field that is missing here does not compile.

template <class T, class Of>
concept FieldsOf = std::is_same_v<std::remove_const_t<T>, Of>;

template <FieldsOf<NormConfig> C, class F>
void visit_fields(C& config, const F& f) {
  auto& [kind, eps, bias, adds_one] = config;
  f("kind", kind);
  f("eps", eps, not_negative);
  f("bias", bias);
  f("adds_one", adds_one);
}

template <FieldsOf<RotaryScaling> C, class F>
void visit_fields(C& config, const F& f) {
  auto& [rule, factor, original, low, high, fast, slow, truncate, amplitude, mscale, mscale_all] =
      config;
  f("rule", rule);
  f("factor", factor, positive);
  f("original_positions", original, positive);
  f("low_frequency", low, positive);
  f("high_frequency", high, positive);
  f("beta_fast", fast, positive);
  f("beta_slow", slow, positive);
  f("truncate", truncate);
  f("amplitude", amplitude, positive);
  f("mscale", mscale, not_negative);
  f("mscale_all", mscale_all, not_negative);
}

template <FieldsOf<Rotary> C, class F>
void visit_fields(C& config, const F& f) {
  auto& [layout, base, part, scaling] = config;
  f("layout", layout);
  f("base", base, positive);
  f("fraction", part, fraction);
  f("scaling", scaling);
}

template <FieldsOf<LatentConfig> C, class F>
void visit_fields(C& config, const F& f) {
  auto& [rank, query_rank, turned, value_size, norm] = config;
  f("rank", rank, a_size);
  f("query_rank", query_rank, size_or_default);
  f("turned", turned, size_or_default);
  f("value_size", value_size, a_size);
  f("norm", norm);
}

template <FieldsOf<AttentionConfig> C, class F>
void visit_fields(C& config, const F& f) {
  auto& [heads, key_heads, head_size, window, cap, scale, bias, output_bias, norm, rotary, p,
         latent, sinks] = config;
  f("heads", heads, a_size);
  f("key_heads", key_heads, size_or_default);
  f("head_size", head_size, size_or_default);
  f("window", window, size_or_default);
  f("soft_cap", cap, not_negative);
  f("scale", scale, not_negative);
  f("bias", bias);
  f("output_bias", output_bias);
  f("query_key_norm", norm);
  f("rotary", rotary);
  f("dropout", p, below_one);
  f("latent", latent);
  f("sinks", sinks);
}

template <FieldsOf<FeedForwardConfig> C, class F>
void visit_fields(C& config, const F& f) {
  auto& [activation, gated, width, ratio, multiple, bias, limit] = config;
  f("activation", activation);
  f("gated", gated);
  f("width", width, size_or_default);
  f("ratio", ratio, Domain{0, 1 << 10, true});
  f("multiple", multiple, a_size);
  f("bias", bias);
  f("limit", limit, not_negative);
}

template <FieldsOf<MixtureConfig> C, class F>
void visit_fields(C& config, const F& f) {
  auto& [experts, chosen, expert, softmax_over_chosen, normalised, shared_width, capacity, sigmoid,
         groups, chosen_groups, scaling, router_bias] = config;
  f("experts", experts, a_size);
  f("chosen", chosen, a_size);
  f("expert", expert);
  f("softmax_over_chosen", softmax_over_chosen);
  f("normalised", normalised);
  f("shared_width", shared_width, size_or_default);
  f("capacity", capacity, not_negative);
  f("sigmoid", sigmoid);
  f("groups", groups, a_size);
  f("chosen_groups", chosen_groups, a_size);
  f("scaling", scaling, positive);
  f("router_bias", router_bias);
}

template <FieldsOf<DecoderConfig> C, class F>
void visit_fields(C& config, const F& f) {
  auto& [vocabulary, positions, width, layers, norm, norm_place, position, attention, local,
         is_local, feed_forward, mixture, is_mixture, tied, logit_cap, scale, p, initial, std] =
      config;
  f("vocabulary", vocabulary, a_size);
  f("positions", positions, a_size);
  f("width", width, a_size);
  f("layers", layers, Whole{1, 4096});
  f("norm", norm);
  f("norm_place", norm_place);
  f("position", position);
  f("attention", attention);
  f("local_attention", local);
  f("is_local", is_local);
  f("feed_forward", feed_forward);
  f("mixture", mixture);
  f("is_mixture", is_mixture);
  f("tied", tied);
  f("logit_cap", logit_cap, not_negative);
  f("embedding_scale", scale, any_number);
  f("dropout", p, below_one);
  f("initial", initial);
  f("initial_std", std, not_negative);
}

template <class T>
concept Struct = std::is_class_v<T> && std::is_aggregate_v<T>;

/// Reads the fields that an object has.
struct FieldReader {
  ConfigReader& reader;

  void operator()(const std::string& key, bool& field) const { field = reader.boolean(key, field); }
  void operator()(const std::string& key, std::int64_t& field, Whole whole) const {
    field = reader.integer(key, field, whole.least, whole.most);
  }
  void operator()(const std::string& key, double& field, const Domain& domain) const {
    field = reader.number(key, field, domain);
  }
  void operator()(const std::string& key, std::optional<double>& field,
                  const Domain& domain) const {
    if (reader.is_null(key)) field.reset();
    if (reader.has(key)) field = reader.number(key, 0, domain);
  }
  void operator()(const std::string& key, std::vector<bool>& field) const {
    const nlohmann::json* const list = reader.array(key);
    if (!list) return;
    field.clear();
    for (const nlohmann::json& item : *list) {
      if (!item.is_boolean()) reader.fail(key, "has something else than true and false");
      field.push_back(item.get<bool>());
    }
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(const std::string& key, E& field) const {
    if (!reader.has(key)) return reader.ignore({key});
    const std::string word = reader.text(key, "");
    const auto& words = words_of<E>;
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) {
      std::string known;
      for (const std::string_view one : words)
        known += (known.empty() ? "" : ", ") + std::string(one);
      reader.fail(key, "is " + io::in_quotes(word) + ", one of " + known + " is wanted");
    }
    field = static_cast<E>(found - words.begin());
  }
  template <Struct T>
  void operator()(const std::string& key, T& field) const {
    const nlohmann::json* const object = reader.object(key);
    if (!object) return;
    ConfigReader inside = reader.within(key, *object);
    visit_fields(field, FieldReader{inside});
    inside.require_all_known();
  }
  template <Struct T>
  void operator()(const std::string& key, std::optional<T>& field) const {
    if (reader.is_null(key)) field.reset();
    if (reader.has(key)) (*this)(key, field.emplace());
  }
};

void require_whole(const char* key, std::int64_t value, Whole whole) {
  if (value >= whole.least && value <= whole.most) return;
  throw Error(ErrorKind::value, "decoder_json: " + std::string(key) + " is " +
                                    std::to_string(value) + ", a whole number from " +
                                    std::to_string(whole.least) + " to " +
                                    std::to_string(whole.most) + " is wanted");
}

template <Struct T>
std::string object_text(const T& config, std::size_t indent);

/// A field as JSON.
struct FieldText {
  std::size_t indent;  // of the object that it is in

  std::string operator()(const char*, bool field) const { return field ? "true" : "false"; }
  std::string operator()(const char* key, std::int64_t field, Whole whole) const {
    require_whole(key, field, whole);
    return std::to_string(field);
  }
  std::string operator()(const char* key, double field, const Domain& domain) const {
    return nlohmann::json(require_in(domain, "decoder_json", key, field)).dump();
  }
  std::string operator()(const char*, const std::vector<bool>& field) const {
    std::string text;
    for (const bool one : field) text += (text.empty() ? "" : ", ") + (*this)("", one);
    return "[" + text + "]";
  }
  template <class E>
  requires std::is_enum_v<E> std::string operator()(const char*, E field) const {
    return io::json_string(std::string(words_of<E>.at(static_cast<std::size_t>(field))));
  }
  template <Struct T>
  std::string operator()(const char*, const T& field) const {
    return object_text(field, indent + 2);
  }
  template <class T, class... Limits>
  std::string operator()(const char* key, const std::optional<T>& field,
                         const Limits&... limits) const {
    return field ? (*this)(key, *field, limits...) : "null";
  }
};

template <Struct T>
std::string object_text(const T& config, std::size_t indent) {
  std::vector<std::string> items;
  visit_fields(config, [&](const char* key, const auto& field, const auto&... limits) {
    items.push_back(io::json_string(key) + ": " + FieldText{indent}(key, field, limits...));
  });
  return io::in_lines(items, "{}", indent);
}

constexpr int deepest_json = 8;
constexpr std::uint64_t longest_json = 1 << 20;

}  // namespace

std::string decoder_json(const DecoderConfig& config) { return object_text(config, 0) + "\n"; }

void save_decoder_config(const std::string& path, const DecoderConfig& config) {
  io::replace_file("save_decoder_config", path, decoder_json(config));
}

DecoderConfig parse_decoder_json(std::string_view text, const std::string& path) {
  const io::JsonTree tree(text, deepest_json, [&](const std::string& what) {
    io::fail("load_decoder", path, "is damaged: " + what);
  });
  if (!tree.root().is_object()) io::fail("load_decoder", path, "is damaged: it is no object");
  ConfigReader reader(tree.root(), path);
  DecoderConfig config;
  visit_fields(config, FieldReader{reader});
  reader.require_all_known();
  return config;
}

DecoderConfig load_decoder_config(const std::string& path) {
  const io::InputFile file("load_decoder", path);
  if (file.size() > longest_json) file.fail("is too long");
  return parse_decoder_json(file.read(), path);
}

}  // namespace ein::nn
