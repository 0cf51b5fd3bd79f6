#include <ein/account.hpp>
#include <ein/compile.hpp>
#include <ein/error.hpp>
#include <ein/nn/module.hpp>
#include <ein/step_bill.hpp>

#include <algorithm>

#include "graph/diagnostic.hpp"

namespace ein {

Account& Account::add(Account line) { return parts.emplace_back(std::move(line)); }

const Account* Account::find(std::string_view path) const {
  const Account* line = this;
  while (line && !path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view word = path.substr(0, dot);
    const auto part = std::ranges::find(line->parts, word, &Account::key);
    line = part == line->parts.end() ? nullptr : &*part;
    path = dot == path.npos ? std::string_view{} : path.substr(dot + 1);
  }
  return line;
}

Count Account::count(std::string_view path) const {
  const Account* line = find(path);
  if (line && std::holds_alternative<Count>(line->value)) return std::get<Count>(line->value);
  throw Error(ErrorKind::value,
              "Account: there is no count " + quoted(std::string(path)) +
                  "; find() gives lines of other kinds, and null where there is none");
}

namespace {

Account bytes(const char* key, const char* name, std::size_t count, const char* note = "") {
  return {
      .key = key, .name = name, .value = Count(std::uint64_t{count}), .unit = "B", .note = note};
}

}  // namespace

Account account(const StepBill& bill, const MemoryPlan& memory) {
  struct Phase {
    const char *key, *name;
    const Cost* cost;
  };
  const Phase phases[] = {{"forward", "forward", &bill.forward},
                          {"recompute", "computed again", &bill.recompute},
                          {"backward", "backward", &bill.backward},
                          {"update", "update", &bill.update}};
  const Cost total = bill.total();
  Account root;
  Account flops{.key = "flops",
                .name = "FLOPs",
                .value = total.model,
                .unit = "FLOP",
                .note = "of one run, from the loop nests",
                .is_sum = true};
  Account products{.key = "products",
                   .name = "of them in products",
                   .value = total.matmul_only,
                   .unit = "FLOP",
                   .is_sum = true};
  Account moved{.key = "bytes_moved",
                .name = "bytes moved",
                .value = total.bytes(),
                .unit = "B",
                .note = "read and written",
                .is_sum = true};
  for (const Phase& phase : phases) {
    flops.add({.key = phase.key, .name = phase.name, .value = phase.cost->model, .unit = "FLOP"});
    products.add(
        {.key = phase.key, .name = phase.name, .value = phase.cost->matmul_only, .unit = "FLOP"});
    moved.add({.key = phase.key, .name = phase.name, .value = phase.cost->bytes(), .unit = "B"});
  }
  root.add(std::move(flops));
  root.add(std::move(products));
  root.add(std::move(moved));

  Account kinds{.key = "kinds", .name = "tensors by kind"};
  kinds.add(bytes("parameters", "parameters", bill.parameters));
  kinds.add(bytes("gradients", "gradients", bill.gradients, "left to the update, or returned"));
  kinds.add(bytes("optimizer", "optimizer", bill.optimizer_state));
  kinds.add(bytes("constants", "constants", bill.constants));
  kinds.add(bytes("activations", "activations", bill.activations,
                  "of the forward pass, kept for the backward pass"));
  root.add(std::move(kinds));

  Account held = bytes("memory", "memory", memory.peak(), "the most at one time");
  held.is_sum = true;
  held.add(bytes("arguments", "arguments", memory.arguments));
  held.add(bytes("state", "state", memory.state, "parameters, optimizer, constants"));
  held.add(bytes("results", "results", memory.results));
  held.add(bytes("arena", "intermediate values", memory.arena, "in one block that they share"));
  held.add(bytes("workspace", "workspace", memory.workspace, "of kernels"));
  root.add(std::move(held));
  return root;
}

namespace {

/// Adds a parameter to the line of each module on its way.
void add_along(Account& line, std::string_view path, const Tensor& parameter) {
  const std::size_t dot = path.find('.');
  const std::string word(path.substr(0, dot));
  auto part = std::ranges::find(line.parts, word, &Account::key);
  if (part == line.parts.end()) {
    line.add({.key = word, .name = word, .value = Count(0)});
    part = line.parts.end() - 1;
  }
  part->value = std::get<Count>(part->value) + Count(parameter.numel());
  line.is_sum = true;
  if (dot == path.npos)
    part->note = parameter.shape().to_string() + " " + std::string(name(parameter.dtype()));
  else
    add_along(*part, path.substr(dot + 1), parameter);
}

}  // namespace

Account nn::Module::account() const {
  Account root;
  Account& total = root.add({.key = "parameters", .name = "parameters", .value = Count(0)});
  Count held = 0;
  for (const auto& [name, parameter] : named_parameters()) {
    total.value = std::get<Count>(total.value) + Count(parameter.numel());
    held += Count(parameter.numel()) * Count(std::uint64_t{size_of(parameter.dtype())});
    add_along(total, name, parameter);
  }
  root.add({.key = "bytes", .name = "bytes of parameters", .value = held, .unit = "B"});
  return root;
}

Account detail::CompiledFunction::account() const { return ein::account(bill(), memory()); }

}  // namespace ein
