// Models, clusters and plans as words of the command line, and as text.
#pragma once

#include <string>

#include <ein/plan.hpp>

namespace CLI {
class App;
}

namespace ein::command {

class Json;

/// A Transformer's sizes as they were written.
struct ModelWords {
  std::string layers, width, heads, vocab, context, mlp;
  bool bias = false, untied = false;
};
/// --layers, --width, --heads, --vocab, --context, --mlp-width, --bias, --untied.
void add_model(CLI::App& app, ModelWords& words, bool is_required);
/// A UsageError where a word is no whole number, or one is missing.
napkin::Transformer model_of(const ModelWords& words);

/// What stands beside the devices' number and kind.
struct ClusterWords {
  std::string node = "8", inside, between;
};
/// --node, --node-link, --network.
void add_cluster(CLI::App& app, ClusterWords& words);
plan::Cluster cluster_of(const Hardware& device, std::int64_t devices, DType dtype,
                         const ClusterWords& words);

/// --optimizer's word, and mixed precision or f32.
napkin::Recipe recipe_of(const std::string& optimizer, bool mixed);
/// --keep: "all", "no-scores", "inputs".
napkin::Kept kept_of(const std::string& word);

/// The bill of one placement, for people and for programs.
std::string bill_text(const plan::Job& job, const plan::Placement& placement,
                      const plan::Cluster& cluster);
void add_bill(Json& json, const plan::Job& job, const plan::Placement& placement,
              const plan::Cluster& cluster);

}  // namespace ein::command
