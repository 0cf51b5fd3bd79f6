// ein account: what a language model has, costs and holds, of its config.json.
#include "account.hpp"

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <ein/nn/families.hpp>

#include "call.hpp"
#include "machine/printable.hpp"
#include "numbers.hpp"
#include "report.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein account config.json
  ein account llama-3.1-8b --context 8192 --device h100-sxm --count 8 --serve
  ein account qwen3-30b-a3b --json
  ein account ./model --train --batch 4 --html > account.html
  ein account gpt2 --device a100-sxm-80gb --plan 64 --batch 512

MODEL is a config.json, a directory that has one, or a name: gpt2, gpt2-xl, tinystories-33m, llama-2-7b, llama-3.1-8b,
llama-3.1-70b, llama-3.1-405b, smollm2-135m, mistral-7b-v0.1, mixtral-8x7b, qwen2.5-0.5b, qwen2.5-7b, qwen3-0.6b,
qwen3-8b, qwen3-30b-a3b, gemma-2-9b, gemma-3-1b-it, gemma-3-27b-it, phi-3-mini-4k, deepseek-v3, gpt-oss-20b. Numbers are of the graph of the
model, of which nothing is in memory; what is a formula of others, or an assumption, is called an estimate.

Exit code: 0, or 2 for a mistake in the call; 1 for a file that is not there or not understood, and the rest.)";

struct AccountWords {
  std::string model, context, batch, device, count, plan;
  std::string dtype = "bf16";
  bool train = false, serve = false;
  bool json = false, csv = false, markdown = false, latex = false, html = false;
};

AccountOptions options_of(const AccountWords& words) {
  AccountOptions options;
  const auto number = [](const char* option, const std::string& word, std::int64_t otherwise) {
    return word.empty() ? otherwise : whole_number(option, word);
  };
  options.context = number("--context", words.context, 0);
  options.batch = number("--batch", words.batch, 1);
  options.devices = number("--count", words.count, 1);
  options.planned = number("--plan", words.plan, 0);
  options.dtype = training_dtype(words.dtype);
  if (words.train != words.serve) {
    options.of_training = words.train;
    options.of_serving = words.serve;
  }
  if (!words.device.empty()) options.device = hardware_named(words.device);
  if (!options.device && (options.planned > 0 || !words.count.empty()))
    throw UsageError("--count and --plan need --device");
  return options;
}

std::string account_of(const AccountWords& words) {
  const int forms = words.json + words.csv + words.markdown + words.latex + words.html;
  if (forms > 1)
    throw UsageError("--json, --csv, --markdown, --latex and --html: one form at a time");
  const AccountOptions options = options_of(words);
  const Account root = account(nn::decoder_config(words.model), options);
  if (words.json) return account_json(root);
  if (words.csv) return account_csv(root);
  if (words.markdown) return account_markdown(root);
  if (words.latex) return account_latex(root);
  if (words.html) return account_html(root, printable_line(words.model));
  return account_text(root);
}

}  // namespace

void add_account(CLI::App& app, std::string& output) {
  CLI::App* command =
      app.add_subcommand("account", "Parameters, FLOPs, cache and memory of a language model");
  const auto words = std::make_shared<AccountWords>();
  add_word(*command, "MODEL", words->model, "a config.json, a directory or a name")->required();
  add_word(*command, "--context", words->context,
           "tokens of a sequence; those of the model without, at most 8192")
      ->type_name("N");
  add_word(*command, "--batch", words->batch, "sequences; 1 without")->type_name("N");
  add_word(*command, "--dtype", words->dtype, "of weights and cache: bf16, f16 or f32")
      ->type_name("DTYPE");
  add_word(*command, "--device", words->device, "h100-sxm, a100-40gb, cpu ...: times, what fits")
      ->type_name("DEVICE");
  add_word(*command, "--count", words->count, "how many of them; 1 without")->type_name("N");
  add_word(*command, "--plan", words->plan, "placements of training on so many devices")
      ->type_name("N");
  command->add_flag("--train", words->train, "memory and times of training alone");
  command->add_flag("--serve", words->serve, "memory and times of serving alone");
  command->add_flag("--json", words->json, "print one JSON object");
  command->add_flag("--csv", words->csv, "print comma-separated values");
  command->add_flag("--markdown", words->markdown, "print tables of Markdown");
  command->add_flag("--latex", words->latex, "print tabulars of LaTeX");
  command->add_flag("--html", words->html, "print a page, which needs nothing else");
  command->footer(examples);
  command->callback([words, &output] { output = account_of(*words); });
}

}  // namespace ein::command
