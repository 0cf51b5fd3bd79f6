// The subcommands of ein. Each adds itself to the command; when it is the one that is called, it
// leaves in `output` what goes to stdout.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace ein::command {

void add_check(CLI::App& app, std::string& output);
void add_run(CLI::App& app, std::string& output);
void add_emit(CLI::App& app, std::string& output);
void add_draw(CLI::App& app, std::string& output);
void add_cost(CLI::App& app, std::string& output);
void add_bench(CLI::App& app, std::string& output);
void add_step(CLI::App& app, std::string& output);
void add_devices(CLI::App& app, std::string& output);
void add_napkin(CLI::App& app, std::string& output);
void add_plan(CLI::App& app, std::string& output);
void add_account(CLI::App& app, std::string& output);
void add_tokenize(CLI::App& app, std::string& output);
// These two write to stdout as they go; of train that gives the exit code.
void add_train(CLI::App& app, int& exit_code);
void add_sample(CLI::App& app, std::string& output);
// Its programs write; the command ends with theirs.
void add_launch(CLI::App& app, int& exit_code);

}  // namespace ein::command
