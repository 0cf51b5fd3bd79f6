// A pipeline: four Transformer blocks in two stages along the mesh axis "pipe", each of which has a
// microbatch's sequences split over "data". A process makes the modules of its stage alone, and
// passes microbatches on: one forward, one backward.
//
//     ein launch -n 4 -- ./sample_11_pipeline     four processes
//     ./sample_11_pipeline                        one that stands for all of them
#include <cstdio>
#include <map>
#include <vector>

#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include <ein/pipeline.hpp>

using namespace ein::literals;

int main() {
  const ein::Mesh mesh({{"pipe", 2}, {"data", 2}});
  const ein::Pipeline pipeline(mesh, "pipe");
  constexpr int microbatches = 4;

  std::map<int, ein::nn::Sequential> stages;
  std::vector<ein::Tensor> parameters;
  for (const int stage : pipeline.stages()) {
    ein::manual_seed(static_cast<std::uint64_t>(stage));  // the same on all processes of a stage
    for (int block = 0; block < 2; ++block) stages[stage].add<ein::nn::Block>(16, 2);
    for (const ein::Tensor& parameter : stages[stage].parameters()) parameters.push_back(parameter);
  }
  ein::optim::AdamW optimizer(parameters, {.learning_rate = 1e-3});

  // (microbatches, sequences, positions, features)
  ein::manual_seed(7);
  const ein::Tensor x =
      ein::rearrange(ein::randn({16, 8, 16}), "(m b) s c -> m b s c", "m"_a = microbatches);
  std::vector<ein::Tensor> inputs, targets;
  for (int m = 0; m < microbatches; ++m) {
    inputs.push_back(ein::place(x[m], pipeline.mesh(), "b@data s c"));
    targets.push_back(ein::place(ein::tanh(x[m]), pipeline.mesh(), "b@data s c"));
  }
  for (int step = 0; step <= 20; ++step) {
    // What a stage gives to the next is like inputs[0].
    const double loss = pipeline.step(
        inputs, inputs[0],
        [&](const ein::Tensor& y, int stage, int) { return stages.at(stage)(y); },
        [&](const ein::Tensor& y, int m) {
          return ein::mse_loss(y, targets[static_cast<std::size_t>(m)]);
        });
    optimizer.step();
    optimizer.zero_grad();
    if (step % 5 == 0 && mesh.rank() == 0) std::printf("step %2d  loss %.4f\n", step, loss);
  }
  if (mesh.rank() != 0) return 0;
  for (int stage = 0; stage < pipeline.size(); ++stage)
    std::printf("stage %d: microbatches in flight at most %d; a step gives\n%s", stage,
                pipeline.in_flight(stage, microbatches),
                to_string(pipeline.exchanges(stage, microbatches, inputs[0])).c_str());
}
