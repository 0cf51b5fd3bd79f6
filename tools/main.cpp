// The ein command: patterns at the shell.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <sstream>
#include <string>

#include <ein/error.hpp>

#include "call.hpp"
#include "machine/printable.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace {

constexpr const char* description =
    R"(Patterns such as 'b s (h d) -> b h s d', checked, run on .npy files, costed or taken apart;
and a Transformer that is made of them, trained.)";

constexpr const char* examples = R"(Examples:
  ein check einsum 'b q d, b k d -> b q k' --shape 2,5,64 --shape 2,7,64
  ein run reduce 'h w c -> c' photo.npy --by mean -o colour.npy
  ein emit nest rearrange 'b s (h d) -> b h s d' --shape 2,128,512 --axis h=8
  ein draw rearrange 'b s (h d) -> b h s d' -o split-heads.svg
  ein cost einsum 'b q d, b k d -> b q k' --shape 8,512,64 --shape 8,512,64 --device h100-sxm
  ein emit cuda einsum 'b q d, b k d -> b q k' --shape 8,512,64 --shape 8,512,64 --dtype bf16
  ein bench einsum 'b q d, b k d -> b q k' --shape 8,512,64 --shape 8,512,64
  ein devices
  ein train --data shakespeare.txt --out run && ein sample --from run
  ein napkin train --params 70e9 --tokens 15e12 --device h100-sxm --count 1024
  ein plan --published --top 1
  ein account llama-3.1-8b --context 8192
  ein tokenize encode --tokenizer tokenizer.json --out ids.u16 text.txt
  ein launch -n 4 -- ./program
More of them: ein check --help, ein run --help, ein emit --help, ein draw --help,
ein cost --help, ein bench --help, ein devices --help, ein napkin --help, ein plan --help,
ein account --help, ein tokenize --help, ein train --help, ein sample --help, ein launch --help.

Exit code: 0; 2 for a mistake in the call, the pattern or the shapes; 1 for files and the rest; of
train and launch also those that their --help has.)";

/// Words of the command line and names of files may have anything in them.
int report(int exit_code, const std::string& text) {
  std::fprintf(stderr, "ein: %s\n", ein::printable_lines(text).c_str());
  return exit_code;
}

int write(const std::string& output) {
  // Of what was printed on the way.
  if (std::ferror(stdout)) return report(1, "cannot write the output: some of it is lost");
  const bool written = std::fwrite(output.data(), 1, output.size(), stdout) == output.size();
  if (written && std::fflush(stdout) == 0) return 0;
  return report(1, std::string("cannot write the output: ") + std::strerror(errno));
}

/// A pattern or a shape that does not fit is the caller's; a file or the machine's memory may not
/// be.
int exit_code(ein::ErrorKind kind) {
  const bool is_of_machine = kind == ein::ErrorKind::file || kind == ein::ErrorKind::memory ||
                             kind == ein::ErrorKind::device || kind == ein::ErrorKind::peer;
  return is_of_machine ? 1 : 2;
}

/// Prints a default as "--seed =1337", whichever CLI11 is there: newer ones say "--seed  [1337] ".
class Formatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string value = option->get_default_str(), newer = " [" + value + "] ";
    const std::size_t at = value.empty() ? std::string::npos : text.find(newer);
    return at == std::string::npos ? text : text.replace(at, newer.size(), "=" + value);
  }
};

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app(description, "ein");
    std::string output;
    app.set_version_flag("--version", "ein " EIN_VERSION, "Print the version");
    app.set_help_flag("-h,--help", "Print this help");
    app.formatter(std::make_shared<Formatter>());
    app.get_formatter()->column_width(28);
    app.get_formatter()->label("TEXT", "");
    app.get_formatter()->label("REQUIRED", "");
    app.footer(examples);
    app.require_subcommand(1);
    ein::command::add_check(app, output);
    ein::command::add_run(app, output);
    ein::command::add_emit(app, output);
    ein::command::add_draw(app, output);
    ein::command::add_cost(app, output);
    ein::command::add_bench(app, output);
    ein::command::add_step(app, output);
    ein::command::add_devices(app, output);
    ein::command::add_napkin(app, output);
    ein::command::add_plan(app, output);
    ein::command::add_account(app, output);
    ein::command::add_tokenize(app, output);
    int exit_code = 0;
    ein::command::add_train(app, exit_code);
    ein::command::add_sample(app, output);
    ein::command::add_launch(app, exit_code);
    std::vector<std::string> words = ein::command::mark_words(argc, argv);
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) {
        std::ostringstream text;
        app.exit(error, text, text);
        return write(text.str());
      }
      if (app.get_subcommands().empty()) {
        return report(
            2,
            "a subcommand is wanted: check, run, emit, draw, cost, bench, step, devices, napkin, "
            "plan, account, tokenize, train, sample or launch\n  see ein --help");
      }
      const std::string subcommand = app.get_subcommands().front()->get_name();
      return report(2, ein::printable_line(ein::command::without_marks(error.what())) +
                           "\n  see ein " + subcommand + " --help");
    }
    return exit_code != 0 ? exit_code : write(output);
  } catch (const ein::command::UsageError& error) {
    return report(2, error.what());
  } catch (const ein::Error& error) {
    return report(exit_code(error.kind()), error.what());
  } catch (const std::exception& error) {
    return report(1, error.what());
  }
}
