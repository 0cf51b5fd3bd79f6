// ein plan: the placements of a Transformer on a cluster, best first.
#include "plan.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <optional>

#include <ein/hardware.hpp>

#include "call.hpp"
#include "report.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein plan --layers 36 --width 4096 --heads 32 --vocab 51200 --context 2048 --bias --batch 512
           --device a100-sxm-80gb --devices 128
  ein plan --layers 32 --width 4096 --heads 32 --vocab 32000 --context 4096 --batch 256
           --device h100-sxm --devices 64 --top 10 --json
  ein plan --published --top 5     the table of docs/plan.md

Every data × model × pipe × ZeRO and every microbatch that divides, with the least time of a step: matrix products at
the device's peak, links at their bandwidth. It is an estimate from below; what fits keeps the most activations that
fit. ein napkin train --data ... prints one of them in full.

Exit code: 0, or 2 for a mistake in the call; 1 for the rest.)";

std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * part);
  return text;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

const char* word_of(napkin::Kept kept) {
  switch (kept) {
    case napkin::Kept::everything:
      return "all";
    case napkin::Kept::no_scores:
      return "no-scores";
    case napkin::Kept::layer_inputs:
      break;
  }
  return "inputs";
}

}  // namespace

void add_model(CLI::App& app, ModelWords& words, bool is_required) {
  const auto add = [&](const char* name, std::string& word, const char* description) {
    CLI::Option* option = add_word(app, name, word, description)->type_name("N");
    if (is_required) option->required();
  };
  add("--layers", words.layers, "how many blocks");
  add("--width", words.width, "the model's width");
  add("--heads", words.heads, "of attention");
  add("--vocab", words.vocab, "how many tokens there are");
  add("--context", words.context, "tokens of a sequence");
  add_word(app, "--mlp-width", words.mlp, "4 times the width without")->type_name("N");
  app.add_flag("--bias", words.bias, "linear layers and norms have biases");
  app.add_flag("--untied", words.untied, "the head is a weight of its own");
}

napkin::Transformer model_of(const ModelWords& words) {
  const auto number = [](const char* option, const std::string& word) {
    if (word.empty()) throw UsageError(std::string(option) + " is required");
    return whole_number(option, word);
  };
  napkin::Transformer model;
  model.layers = number("--layers", words.layers);
  model.width = number("--width", words.width);
  model.heads = number("--heads", words.heads);
  model.vocab = number("--vocab", words.vocab);
  model.context = number("--context", words.context);
  if (!words.mlp.empty()) model.mlp_width = number("--mlp-width", words.mlp);
  model.has_biases = words.bias;
  model.has_tied_head = !words.untied;
  return model;
}

void add_cluster(CLI::App& app, ClusterWords& words) {
  add_word(app, "--node", words.node, "devices that share a node; 8 without")->type_name("N");
  add_word(app, "--node-link", words.inside,
           "what a device sends in its node; NVLink or PCIe of the table without")
      ->type_name("BYTES/S");
  add_word(app, "--network", words.between,
           "what a device sends to other nodes; InfiniBand of the table without")
      ->type_name("BYTES/S");
}

plan::Cluster cluster_of(const Hardware& device, std::int64_t devices, DType dtype,
                         const ClusterWords& words) {
  const auto link = [](const char* option, const std::string& word) {
    return word.empty() ? 0 : positive_number(option, word);
  };
  return plan::cluster_of(device, devices, whole_number("--node", words.node), dtype,
                          link("--node-link", words.inside), link("--network", words.between));
}

napkin::Recipe recipe_of(const std::string& word, bool mixed) {
  using napkin::Optimizer;
  constexpr std::pair<const char*, Optimizer> optimizers[] = {{"sgd", Optimizer::sgd},
                                                              {"momentum", Optimizer::momentum},
                                                              {"adagrad", Optimizer::adagrad},
                                                              {"rmsprop", Optimizer::rmsprop},
                                                              {"adamw", Optimizer::adamw}};
  for (const auto& [name, optimizer] : optimizers) {
    if (word != name) continue;
    if (mixed) return napkin::mixed_precision(optimizer);
    return {optimizer, DType::f32, DType::f32, DType::f32, false};
  }
  throw UsageError("--optimizer: unknown '" + word +
                   "'; it may be sgd, momentum, adagrad, rmsprop or adamw");
}

napkin::Kept kept_of(const std::string& word) {
  for (const napkin::Kept kept :
       {napkin::Kept::everything, napkin::Kept::no_scores, napkin::Kept::layer_inputs}) {
    if (word == word_of(kept)) return kept;
  }
  throw UsageError("--keep: unknown '" + word + "'; it may be all, no-scores or inputs");
}

// --- one placement ---

std::string bill_text(const plan::Job& job, const plan::Placement& placement,
                      const plan::Cluster& cluster) {
  const plan::Bill bill = plan::bill(job, placement, cluster);
  const plan::Memory& memory = bill.memory;
  Table table({false, true, false});
  const auto bytes = [&](const char* label, double count, const std::string& note) {
    table.add({label, with_prefix(count, "B"), note});
  };
  const auto seconds = [&](const char* label, double time, const std::string& note) {
    table.add({label, duration(time), note});
  };
  table.add({"devices", std::to_string(cluster.devices),
             cluster.device + ", " + std::to_string(cluster.node) + " in a node, " +
                 with_prefix(cluster.inside, "B/s") + " inside, " +
                 with_prefix(cluster.between, "B/s") + " between"});
  table.add({"placement", "", plan::to_string(placement)});
  table.add({"microbatches", std::to_string(plan::microbatches(job, placement)),
             "of each pipeline and step"});
  table.add({""});
  bytes("memory", memory.total(),
        "of " + with_prefix(cluster.memory, "B") + " of a device: it " +
            (memory.total() <= cluster.memory ? "fits" : "does not fit") +
            (placement.pipe > 1 ? "; the fuller of the first and the last stage" : ""));
  const std::string zero = "ZeRO " + std::to_string(placement.zero);
  bytes("  parameters", memory.state.parameters, zero + " (Rajbhandari et al. 2020)");
  bytes("  gradients", memory.state.gradients, zero);
  bytes("  optimizer", memory.state.optimizer, zero + "; its state and the master copy");
  bytes("  gathered", memory.gathered, "a layer at a time");
  bytes("  activations", memory.activations,
        "estimate: s·b·h·(10 + 24/t + 5·a·s/(h·t)) a layer (Korthikanti et al. 2022), kept: " +
            std::string(word_of(placement.kept)));
  bytes("  logits", memory.logits, "estimate");
  table.add({""});
  bytes("sent", bill.bytes(), "of a device and step");
  for (const plan::Traffic& t : bill.traffic) {
    table.add({"  " + t.axis + " " + std::string(name(t.way)), with_prefix(t.sent(), "B"),
               t.what + ": " + std::string(plan::formula(t.way)) + " × " + fixed(t.times, 0) +
                   ", n = " + std::to_string(t.n) + ", V = " + with_prefix(t.bytes, "B") + "; " +
                   duration(t.seconds()) + " at " + with_prefix(t.bandwidth, "B/s")});
  }
  table.add({""});
  seconds("least time", bill.seconds(), "of a step; estimate, every part at its limit");
  seconds("  products", bill.compute_seconds, "at " + with_prefix(cluster.peak, "FLOP/s"));
  seconds("  waiting", bill.waiting_seconds, "all_reduces along model, between products");
  seconds("  idle", bill.idle_seconds,
          "pipeline bubble (p-1)/(v·m) = " + percent(bill.bubble) + " (Narayanan et al. 2021)");
  seconds("  exposed", bill.exposed_seconds, "other traffic that no product hides");
  seconds("  update", bill.update_seconds, "at " + with_prefix(cluster.bandwidth, "B/s"));
  table.add({"MFU", percent(bill.mfu), "at most"});
  table.add({"HFU", percent(bill.hfu), "at most; with what is computed again"});
  return table.text();
}

namespace {

void add_placement(Json& json, const std::string& prefix, const plan::Placement& placement) {
  json.add(prefix + "data", Count(placement.data));
  json.add(prefix + "model", Count(placement.model));
  json.add(prefix + "pipe", Count(placement.pipe));
  json.add(prefix + "zero", Count(placement.zero));
  json.add(prefix + "microbatch", Count(placement.microbatch));
  json.add(prefix + "chunks", Count(placement.chunks));
  json.add(prefix + "keep", word_of(placement.kept));
}

void add_summary(Json& json, const std::string& prefix, const plan::Bill& bill) {
  json.add(prefix + "memory", bill.memory.total());
  json.add(prefix + "sent", bill.bytes());
  json.add(prefix + "bubble", bill.bubble);
  json.add(prefix + "seconds", bill.seconds());
  json.add(prefix + "mfu_bound", bill.mfu);
  json.add(prefix + "hfu_bound", bill.hfu);
}

}  // namespace

void add_bill(Json& json, const plan::Job& job, const plan::Placement& placement,
              const plan::Cluster& cluster) {
  const plan::Bill bill = plan::bill(job, placement, cluster);
  add_placement(json, "", placement);
  json.add("microbatches", Count(plan::microbatches(job, placement)));
  add_summary(json, "", bill);
  json.add("memory.parameters", bill.memory.state.parameters);
  json.add("memory.gradients", bill.memory.state.gradients);
  json.add("memory.optimizer", bill.memory.state.optimizer);
  json.add("memory.gathered", bill.memory.gathered);
  json.add("memory.activations", bill.memory.activations);
  json.add("memory.logits", bill.memory.logits);
  for (const plan::Traffic& t : bill.traffic)
    json.add("sent." + t.axis + "." + std::string(name(t.way)) + "." + t.what, t.sent());
  json.add("flops.model", bill.model_flops);
  json.add("flops.executed", bill.executed_flops);
  json.add("seconds.products", bill.compute_seconds);
  json.add("seconds.waiting", bill.waiting_seconds);
  json.add("seconds.idle", bill.idle_seconds);
  json.add("seconds.exposed", bill.exposed_seconds);
  json.add("seconds.update", bill.update_seconds);
}

// --- all placements ---

namespace {

struct PlanWords {
  ModelWords model;
  ClusterWords cluster;
  std::string batch, devices, device, optimizer = "adamw", dtype = "bf16", top = "5";
  bool f32 = false, published = false, json = false;
};

std::string plans_text(const plan::Plans& plans, const plan::Job& job,
                       const plan::Cluster& cluster) {
  Table table({true, true, true, true, true, false, true, true, true, true, true});
  table.add({"data", "model", "pipe", "ZeRO", "microbatch", "keep", "memory", "sent", "bubble",
             "least time", "MFU at most"});
  for (const plan::Plan& p : plans.best) {
    table.add({std::to_string(p.placement.data), std::to_string(p.placement.model),
               std::to_string(p.placement.pipe), std::to_string(p.placement.zero),
               std::to_string(p.placement.microbatch), word_of(p.placement.kept),
               with_prefix(p.bill.memory.total(), "B"), with_prefix(p.bill.bytes(), "B"),
               percent(p.bill.bubble), duration(p.bill.seconds()), percent(p.bill.mfu)});
  }
  std::string text = std::to_string(cluster.devices) + " × " + cluster.device + ", " +
                     std::to_string(cluster.node) +
                     " in a node: " + with_prefix(cluster.inside, "B/s") + " inside, " +
                     with_prefix(cluster.between, "B/s") + " between\n" +
                     shown(napkin::parameters(job.model).total().approximate()) +
                     " parameters; memory and bytes sent of a device, a step of " +
                     std::to_string(job.batch) + " sequences; all estimates\n";
  if (!plans.best.empty()) text += table.text();
  text += std::to_string(plans.fitting) + " placements fit " + with_prefix(cluster.memory, "B") +
          ", " + std::to_string(plans.left_out) + " do not; the least memory is " +
          with_prefix(plans.least_memory, "B") + "\n";
  return text;
}

std::string plans_json(const plan::Plans& plans, const plan::Job& job,
                       const plan::Cluster& cluster) {
  Json json;
  json.add("parameters", napkin::parameters(job.model).total());
  json.add("batch", Count(job.batch));
  json.add("device", cluster.device);
  json.add("devices", Count(cluster.devices));
  json.add("node", Count(cluster.node));
  json.add("inside", cluster.inside);
  json.add("between", cluster.between);
  json.add("fitting", Count(plans.fitting));
  json.add("left_out", Count(plans.left_out));
  json.add("least_memory", plans.least_memory);
  for (std::size_t i = 0; i < plans.best.size(); ++i) {
    const std::string prefix = "plan." + std::to_string(i) + ".";
    add_placement(json, prefix, plans.best[i].placement);
    add_summary(json, prefix, plans.best[i].bill);
  }
  return json.text();
}

// --- the models of Narayanan et al. 2021 ---

/// A line of table 1, and of Megatron-LM's examples/sc21/run_table_1.sh, which has the microbatch
/// and the chunks.
struct Published {
  const char* name;  ///< parameters, in 10^9
  std::int64_t layers, width, heads, devices, batch, model, pipe, microbatch, chunks;
  int teraflops;  ///< measured, of a device, with what is computed again
  int percent;    ///< of the peak
};
constexpr std::int64_t published_vocab = 51200, published_context = 2048;
constexpr std::array<Published, 10> published = {{
    {"1.7", 24, 2304, 24, 32, 512, 1, 1, 16, 1, 137, 44},
    {"3.6", 30, 3072, 32, 64, 512, 2, 1, 16, 1, 138, 44},
    {"7.5", 36, 4096, 32, 128, 512, 4, 1, 16, 1, 142, 46},
    {"18.4", 40, 6144, 48, 256, 1024, 8, 1, 8, 1, 135, 43},
    {"39.1", 48, 8192, 64, 512, 1536, 8, 2, 4, 1, 138, 44},
    {"76.1", 60, 10240, 80, 1024, 1792, 8, 4, 2, 3, 140, 45},
    {"145.6", 80, 12288, 96, 1536, 2304, 8, 8, 2, 2, 148, 47},
    {"310.1", 96, 16384, 128, 1920, 2160, 8, 16, 1, 2, 155, 50},
    {"529.6", 105, 20480, 128, 2520, 2520, 8, 35, 1, 3, 163, 52},
    {"1008.0", 128, 25600, 160, 3072, 3072, 8, 64, 1, 1, 163, 52},
}};

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += cell.empty() ? " |" : " " + cell + " |";
  return text + "\n";
}

std::vector<std::string> cells_of(const plan::Placement& p, const plan::Bill& bill) {
  return {std::to_string(p.data) + " · " + std::to_string(p.model) + " · " + std::to_string(p.pipe),
          std::to_string(p.zero),
          std::to_string(p.microbatch),
          word_of(p.kept),
          fixed(bill.memory.total() / 1e9, 1),
          fixed(bill.bytes() / 1e9, 1),
          percent(bill.bubble),
          fixed(bill.seconds(), 2),
          percent(bill.mfu),
          percent(bill.hfu)};
}

/// Markdown: for each model the paper's placement beside its measurement, and the best plans.
std::string published_text(std::size_t top) {
  std::string text =
      row({"model", "GPUs", "plan", "data · model · pipe", "ZeRO", "microbatch", "keep", "GB",
           "GB sent", "bubble", "least time, s", "MFU at most", "HFU at most", "measured TFLOP/s",
           "measured HFU", "measured MFU", "measured time, s"});
  text += "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Published& m : published) {
    plan::Job job;
    job.model = {.layers = m.layers,
                 .width = m.width,
                 .heads = m.heads,
                 .vocab = published_vocab,
                 .context = published_context,
                 .has_biases = true};
    job.batch = m.batch;
    const plan::Cluster cluster = plan::cluster_of(hardware_named("a100-sxm-80gb"), m.devices, 8);
    const plan::Placement theirs{
        m.devices / m.model / m.pipe, m.model, m.pipe, 0, m.microbatch, m.chunks,
        napkin::Kept::layer_inputs};
    const plan::Bill bill = plan::bill(job, theirs, cluster);
    const double devices = static_cast<double>(m.devices);
    const double seconds = bill.executed_flops / (m.teraflops * 1e12 * devices);
    const auto add = [&](std::vector<std::string> head, const std::vector<std::string>& cells,
                         const std::vector<std::string>& tail) {
      head.insert(head.end(), cells.begin(), cells.end());
      head.insert(head.end(), tail.begin(), tail.end());
      text += row(head);
    };
    add({std::string(m.name) + "B", std::to_string(m.devices), "the paper's"},
        cells_of(theirs, bill),
        {std::to_string(m.teraflops), std::to_string(m.percent) + " %",
         percent(mfu(bill.model_flops, seconds, devices * cluster.peak)), fixed(seconds, 2)});
    const plan::Plans plans = plan::plans(job, cluster, top);
    for (std::size_t i = 0; i < plans.best.size(); ++i) {
      add({"", "", std::to_string(i + 1) + (i == 0 ? " of " + std::to_string(plans.fitting) : "")},
          cells_of(plans.best[i].placement, plans.best[i].bill), {"", "", "", ""});
    }
  }
  return text;
}

std::string run(const PlanWords& words) {
  const auto top = static_cast<std::size_t>(whole_number("--top", words.top));
  if (words.published) return published_text(top);
  plan::Job job;
  job.model = model_of(words.model);
  for (const auto& [option, word] : {std::pair{"--batch", &words.batch},
                                     {"--devices", &words.devices},
                                     {"--device", &words.device}}) {
    if (word->empty()) throw UsageError(std::string(option) + " is required");
  }
  job.batch = whole_number("--batch", words.batch);
  job.recipe = recipe_of(words.optimizer, !words.f32);
  const DType dtype = dtype_of_word("--dtype", words.dtype, list_dtypes(is_floating));
  const plan::Cluster cluster = cluster_of(
      hardware_named(words.device), whole_number("--devices", words.devices), dtype, words.cluster);
  const plan::Plans plans = plan::plans(job, cluster, top);
  return words.json ? plans_json(plans, job, cluster) : plans_text(plans, job, cluster);
}

}  // namespace

void add_plan(CLI::App& app, std::string& output) {
  CLI::App* command =
      app.add_subcommand("plan", "Every placement of a Transformer on a cluster, best first");
  const auto words = std::make_shared<PlanWords>();
  add_model(*command, words->model, false);
  add_word(*command, "--batch", words->batch, "sequences of a step, over all devices")
      ->type_name("N");
  add_word(*command, "--devices", words->devices, "how many")->type_name("N");
  add_word(*command, "--device", words->device, "h100-sxm, a100-sxm-80gb ...")->type_name("DEVICE");
  add_cluster(*command, words->cluster);
  add_word(*command, "--top", words->top, "how many are printed; 5 without")->type_name("N");
  add_word(*command, "--optimizer", words->optimizer, "sgd, momentum, adagrad, rmsprop or adamw")
      ->type_name("NAME");
  add_word(*command, "--dtype", words->dtype, "what products compute in; bf16 without")
      ->type_name("DTYPE");
  command->add_flag("--f32-state", words->f32,
                    "parameters and gradients in f32, instead of bf16 with an f32 master copy");
  command->add_flag("--published", words->published,
                    "the GPT models of Narayanan et al. 2021, as a table of Markdown");
  command->add_flag("--json", words->json, "print one JSON object");
  command->footer(examples);
  command->callback([words, &output] { output = run(*words); });
}

}  // namespace ein::command
