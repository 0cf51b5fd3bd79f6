// Pipelines: the gradients and losses of one process, with the bits that it gives where it computes
// the microbatches in turn. One process stands for all stages; mesh_processes_test.cpp runs the
// same tests on processes that were launched.
#include <ein/pipeline.hpp>

#include <functional>
#include <random>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>

#include "support/expect_error.hpp"
#include "support/launched.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::expect_error;
using test::get_values;
using test::mesh_of;

/// A layer of a residual network; the first one is called with features, the last gives some.
struct Dense : nn::Layer {
  explicit Dense(int) : linear(8, 8) { add_module("linear", linear); }
  Tensor forward(const Tensor& x) const override { return x + gelu(linear(x)); }
  nn::Linear linear;
};

/// A part of a small Transformer: the first one also embeds, the last also gives logits.
struct Part : nn::Layer {
  static constexpr std::int64_t dim = 8, vocabulary = 11, positions = 6;
  explicit Part(int stage, int stages) : block(dim, 2) {
    add_module("block", block);
    if (stage == 0) {
      add_module("tokens", tokens.emplace(vocabulary, dim));
      add_module("places", places.emplace(positions, dim));
    }
    if (stage + 1 == stages) {
      add_module("norm", norm.emplace(dim));
      add_module("head", head.emplace(dim, vocabulary));
    }
  }
  Tensor forward(const Tensor& x) const override {
    const Tensor y = block(tokens ? (*tokens)(x) + places->weight : x);
    return head ? (*head)((*norm)(y)) : y;
  }
  nn::Block block;
  std::optional<nn::Embedding> tokens, places;
  std::optional<nn::LayerNorm> norm;
  std::optional<nn::Linear> head;
};

/// A model in stages, and what it is trained on.
struct Example {
  std::function<std::unique_ptr<nn::Layer>(int stage, int stages)> make;
  std::function<Tensor(int rows)> inputs, targets;  // of so many rows
  std::function<Tensor(const Tensor& y, const Tensor& target)> loss;
  std::function<Shape(int rows)> features;  // between stages
  const char *input_lies, *between_lies;

  std::unique_ptr<nn::Layer> stage(int stage, int stages) const {
    manual_seed(static_cast<std::uint64_t>(100 + stage));
    return make(stage, stages);
  }
};

Example mlp() {
  return {[](int stage, int) { return std::make_unique<Dense>(stage); },
          [](int rows) {
            return manual_seed(1), randn({rows, 8});
          },
          [](int rows) {
            return manual_seed(2), randn({rows, 8});
          },
          [](const Tensor& y, const Tensor& target) { return mse_loss(y, target); },
          [](int rows) {
            return Shape{rows, 8};
          },
          "b c",
          "b c"};
}

Example transformer() {
  const auto tokens = [](std::uint32_t seed) {
    return [seed](int rows) {
      std::mt19937 random(seed);
      std::vector<std::int64_t> values(static_cast<std::size_t>(rows) * Part::positions);
      for (std::int64_t& value : values) value = random() % Part::vocabulary;
      return from_vector(values, {rows, Part::positions});
    };
  };
  return {[](int stage, int stages) { return std::make_unique<Part>(stage, stages); },
          tokens(1),
          tokens(2),
          [](const Tensor& y, const Tensor& target) {
            return cross_entropy(y, target, "b s [v], b s");
          },
          [](int rows) {
            return Shape{rows, Part::positions, Part::dim};
          },
          "b s",
          "b s c"};
}

/// `pattern` with its first axis over the mesh axis data, where the mesh has one.
Tensor placed(const Tensor& x, const Mesh& mesh, std::string pattern) {
  for (const MeshAxis& axis : mesh.axes()) {
    if (axis.name == "data") pattern.insert(1, "@data");
  }
  return mesh.axes().empty() ? x : place(x, mesh, runtime(pattern));
}

/// The microbatches, each placed.
std::vector<Tensor> split(const Tensor& batch, int count, const Mesh& mesh, const char* pattern) {
  std::vector<Tensor> parts;
  const Size rows = batch.shape()[0] / count;
  for (int m = 0; m < count; ++m)
    parts.push_back(placed(batch.at({slice(m * rows, (m + 1) * rows)}), mesh, pattern));
  return parts;
}

Tensor between_of(const Example& example, int rows, const Mesh& mesh) {
  return placed(zeros(example.features(rows)), mesh, example.between_lies);
}

constexpr int rows_of_microbatch = 4;

/// A model whose stages are trained in a pipeline.
class Piped {
 public:
  Piped(const Example& example, const Pipeline& pipeline) : example_(example), pipeline_(pipeline) {
    for (const int s : pipeline.stages()) stages[s] = example.stage(s, pipeline.size());
  }
  double step(int microbatches) {
    const int rows = microbatches * rows_of_microbatch;
    const std::vector<Tensor> inputs = split(example_.inputs(rows), microbatches, pipeline_.mesh(),
                                             example_.input_lies),
                              targets = split(example_.targets(rows), microbatches,
                                              pipeline_.mesh(), example_.input_lies);
    return pipeline_.step(
        inputs, between_of(example_, rows_of_microbatch, pipeline_.mesh()),
        [&](const Tensor& x, int stage, int) { return (*stages.at(stage))(x); },
        [&](const Tensor& y, int m) {
          return example_.loss(y, targets[static_cast<std::size_t>(m)]);
        });
  }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all;
    for (const auto& [s, stage] : stages) {
      for (const Tensor& parameter : stage->parameters()) all.push_back(parameter);
    }
    return all;
  }

  std::map<int, std::unique_ptr<nn::Layer>> stages;

 private:
  const Example& example_;
  const Pipeline& pipeline_;
};

/// The same model in one process, on a mesh of the axes but pipe that it stands for.
class Whole {
 public:
  Whole(const Example& example, int count) : example_(example) {
    for (int s = 0; s < count; ++s) stages.push_back(example.stage(s, count));
  }
  Tensor forward(Tensor x) const {
    for (const auto& stage : stages) x = (*stage)(x);
    return x;
  }
  /// The microbatches in turn.
  double step(int microbatches, const Mesh& mesh) const {
    const int rows = microbatches * rows_of_microbatch;
    const std::vector<Tensor> inputs = split(example_.inputs(rows), microbatches, mesh,
                                             example_.input_lies),
                              targets = split(example_.targets(rows), microbatches, mesh,
                                              example_.input_lies);
    double sum = 0;
    for (std::size_t m = 0; m < inputs.size(); ++m) {
      const Tensor loss = example_.loss(forward(inputs[m]), targets[m]);
      sum += loss.detach().item();
      (loss / microbatches).backward();
    }
    return sum / microbatches;
  }
  /// The whole batch at once.
  double step_at_once(int microbatches) const {
    const int rows = microbatches * rows_of_microbatch;
    const Tensor loss = example_.loss(forward(example_.inputs(rows)), example_.targets(rows));
    loss.backward();
    return loss.detach().item();
  }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all;
    for (const auto& stage : stages) {
      for (const Tensor& parameter : stage->parameters()) all.push_back(parameter);
    }
    return all;
  }

  std::vector<std::unique_ptr<nn::Layer>> stages;

 private:
  const Example& example_;
};

// Two along data: MPI adds what more of them have in an order of its own.
const std::vector<std::vector<MeshAxis>> meshes = {{{"pipe", 4}},
                                                   {{"pipe", 2}, {"data", 2}},
                                                   {{"data", 2}, {"pipe", 2}},
                                                   {{"pipe", 1}, {"data", 2}, {"model", 2}}};

Mesh alone(const std::vector<MeshAxis>& axes) { return Mesh(axes, "loop").without("pipe"); }

TEST(PipelineTest, GradientsAreThoseOfOneProcess) {
  for (const Example& example : {mlp(), transformer()}) {
    for (const auto& axes : meshes) {
      const Mesh mesh = mesh_of(axes);
      const Pipeline pipeline(mesh, "pipe");
      for (const int microbatches : {1, 2, 3, 8}) {
        SCOPED_TRACE(std::to_string(pipeline.size()) + " stages, " + std::to_string(microbatches) +
                     " microbatches");
        Piped piped(example, pipeline);
        const Whole whole(example, pipeline.size());
        EXPECT_EQ(piped.step(microbatches), whole.step(microbatches, alone(axes)));
        for (const auto& [s, stage] : piped.stages) {
          const auto found = stage->named_parameters();
          const auto wanted = whole.stages[static_cast<std::size_t>(s)]->named_parameters();
          ASSERT_EQ(found.size(), wanted.size());
          for (std::size_t p = 0; p < found.size(); ++p)
            EXPECT_EQ(get_values(found[p].second.grad()), get_values(wanted[p].second.grad()))
                << s << " " << found[p].first;
        }
      }
    }
  }
}

TEST(PipelineTest, LossesOfTenStepsAreThoseOfOneProcess) {
  for (const Example& example : {mlp(), transformer()}) {
    for (const auto& axes : meshes) {
      const Mesh mesh = mesh_of(axes);
      const Pipeline pipeline(mesh, "pipe");
      Piped piped(example, pipeline);
      const Whole whole(example, pipeline.size());
      optim::AdamW of_stages(piped.parameters(), {.learning_rate = 1e-2}),
          of_all(whole.parameters(), {.learning_rate = 1e-2});
      if (axes[1 % axes.size()].name == "data") of_stages.shard(pipeline.mesh(), "data");  // ZeRO 1
      double first = 0, last = 0;
      for (int step = 0; step < 10; ++step) {
        const double wanted = whole.step_at_once(4), found = piped.step(4);
        EXPECT_NEAR(found, wanted, 1e-6 * wanted) << "step " << step;
        for (optim::AdamW* optimizer : {&of_stages, &of_all}) {
          optimizer->step();
          optimizer->zero_grad();
        }
        (step == 0 ? first : last) = found;
      }
      EXPECT_LT(last, 0.9 * first);
    }
  }
}

TEST(PipelineTest, WeightsOfAStageOverProcesses) {
  const std::vector<MeshAxis> axes{{"pipe", 2}, {"model", 2}};
  const Mesh mesh = mesh_of(axes);
  const Pipeline pipeline(mesh, "pipe");
  const Example example = mlp();
  const auto with_parts = [](const std::unique_ptr<nn::Layer>& stage, const Mesh& over) {
    stage->place(over, [](const std::string&, const Tensor& x) {
      return std::string(x.rank() == 2 ? "i@model o" : "");
    });
  };
  Piped piped(example, pipeline);
  for (const auto& [s, stage] : piped.stages) with_parts(stage, pipeline.mesh());
  const Whole whole(example, 2);
  const Mesh others = alone(axes);
  for (const auto& stage : whole.stages) with_parts(stage, others);
  // Features lie whole between the stages, and over model where a product takes them.
  const auto forward = [](const nn::Layer& stage, const Tensor& x, const Mesh& over) {
    const auto& linear = static_cast<const Dense&>(stage).linear;
    return x + gelu(einsum(place(x, over, "b i@model"), linear.weight, "b i, i o -> b o") +
                    *linear.bias);
  };
  const Tensor x = example.inputs(8), target = example.targets(8);
  const std::vector<Tensor> inputs{x.at({slice(0, 4)}), x.at({slice(4, 8)})};
  const auto loss = [&](const Tensor& y, int m) {
    return mse_loss(y, target.at({slice(4 * m, 4 * m + 4)}));
  };
  const double found = pipeline.step(
      inputs, zeros({4, 8}),
      [&](const Tensor& y, int s, int) { return forward(*piped.stages.at(s), y, pipeline.mesh()); },
      loss);
  double wanted = 0;
  for (const int m : {0, 1}) {
    Tensor y = inputs[static_cast<std::size_t>(m)];
    for (const auto& stage : whole.stages) y = forward(*stage, y, others);
    wanted += loss(y, m).detach().item() / 2;
    (loss(y, m) / 2).backward();
  }
  EXPECT_EQ(found, wanted);
  for (const auto& [s, stage] : piped.stages) {
    const auto of_process = [&](int here) {
      return test::is_launched() ? mesh.coordinate("model") : here;
    };
    const Tensor gradient = stage->parameters()[0].grad(),
                 of_whole = whole.stages[static_cast<std::size_t>(s)]->parameters()[0].grad();
    EXPECT_EQ(placement(gradient), "i0@model i1");
    EXPECT_EQ(get_values(gradient.local(0)), get_values(of_whole.local(of_process(0))));
  }
}

/// Counts calls that the backward pass still needs.
struct Alive {
  int now = 0, most = 0;
};
Tensor counted(const Tensor& x, Alive& alive) {
  const std::shared_ptr<void> token(nullptr, [&alive](void*) { --alive.now; });
  alive.most = std::max(alive.most, ++alive.now);
  return custom([token](const Tensor& y) { return y * 1; },
                [](const Tensor& g, const Tensor&, const Tensor&) { return g; })(x);
}

TEST(PipelineTest, MicrobatchesInFlight) {
  const Mesh mesh = mesh_of({{"pipe", 4}});
  const Pipeline pipeline(mesh, "pipe");
  EXPECT_EQ(pipeline.in_flight(0, 8), 4);
  EXPECT_EQ(pipeline.in_flight(3, 8), 1);
  EXPECT_EQ(pipeline.in_flight(0, 2), 2);
  const Tensor weight = ones({}).requires_grad(true);
  for (const int microbatches : {1, 2, 4, 9}) {
    std::map<int, Alive> alive;
    std::map<int, std::vector<int>> forwards;
    pipeline.step(
        std::vector<Tensor>(static_cast<std::size_t>(microbatches), ones({3})), zeros({3}),
        [&](const Tensor& x, int s, int m) {
          forwards[s].push_back(m);
          return counted(x * weight, alive[s]);
        },
        [](const Tensor& y, int) { return reduce(y, "a ->", "sum"); });
    for (const int s : pipeline.stages()) {
      EXPECT_EQ(alive[s].most, pipeline.in_flight(s, microbatches)) << s << " of " << microbatches;
      EXPECT_EQ(alive[s].now, 0);
      ASSERT_EQ(forwards[s].size(), static_cast<std::size_t>(microbatches));
      for (int m = 0; m < microbatches; ++m) EXPECT_EQ(forwards[s][static_cast<std::size_t>(m)], m);
    }
  }
}

TEST(PipelineTest, BytesArePredictedAndCounted) {
  for (const std::vector<MeshAxis>& axes :
       {std::vector<MeshAxis>{{"pipe", 4}}, std::vector<MeshAxis>{{"data", 2}, {"pipe", 2}}}) {
    const Mesh mesh = mesh_of(axes);
    const Pipeline pipeline(mesh, "pipe");
    const Example example = mlp();
    Piped piped(example, pipeline);
    const int stage = pipeline.stages().front();
    std::vector<Exchange> predicted =
        pipeline.exchanges(stage, 3, between_of(example, rows_of_microbatch, pipeline.mesh()));
    // 4 rows of 8 numbers, or half of the rows; those in the middle send both ways.
    const std::int64_t neighbours = (stage > 0) + (stage + 1 < pipeline.size());
    ASSERT_EQ(predicted.size(), 2u);
    EXPECT_EQ(predicted[1].collective, Collective::send);
    EXPECT_EQ(predicted[1].calls, 3 * neighbours);
    EXPECT_EQ(predicted[1].bytes, 3 * neighbours * (axes.size() == 1 ? 128 : 64));
    EXPECT_EQ(predicted[1].sent_by_ring(), static_cast<double>(predicted[1].bytes));
    const test::MpiCounts mpi;
    piped.step(3);
    EXPECT_EQ(mesh.exchanged(), predicted) << to_string(mesh.exchanged()) << "predicted\n"
                                           << to_string(predicted);
    for (const Exchange& exchange : pipeline.mesh().exchanged()) predicted.push_back(exchange);
    mpi.expect_given(predicted, mesh);
  }
}

TEST(PipelineTest, LargeTensorsPassBothWays) {
  // 4 MiB, more than a transport has room for.
  const Pipeline pipeline(mesh_of({{"pipe", 4}}), "pipe");
  const Tensor x = arange(1048576.0).to(DType::f32) / 1048576,
               weight = ones({1 << 20}).requires_grad(true);
  const double loss = pipeline.step(
      std::vector<Tensor>(6, x), x, [&](const Tensor& y, int, int) { return y * weight; },
      [](const Tensor& y, int) { return reduce(y, "a ->", "mean"); });
  EXPECT_NEAR(loss, 0.5, 1e-5);
  // Each stage's part of the derivative of x·w^4 at w = 1, of the mean of so many.
  const double of_each = test::is_launched() ? 1 : 4;
  const std::vector<double> gradient = get_values(weight.grad()), values = get_values(x);
  for (std::size_t i = 0; i < gradient.size(); i += 1009)
    EXPECT_NEAR(gradient[i] * (1 << 20), of_each * values[i], 1e-5);
}

TEST(PipelineTest, RandomNumbersAreThoseOfTheStage) {
  const auto losses_on = [](const Mesh& mesh) {
    const Pipeline pipeline(mesh, "pipe");
    manual_seed(5);
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step)
      losses.push_back(pipeline.step(
          std::vector<Tensor>(5, ones({100})), zeros({100}),
          [&](const Tensor& x, int, int) { return dropout(x, 0.2); },
          [](const Tensor& y, int) { return reduce(y * rand({100}), "a ->", "sum"); }));
    losses.push_back(rand({}).item());  // where all go on alike
    return losses;
  };
  const std::vector<double> losses = losses_on(mesh_of({{"pipe", 4}}));
  EXPECT_EQ(losses, losses_on(Mesh({{"pipe", 4}}, "loop")));
  EXPECT_NE(losses[0], losses[1]);
}

TEST(PipelineTest, SumsOverStages) {
  for (const auto& axes : meshes) {
    const Pipeline pipeline(mesh_of(axes), "pipe");
    std::vector<int> asked;
    const double sum = pipeline.sum([&](int s) {
      asked.push_back(s);
      return std::pow(10, s);
    });
    EXPECT_EQ(sum, pipeline.size() == 4 ? 1111 : pipeline.size() == 2 ? 11 : 1);
    EXPECT_EQ(asked, pipeline.stages());
  }
}

TEST(PipelineTest, WhereNoGradientFlows) {
  // Stage 1 does not depend on its input, and stage 0 has nothing to train.
  const Pipeline pipeline(mesh_of({{"pipe", 4}}), "pipe");
  const Tensor weight = ones({2}).requires_grad(true);
  const NoGrad no_grad;  // a step is a step still
  const double loss = pipeline.step(
      std::vector<Tensor>(3, ones({2})), zeros({2}),
      [&](const Tensor& x, int s, int) { return s == 0   ? x
                                                : s == 1 ? weight * 2
                                                         : x * 3; },
      [](const Tensor& y, int) { return reduce(y, "a ->", "sum"); });
  EXPECT_EQ(loss, 36);
  const bool has_stage_1 = test::is_launched() ? pipeline.stages().front() == 1 : true;
  EXPECT_EQ(weight.has_grad(), has_stage_1);
  if (has_stage_1) {
    EXPECT_NEAR(get_values(weight.grad())[0], 18, 1e-5);
  }
}

TEST(PipelineTest, Mistakes) {
  const Mesh mesh({{"pipe", 2}, {"data", 2}}, "loop");
  expect_error([&] { Pipeline(mesh, "stage"); }, ErrorKind::value,
               {"(pipe=2, data=2)", "no axis 'stage'"});
  const Pipeline pipeline(mesh, "pipe");
  const std::vector<Tensor> x(2, ones({4, 3}));
  expect_error([&] { pipeline.exchanges(2, 1, x[0]); }, ErrorKind::value, {"no stage 2", "0 to 1"});
  expect_error([&] { pipeline.in_flight(-1, 1); }, ErrorKind::value, {"no stage -1"});
  const auto same = [](const Tensor& y, int, int) { return y; };
  const auto sum = [](const Tensor& y, int) { return reduce(y, "... ->", "sum"); };
  const auto step = [&](const Tensor& between, const Pipeline::Stage& stage) {
    return pipeline.step(x, between, stage, sum);
  };
  expect_error([&] { pipeline.step({}, x[0], same, sum); }, ErrorKind::value,
               {"there are no microbatches"});
  expect_error(
      [&] {
        step(zeros({4, 5}), same);
      },
      ErrorKind::shape,
      {"stage 0 gives (4, 3) f32 for microbatch 0", "stage 1 takes (4, 5) f32", "help"});
  expect_error(
      [&] {
        step(zeros({4, 3}, DType::f64), same);
      },
      ErrorKind::dtype, {"(4, 3) f32", "(4, 3) f64"});
  expect_error([&] { step(place(x[0], pipeline.mesh(), "b@data c"), same); }, ErrorKind::placement,
               {"takes (4, 3) f32, \"i0@data i1\""});
  expect_error([&] { step(place(x[0], mesh, "b@data c"), same); }, ErrorKind::placement,
               {"another mesh", "pipeline.mesh()"});
  expect_error(
      [&] {
        step(zeros({4, 3}, DType::i32), same);
      },
      ErrorKind::value, {"no gradient flows through i32"});
  expect_error([&] { pipeline.step(x, x[0], same, [](const Tensor& y, int) { return y; }); },
               ErrorKind::shape, {"the loss of microbatch 0 is of shape (4, 3)"});
  expect_error([&] { compile([&](const Tensor& y) { return y * step(x[0], same); })(x[0]); },
               ErrorKind::value, {"ein::compile traces"});
}

TEST(PipelineTest, GoesOnAfterAnError) {
  const Pipeline pipeline(Mesh({{"pipe", 4}}, "loop"), "pipe");
  const std::vector<Tensor> x{ones({3}), full({3}, 2), full({3}, 3)};
  bool throws = false;
  const auto step = [&] {
    return pipeline.step(
        x, x[0],
        [&](const Tensor& y, int s, int m) {
          // Then the last stage has not received the microbatch before.
          if (throws && s == 0 && m == 2) throw std::runtime_error("of the caller");
          return y * 2;
        },
        [](const Tensor& y, int) { return reduce(y, "a ->", "sum"); });
  };
  EXPECT_EQ(step(), 3 * 16 * 2);
  throws = true;
  EXPECT_THROW(step(), std::runtime_error);
  throws = false;
  EXPECT_EQ(step(), 3 * 16 * 2);
}

TEST(PipelineTest, AMeshWithoutAnAxis) {
  const Mesh mesh = mesh_of({{"pipe", 2}, {"data", 2}});
  const Mesh data = mesh.without("pipe"), pipe = mesh.without("data");
  EXPECT_EQ(data.axes(), (std::vector<MeshAxis>{{"data", 2}}));
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.rank(), mesh.coordinate("data"));
  EXPECT_EQ(pipe.rank(), mesh.coordinate("pipe"));
  EXPECT_EQ(data.without("data").size(), 1);
  const Tensor x = arange(8.0);
  EXPECT_EQ(get_values(reshard(place(x, data, "i@data"), "i@data -> i")), get_values(x));
  EXPECT_EQ(get_values(place(x, data.without("data"), "i")), get_values(x));
  // Two meshes of the same axes are the same if they are of the same processes.
  const Tensor once = place(x, data, "i@data"),
               twice = place(x, mesh_of({{"pipe", 2}, {"data", 2}}).without("pipe"), "i@data"),
               other = place(x, mesh_of({{"data", 2}, {"pipe", 2}}).without("pipe"), "i@data");
  if (test::is_launched()) {
    EXPECT_EQ(get_values((once + twice).local()).size(), 4u);
  }
  expect_error([&] { once + other; }, ErrorKind::placement, {"several meshes"});
  expect_error([&] { mesh.without("model"); }, ErrorKind::value, {"no axis 'model'"});
}

}  // namespace
}  // namespace ein
