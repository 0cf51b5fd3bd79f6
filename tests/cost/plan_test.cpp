// Plans of training on a cluster against sums done by hand and published figures.
#include <ein/plan.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>

#include <ein/error.hpp>

namespace ein::plan {
namespace {

using napkin::Kept;

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

template <class F>
void expect_error(F&& f, const std::vector<std::string>& parts) {
  const std::string text = message_of(f);
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

// Narayanan et al. 2021, table 1: 7.5 billion parameters on 128 devices.
constexpr double l = 36, h = 4096, a = 32, V = 51200, s = 2048, B = 512;
Job gpt_7b() {
  return {{.layers = 36,
           .width = 4096,
           .heads = 32,
           .vocab = 51200,
           .context = 2048,
           .has_biases = true},
          512,
          napkin::mixed_precision()};
}
Cluster dgx_a100(std::int64_t devices) {
  return cluster_of(hardware_named("a100-sxm-80gb"), devices, 8);
}

const Traffic& traffic(const Bill& bill, const std::string& axis, Collective way,
                       const std::string& what = "") {
  for (const Traffic& t : bill.traffic) {
    if (t.axis == axis && t.way == way && t.what.starts_with(what)) return t;
  }
  ADD_FAILURE() << axis << " " << name(way) << " " << what;
  static const Traffic none;
  return none;
}

// --- collectives ---

TEST(BytesSent, AreThoseOfRings) {
  EXPECT_DOUBLE_EQ(bytes_sent(Collective::all_reduce, 4, 1000), 1500);
  EXPECT_DOUBLE_EQ(bytes_sent(Collective::reduce_scatter, 4, 1000), 750);
  EXPECT_DOUBLE_EQ(bytes_sent(Collective::all_gather, 4, 1000), 750);
  EXPECT_DOUBLE_EQ(bytes_sent(Collective::send, 4, 1000), 1000);
  for (const Collective c :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
    EXPECT_EQ(bytes_sent(c, 1, 1000), 0);
  EXPECT_EQ(formula(Collective::all_reduce), "2·(n-1)/n·V");
  EXPECT_EQ(formula(Collective::reduce_scatter), "(n-1)/n·V");
  EXPECT_EQ(formula(Collective::send), "V");
  expect_error([] { bytes_sent(Collective::send, 0, 1); }, {"devices is not positive: 0"});
}

// --- memory ---

TEST(State, OfTheExampleInTheZeroPaper) {
  // Rajbhandari et al. 2020, figure 1: 7.5 billion parameters, 64 devices.
  const napkin::Recipe recipe = napkin::mixed_precision();
  const auto gigabytes = [&](int zero) {
    return state_bytes(7.5e9, recipe, 64, zero).total() / 1e9;
  };
  EXPECT_NEAR(gigabytes(0), 120, 1e-9);
  EXPECT_NEAR(gigabytes(1), 31.4, 0.05);
  EXPECT_NEAR(gigabytes(2), 16.6, 0.05);
  EXPECT_NEAR(gigabytes(3), 1.9, 0.05);
  EXPECT_DOUBLE_EQ(state_bytes(7.5e9, recipe, 64, 1).total(), 7.5e9 * (4 + 12.0 / 64));
  EXPECT_DOUBLE_EQ(state_bytes(7.5e9, recipe, 64, 2).total(), 7.5e9 * (2 + 14.0 / 64));
  EXPECT_DOUBLE_EQ(state_bytes(7.5e9, recipe, 1, 3).total(), 120e9);
  const napkin::Recipe plain{napkin::Optimizer::sgd, DType::f32, DType::f32, DType::f32, false};
  EXPECT_DOUBLE_EQ(state_bytes(1e9, plain, 4, 2).total(), 1e9 * (4 + 1));
  EXPECT_EQ(state_bytes(1e9, plain, 4, 2).optimizer, 0);
}

TEST(Activations, AreThoseOfKorthikanti) {
  const napkin::Transformer gpt3{
      .layers = 96, .width = 12288, .heads = 96, .vocab = 51200, .context = 2048};
  const double sbh = 2048.0 * 12288;
  // 5·a·s/h is 80 for GPT-3, as section 5 has it.
  EXPECT_DOUBLE_EQ(activation_bytes(gpt3, 1, 1, Kept::everything), sbh * (34 + 80));
  EXPECT_DOUBLE_EQ(activation_bytes(gpt3, 1, 8, Kept::everything),
                   sbh * (10 + 24.0 / 8 + 80.0 / 8));
  EXPECT_DOUBLE_EQ(activation_bytes(gpt3, 3, 8, Kept::no_scores), 3 * sbh * (10 + 24.0 / 8));
  EXPECT_DOUBLE_EQ(activation_bytes(gpt3, 1, 8, Kept::layer_inputs), 2 * sbh);
  // Without parallelism they are those of a model before there is a cluster.
  for (const Kept kept : {Kept::everything, Kept::no_scores, Kept::layer_inputs}) {
    EXPECT_DOUBLE_EQ(96 * activation_bytes(gpt3, 2, 1, kept),
                     napkin::training_memory(gpt3, 2, napkin::mixed_precision(), kept)
                         .activations.approximate());
  }
}

TEST(Memory, OfOneDeviceIsThatOfTheModel) {
  Job job = gpt_7b();
  job.batch = 2;
  const Cluster one = dgx_a100(1);
  const Memory memory = bill(job, {.microbatch = 2}, one).memory;
  const napkin::TrainingMemory whole = napkin::training_memory(job.model, 2, job.recipe);
  EXPECT_DOUBLE_EQ(memory.state.parameters, whole.parameters.approximate());
  EXPECT_DOUBLE_EQ(memory.state.gradients, whole.gradients.approximate());
  EXPECT_DOUBLE_EQ(memory.state.optimizer, (whole.master + whole.optimizer).approximate());
  EXPECT_EQ(memory.gathered, 0);
  const double sbh = s * 2 * h;
  EXPECT_DOUBLE_EQ(memory.activations, whole.activations.approximate() + sbh);
  EXPECT_DOUBLE_EQ(memory.logits, whole.logits.approximate() + 4 * sbh);
}

TEST(Memory, OfAStageAndAPart) {
  const Job job = gpt_7b();
  // 16 devices: 2 · 4 · 2. The first stage has 18 layers and the embeddings.
  const Placement placement{.data = 2, .model = 4, .pipe = 2, .zero = 1};
  const Memory memory = bill(job, placement, dgx_a100(16)).memory;
  // 12·h² + 13·h a layer, of which the weights and 7·h biases are split.
  const double layer = (12 * h * h + 7 * h) / 4 + 6 * h;
  const double parameters = 18 * layer + V / 4 * h + s * h;
  EXPECT_DOUBLE_EQ(memory.state.parameters, 2 * parameters);
  EXPECT_DOUBLE_EQ(memory.state.gradients, 2 * parameters);
  EXPECT_DOUBLE_EQ(memory.state.optimizer, 12 * parameters / 2);
  // Two microbatches between their passes: as many layers as the model has.
  const double kept = s * h * (10 + 24.0 / 4 + 5 * a * s / (h * 4));
  EXPECT_DOUBLE_EQ(memory.activations, 36 * kept + 2 * s * h);
  EXPECT_EQ(memory.logits, 0);

  Placement again = placement;
  again.kept = Kept::layer_inputs;
  again.zero = 3;
  const Memory less = bill(job, again, dgx_a100(16)).memory;
  EXPECT_DOUBLE_EQ(less.state.total(), 16 * parameters / 2);
  EXPECT_DOUBLE_EQ(less.gathered, 4 * layer);
  EXPECT_DOUBLE_EQ(less.activations, 36 * 2 * s * h + (kept - 2 * s * h) + 2 * s * h);

  // Interleaved: L · (1 + (p-1)/(p·v)) layers on the first stage.
  Placement interleaved = placement;
  interleaved.chunks = 3;
  EXPECT_NEAR(bill(job, interleaved, dgx_a100(16)).memory.activations,
              36 * (1 + 1.0 / 6) * kept + 36 * (1 + 1.0 / 6) / 18 * s * h, 1);
}

// --- FLOPs ---

TEST(Published, SizesAndFlopsOfTheGptModels) {
  const struct {
    std::int64_t layers, width, heads, batch;
    double billions;
  } models[] = {{24, 2304, 24, 512, 1.7},       {30, 3072, 32, 512, 3.6},
                {36, 4096, 32, 512, 7.5},       {40, 6144, 48, 1024, 18.4},
                {48, 8192, 64, 1536, 39.1},     {60, 10240, 80, 1792, 76.1},
                {80, 12288, 96, 2304, 145.6},   {96, 16384, 128, 2160, 310.1},
                {105, 20480, 128, 2520, 529.6}, {128, 25600, 160, 3072, 1008.0}};
  for (const auto& m : models) {
    SCOPED_TRACE(m.billions);
    const Job job{{.layers = m.layers,
                   .width = m.width,
                   .heads = m.heads,
                   .vocab = 51200,
                   .context = 2048,
                   .has_biases = true},
                  m.batch,
                  napkin::mixed_precision()};
    const double L = static_cast<double>(m.layers), H = static_cast<double>(m.width);
    // Equation 2, which leaves out the last norm.
    const double P = 12 * L * H * H * (1 + 13 / (12 * H) + (V + s) / (12 * L * H));
    EXPECT_DOUBLE_EQ(napkin::parameters(job.model).total().approximate(), P + 2 * H);
    EXPECT_NEAR(P / 1e9, m.billions, 0.051);
    // Equation 3, with the forward pass of all layers once more.
    const double F =
        96 * static_cast<double>(m.batch) * s * L * H * H * (1 + s / (6 * H) + V / (16 * L * H));
    const Bill bill = plan::bill(job, {.data = m.batch, .kept = Kept::layer_inputs},
                                 cluster_of(hardware_named("a100-sxm-80gb"), m.batch, 1));
    EXPECT_NEAR(bill.executed_flops / F, 1, 1e-12);
    EXPECT_DOUBLE_EQ(bill.model_flops, 3 * napkin::forward_flops(job.model, m.batch).approximate());
  }
}

// --- traffic ---

TEST(Traffic, AlongModelIsThatOfShoeybi) {
  const Job job = gpt_7b();
  const Placement placement{.data = 32, .model = 4, .microbatch = 4};
  const Bill bill = plan::bill(job, placement, dgx_a100(128));
  const double bsh = 2 * 4 * s * h;  // bytes of (batch, positions, dim)
  const double m = B / 32 / 4;
  const Traffic& forward = traffic(bill, "model", Collective::all_reduce, "activations, forward");
  EXPECT_DOUBLE_EQ(forward.bytes, bsh);
  EXPECT_DOUBLE_EQ(forward.times, 2 * l * m);
  EXPECT_EQ(forward.n, 4);
  EXPECT_DOUBLE_EQ(forward.sent(), 1.5 * bsh * 2 * l * m);
  // Narayanan et al. 2021, section 3.2: 8·b·s·h·(t-1)/t elements for each layer and microbatch.
  EXPECT_DOUBLE_EQ(2 * forward.sent() / (l * m), 2 * 8 * (4 * s * h) * 3 / 4);
  EXPECT_EQ(forward.bandwidth, 300e9);
  EXPECT_DOUBLE_EQ(traffic(bill, "model", Collective::all_reduce, "their gradients").sent(),
                   forward.sent());
  // The embedding's forward and the head's backward.
  EXPECT_DOUBLE_EQ(bill.waiting_seconds, (4 * l + 2) * m * 1.5 * bsh / 300e9);
  Placement again = placement;
  again.kept = Kept::layer_inputs;
  EXPECT_DOUBLE_EQ(plan::bill(job, again, dgx_a100(128)).waiting_seconds,
                   (6 * l + 2) * m * 1.5 * bsh / 300e9);
  double sum = 0;
  for (const Traffic& t : bill.traffic) sum += t.sent();
  EXPECT_DOUBLE_EQ(bill.bytes(), sum);
}

TEST(Traffic, AlongDataByZero) {
  const Job job = gpt_7b();
  const auto bill_of = [&](int zero) {
    return bill(job, {.data = 128, .zero = zero, .microbatch = 2}, dgx_a100(128));
  };
  const double bytes = 2 * napkin::parameters(job.model).total().approximate();
  const double part = 127.0 / 128 * bytes, m = 2;
  EXPECT_DOUBLE_EQ(bill_of(0).bytes(), 2 * part);
  EXPECT_DOUBLE_EQ(bill_of(1).bytes(), 3 * part);
  EXPECT_DOUBLE_EQ(bill_of(2).bytes(), (m + 1) * part);
  EXPECT_DOUBLE_EQ(bill_of(3).bytes(), 3 * m * part);
  // All 8 adapters of a node serve one ring: 8 · 25 GB/s.
  EXPECT_EQ(traffic(bill_of(0), "data", Collective::all_reduce).bandwidth, 200e9);
  EXPECT_EQ(bill_of(0).waiting_seconds, 0);
}

TEST(Traffic, AlongPipe) {
  const Job job = gpt_7b();
  const Placement placement{.data = 4, .model = 8, .pipe = 4, .microbatch = 2};
  const Bill bill = plan::bill(job, placement, dgx_a100(128));
  const double bsh = 2 * 2 * s * h, m = B / 4 / 2;
  const Traffic& sent = traffic(bill, "pipe", Collective::send);
  EXPECT_DOUBLE_EQ(sent.sent(), 2 * m * bsh / 8);  // forward and backward, an eighth of a device
  EXPECT_EQ(sent.bandwidth, 25e9);
  EXPECT_DOUBLE_EQ(traffic(bill, "model", Collective::all_gather).sent(), 2 * m * 7 / 8 * bsh);
  EXPECT_DOUBLE_EQ(traffic(bill, "pipe", Collective::all_reduce).sent(), 2 * V / 8 * h);
  // A ring over data has one device in a node.
  EXPECT_EQ(traffic(bill, "data", Collective::all_reduce).bandwidth, 25e9);
  Job untied = job;
  untied.model.has_tied_head = false;
  EXPECT_EQ(plan::bill(untied, placement, dgx_a100(128)).traffic.size(), bill.traffic.size() - 1);
}

TEST(Traffic, LinksThatGroupsUse) {
  const Job job = gpt_7b();
  const auto model_link = [&](std::int64_t model, std::int64_t devices) {
    return traffic(bill(job, {.data = devices / model, .model = model}, dgx_a100(devices)), "model",
                   Collective::all_reduce)
        .bandwidth;
  };
  EXPECT_EQ(model_link(8, 32), 300e9);
  EXPECT_EQ(model_link(16, 32), 200e9);
  const auto data_link = [&](std::int64_t model) {
    return traffic(bill(job, {.data = 32 / model, .model = model}, dgx_a100(32)), "data",
                   Collective::all_reduce)
        .bandwidth;
  };
  EXPECT_EQ(data_link(2), 100e9);
  EXPECT_EQ(data_link(4), 50e9);
  EXPECT_EQ(data_link(8), 25e9);
  EXPECT_EQ(data_link(16), 25e9);
  EXPECT_EQ(traffic(bill(job, {.data = 8}, dgx_a100(8)), "data", Collective::all_reduce).bandwidth,
            300e9);
}

// --- time ---

TEST(Time, OfOneDeviceIsThePeak) {
  const Job job = gpt_7b();
  const Bill bill = plan::bill(job, {}, dgx_a100(1));
  EXPECT_DOUBLE_EQ(bill.compute_seconds, bill.model_flops / 312e12);
  // Gradients read; two moments and the master copy read and written; parameters written.
  EXPECT_DOUBLE_EQ(bill.update_seconds,
                   (2 + 2 * 12 + 2) * napkin::parameters(job.model).total().approximate() / 2039e9);
  EXPECT_EQ(bill.waiting_seconds + bill.idle_seconds + bill.exposed_seconds, 0);
  EXPECT_DOUBLE_EQ(bill.seconds(), bill.compute_seconds + bill.update_seconds);
  EXPECT_DOUBLE_EQ(bill.mfu, bill.compute_seconds / bill.seconds());
  EXPECT_EQ(bill.mfu, bill.hfu);
  EXPECT_TRUE(bill.traffic.empty());
}

TEST(Time, OfAPipeline) {
  Job job = gpt_7b();
  const Placement placement{.data = 1, .model = 1, .pipe = 4};
  EXPECT_DOUBLE_EQ(bubble(job, placement), 3.0 / 512);
  EXPECT_EQ(microbatches(job, placement), 512);
  Placement chunks = placement;
  chunks.chunks = 3;
  EXPECT_DOUBLE_EQ(bubble(job, chunks), 3.0 / (3 * 512));
  // Narayanan et al. 2021, section 2.2: of the computing time of equal stages.
  const Bill bill = plan::bill(job, placement, dgx_a100(4));
  const double layers = bill.model_flops - 3 * B * 2 * s * h * V;
  EXPECT_NEAR(bill.idle_seconds, layers / 4 / 312e12 * 3 / 512, 1e-9);
  EXPECT_DOUBLE_EQ(plan::bill(job, chunks, dgx_a100(4)).idle_seconds, bill.idle_seconds / 3);
  EXPECT_NEAR(bill.compute_seconds, (layers / 4 + 3 * B * 2 * s * h * V) / 312e12, 1e-6);
}

TEST(Time, WhatIsComputedAgain) {
  const Job job = gpt_7b();
  const auto bill_of = [&](Kept kept) { return bill(job, {.data = 8, .kept = kept}, dgx_a100(8)); };
  const Bill whole = bill_of(Kept::everything), again = bill_of(Kept::layer_inputs),
             scores = bill_of(Kept::no_scores);
  EXPECT_DOUBLE_EQ(scores.executed_flops - whole.executed_flops, B * l * 2 * s * s * h);
  EXPECT_DOUBLE_EQ(again.model_flops, whole.model_flops);
  EXPECT_LT(again.mfu, again.hfu);
  EXPECT_LT(again.mfu, 0.77);
  EXPECT_LT(again.memory.activations, scores.memory.activations);
}

TEST(Time, NetworksThatNothingHides) {
  const Job job = gpt_7b();
  const Hardware device = hardware_named("a100-sxm-80gb");
  const Cluster slow = cluster_of(device, 128, 8, DType::bf16, 0, 1e9);
  const Placement placement{.data = 128, .microbatch = 4};
  const Bill bill = plan::bill(job, placement, slow);
  const double backward = 2.0 / 3 * bill.compute_seconds;
  EXPECT_NEAR(bill.exposed_seconds,
              traffic(bill, "data", Collective::all_reduce).seconds() - backward, 1e-9);
  EXPECT_EQ(plan::bill(job, placement, dgx_a100(128)).exposed_seconds, 0);
}

// --- all plans ---

TEST(Plans, AreAllThatDivide) {
  const Job job{{.layers = 4, .width = 64, .heads = 4, .vocab = 100, .context = 32},
                8,
                napkin::mixed_precision()};
  const Plans all = plans(job, dgx_a100(8), 1000);
  // By hand, microbatches × ZeRO: model 1: pipe 1, 2, 4: data 8, 4, 2: 1·4 + 2·4 + 3·4; model 2:
  // data 4, 2, 1: 2·4 + 3·4 + 4·1; model 4: data 2, 1: 3·4 + 4·1.
  EXPECT_EQ(all.fitting, 24 + 24 + 16);
  EXPECT_EQ(all.left_out, 0);
  ASSERT_EQ(all.best.size(), 64u);
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, int, std::int64_t>> seen;
  double before = 0;
  for (const Plan& p : all.best) {
    EXPECT_NO_THROW(check(job, p.placement, 8)) << to_string(p.placement);
    const Placement& q = p.placement;
    EXPECT_TRUE(seen.insert({q.data, q.model, q.pipe, q.zero, q.microbatch}).second);
    EXPECT_GE(p.bill.seconds(), before * 0.99);
    before = p.bill.seconds();
    EXPECT_DOUBLE_EQ(p.bill.seconds(), bill(job, q, dgx_a100(8)).seconds());
    EXPECT_EQ(q.kept, Kept::everything);
    EXPECT_LE(p.bill.mfu, 1);
  }
  EXPECT_EQ(plans(job, dgx_a100(8), 3).best.size(), 3u);
}

TEST(Plans, LeaveOutWhatDoesNotFit) {
  const Job job = gpt_7b();
  const Plans on_one_node = plans(job, dgx_a100(8), 1000);
  EXPECT_GT(on_one_node.left_out, 0);
  EXPECT_GT(on_one_node.fitting, 0);
  for (const Plan& p : on_one_node.best) {
    EXPECT_LE(p.bill.memory.total(), 80e9);
    if (p.placement.kept == Kept::everything) continue;
    Placement more = p.placement;
    more.kept = p.placement.kept == Kept::layer_inputs ? Kept::no_scores : Kept::everything;
    EXPECT_GT(bill(job, more, dgx_a100(8)).memory.total(), 80e9) << to_string(more);
  }
  const Plans on_one_device = plans(job, dgx_a100(1));
  EXPECT_TRUE(on_one_device.best.empty());
  EXPECT_EQ(on_one_device.fitting, 0);
  EXPECT_GT(on_one_device.least_memory, 16 * 7.4e9);
}

// --- mistakes ---

TEST(Mistakes, OfPlacements) {
  const Job job = gpt_7b();
  const auto fails = [&](const Placement& p, std::int64_t devices,
                         const std::vector<std::string>& parts) {
    expect_error([&] { check(job, p, devices); }, parts);
    expect_error([&] { bill(job, p, dgx_a100(devices)); }, parts);
  };
  fails({.data = 2, .model = 2, .pipe = 2}, 16,
        {"data 2 · model 2 · pipe 2 are 8 devices, not 16", "take 8 devices, or data 4"});
  fails({.data = 16, .model = 3}, 48,
        {"model 3 does not divide the heads, 32", "1, 2, 4, 8, 16, 32"});
  fails({.pipe = 8}, 8, {"pipe 8 does not divide the layers, 36"});
  fails({.data = 3}, 3, {"data 3 does not divide the batch, 512"});
  fails({.data = 4, .microbatch = 3}, 4,
        {"a microbatch of 3 does not divide a device's part of the batch, 128"});
  fails({.data = 8, .zero = 4}, 8, {"ZeRO is 0, 1, 2 or 3, not 4"});
  fails({.data = 0}, 8, {"data is not positive: 0"});
  fails({.data = 8, .microbatch = -1}, 8, {"the microbatch is not positive: -1"});
  fails({.data = 8, .chunks = 2}, 8, {"2 chunks want a pipeline"});
  fails({.data = 2, .pipe = 4, .chunks = 2}, 8, {"chunks of 2", "layers of a stage, 9"});
  fails({.data = 128, .pipe = 12, .microbatch = 4, .chunks = 3}, 1536,
        {"pipe 12 divides the number of microbatches, 1"});
  Job narrow = job;
  narrow.model.mlp_width = 1000;
  expect_error([&] { check(narrow, {.model = 16}, 16); }, {"the MLP's width, 1000"});
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  expect_error([&] { check(job, {.data = most, .model = 4}, 8); }, {"exceeds 2^63 - 1"});
}

TEST(Mistakes, OfJobsAndClusters) {
  Job job = gpt_7b();
  job.batch = 0;
  expect_error([&] { plans(job, dgx_a100(8)); }, {"the batch is not positive: 0"});
  job = gpt_7b();
  job.model.heads = 7;
  expect_error([&] { plans(job, dgx_a100(8)); }, {"is not divided by 7 heads"});
  job = gpt_7b();
  job.batch = 1;
  expect_error([&] { plans(job, cluster_of(hardware_named("h100-sxm"), 11, 1)); },
               {"no placement on 11 devices divides", "1 sequences", "32 heads", "36 layers"});
  job.batch = 2'000'000'000;
  expect_error([&] { plans(job, dgx_a100(8)); }, {"2000000000 sequences are too many"});
  const Hardware a100 = hardware_named("a100-sxm-80gb"), t4 = hardware_named("t4");
  expect_error([&] { cluster_of(a100, 12, 8); }, {"12 devices", "nodes of 8", "take 8 or 16"});
  expect_error([&] { cluster_of(a100, 0, 8); }, {"the number of devices is not positive: 0"});
  expect_error([&] { cluster_of(a100, 8, 0); }, {"devices in a node is not positive: 0"});
  expect_error([&] { cluster_of(t4, 16, 8); }, {"T4 promises no peak for bf16"});
  expect_error([&] { cluster_of(t4, 16, 8, DType::f16); }, {"no link between nodes of T4"});
  expect_error([&] { cluster_of(a100, 8, 8, DType::bf16, -1); }, {"inside a node", "-1"});
  EXPECT_EQ(cluster_of(t4, 16, 8, DType::f16, 0, 1e9).inside, 16e9);
  EXPECT_EQ(cluster_of(a100, 4, 8).node, 4);
  EXPECT_EQ(cluster_of(hardware_named("h100-nvl"), 2, 2).inside, 300e9);
  EXPECT_EQ(cluster_of(hardware_named("h100-nvl"), 4, 4).inside, 64e9);  // NVLink joins pairs
  expect_error([] { state_bytes(0, {}, 1, 0); }, {"parameters"});
  expect_error([] { activation_bytes(gpt_7b().model, 0, 1, Kept::everything); }, {"microbatch"});
}

}  // namespace
}  // namespace ein::plan
