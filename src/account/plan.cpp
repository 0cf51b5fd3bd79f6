#include <ein/plan.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include <ein/error.hpp>
#include "size/ask.hpp"

namespace ein::plan {
namespace {

using napkin::Kept;

[[noreturn]] void fail(const std::string& text) { throw Error(ErrorKind::value, "plan: " + text); }

std::string text_of(std::int64_t number) { return std::to_string(number); }

void require_positive(const char* what, std::int64_t value) {
  if (value < 1) fail(std::string(what) + " is not positive: " + text_of(value));
}
void require_positive(const char* what, double value) {
  if (!std::isfinite(value) || value <= 0)
    fail(std::string(what) + " is not a positive number: " + std::to_string(value));
}

/// Beyond, finding divisors takes long.
constexpr std::int64_t max_listed = 1'000'000'000;

/// The divisors of n, in order.
std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d != n / d) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::int64_t mlp_width(const napkin::Transformer& model) {
  return model.mlp_width == 0 ? 4 * model.width : model.mlp_width;
}

/// a · b, or more than any number of devices.
std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

/// A job's counts, taken once.
struct Counts {
  // Parameters of a layer that the model axis splits, and that every device of it has.
  double split = 0, whole = 0;
  double vocabulary = 0;   ///< weights of the token embedding, rows added until it is split evenly
  double positions = 0;    ///< weights
  double final_norm = 0;   ///< weights and biases
  double layer_flops = 0;  ///< forward, of a layer and a sequence
  double scores_flops = 0;
  double head_flops = 0;
};

Counts counts_of(const napkin::Transformer& model) {
  const napkin::Parameters p = napkin::parameters(model);
  const double layers = static_cast<double>(model.layers), h = static_cast<double>(model.width);
  const double m = static_cast<double>(mlp_width(model));
  Counts counts;
  counts.split = (p.attention + p.mlp).approximate() / layers;
  counts.whole = 2 * h;
  counts.final_norm = h;
  if (model.has_biases) {
    counts.split += 3 * h + m;
    counts.whole += 4 * h;
    counts.final_norm += h;
  }
  counts.vocabulary = p.token_embedding.approximate();
  counts.positions = p.position_embedding.approximate();
  for (const napkin::Matmul& matmul : napkin::forward_matmuls(model, 1)) {
    const double flops = matmul.flops().approximate();
    (matmul.part == napkin::Part::head ? counts.head_flops : counts.layer_flops) += flops;
    if (matmul.name == "attention scores") counts.scores_flops = flops / layers;
  }
  counts.layer_flops /= layers;
  return counts;
}

/// The group of devices along one axis of the mesh, `stride` devices apart.
double bandwidth_of_group(const Cluster& cluster, std::int64_t n, std::int64_t stride) {
  if (n == 1 || (product(n, stride) <= cluster.node && cluster.node % (n * stride) == 0))
    return cluster.inside;
  const std::int64_t together = std::clamp(cluster.node / stride, std::int64_t{1}, n);
  const double leaving = static_cast<double>(together) * cluster.between;
  return together == 1 ? leaving : std::min(cluster.inside, leaving);
}

double bandwidth_of_neighbour(const Cluster& cluster, std::int64_t stride) {
  return stride < cluster.node ? cluster.inside : cluster.between;
}

/// One stage of the pipeline.
struct Stage {
  double parameters = 0;  ///< of a device
  double layers = 0;
  double in_flight = 0;  ///< layers whose activations a device keeps, times microbatches
  bool is_first = false, is_last = false;
};

class Biller {
 public:
  Biller(const Job& job, const Counts& counts, const Placement& p, const Cluster& cluster)
      : job_(job), counts_(counts), p_(p), cluster_(cluster), m_(microbatches(job, p)) {}

  Bill bill() {
    const Stage first = stage(p_.pipe - 1), last = stage(0);
    bill_.memory = memory(first);
    if (const Memory other = memory(last); other.total() > bill_.memory.total())
      bill_.memory = other;
    bill_.bubble = plan::bubble(job_, p_);
    count_flops();
    time(last, std::max(first.parameters, last.parameters));
    return bill_;
  }

 private:
  double model() const { return static_cast<double>(p_.model); }
  double data() const { return static_cast<double>(p_.data); }
  double pipe() const { return static_cast<double>(p_.pipe); }
  double m() const { return static_cast<double>(m_); }
  double sequences() const { return static_cast<double>(p_.microbatch); }
  /// s·b·h.
  double elements() const {
    return sequences() * static_cast<double>(job_.model.context) *
           static_cast<double>(job_.model.width);
  }
  /// Activations between layers, 16-bit.
  double activations() const { return 2 * elements(); }
  double layer_parameters() const { return counts_.split / model() + counts_.whole; }
  double vocabulary() const {
    const std::int64_t rows = (job_.model.vocab + p_.model - 1) / p_.model;
    return static_cast<double>(rows) * static_cast<double>(job_.model.width);
  }
  static double bytes(DType dtype, double count) {
    return count * static_cast<double>(size_of(dtype));
  }

  /// The i-th stage from the end.
  Stage stage(std::int64_t after) const {
    const double chunks = static_cast<double>(p_.chunks);
    Stage stage;
    stage.is_first = after + 1 == p_.pipe;
    stage.is_last = after == 0;
    stage.layers = static_cast<double>(job_.model.layers) / pipe();
    stage.parameters = stage.layers * layer_parameters();
    if (stage.is_first) stage.parameters += vocabulary() + counts_.positions;
    if (stage.is_last) {
      stage.parameters += counts_.final_norm;
      if (!stage.is_first || !job_.model.has_tied_head) stage.parameters += vocabulary();
    }
    // Of the chunks of a stage, those that went forward and not yet back (Megatron-LM's schedules;
    // on the first stage L · (1 + (p-1)/(p·v)) layers, Korthikanti et al. 2022).
    const double behind = static_cast<double>(after);
    const double waiting = p_.chunks == 1 ? behind + 1 : 2 * behind + (chunks - 1) * pipe() + 1;
    stage.in_flight = std::min(waiting, m() * chunks) * stage.layers / chunks;
    return stage;
  }

  Memory memory(const Stage& stage) const {
    Memory memory;
    memory.state = state_bytes(stage.parameters, job_.recipe, p_.data, p_.zero);
    if (p_.data > 1 && p_.zero >= 2)
      memory.gathered += bytes(job_.recipe.gradients, layer_parameters());
    if (p_.data > 1 && p_.zero == 3)
      memory.gathered += bytes(job_.recipe.parameters, layer_parameters());
    const auto layer = [&](Kept kept) {
      return activation_bytes(job_.model, p_.microbatch, p_.model, kept);
    };
    memory.activations =
        stage.in_flight * layer(p_.kept) + layer(Kept::everything) - layer(p_.kept);
    // The dropout mask behind the embeddings; the input of the last norm and of the head.
    if (stage.is_first) memory.activations += stage.in_flight / stage.layers * elements();
    if (stage.is_last) {
      const double rows = vocabulary() / static_cast<double>(job_.model.width);
      memory.logits =
          4 * elements() + 4 * sequences() * static_cast<double>(job_.model.context) * rows;
    }
    return memory;
  }

  double again_flops() const {
    if (p_.kept == Kept::layer_inputs) return counts_.layer_flops;
    return p_.kept == Kept::no_scores ? counts_.scores_flops : 0;
  }

  void count_flops() {
    const double layers = static_cast<double>(job_.model.layers);
    const double batch = static_cast<double>(job_.batch);
    bill_.model_flops = 3 * batch * (layers * counts_.layer_flops + counts_.head_flops);
    bill_.executed_flops = bill_.model_flops + batch * layers * again_flops();
  }

  const Traffic& send(const char* axis, Collective way, const char* what, std::int64_t n,
                      double bytes, double times) {
    const bool is_model = std::string_view(axis) == "model",
               is_data = std::string_view(axis) == "data";
    const std::int64_t stride = is_model ? 1 : is_data ? p_.model : p_.model * p_.data;
    const double bandwidth = way == Collective::send ? bandwidth_of_neighbour(cluster_, stride)
                                                     : bandwidth_of_group(cluster_, n, stride);
    bill_.traffic.push_back({axis, way, what, n, bytes, times, bandwidth});
    return bill_.traffic.back();
  }

  void time(const Stage& last, double heaviest) {
    // The stage with the most layers and the head is the slowest, and has the most to send; the
    // first has the embedding's all_reduce instead of the head's.
    const double layer_seconds = sequences() * counts_.layer_flops / model() / cluster_.peak;
    const double head_seconds = sequences() * counts_.head_flops / model() / cluster_.peak;
    const double again_seconds = sequences() * again_flops() / model() / cluster_.peak;
    const double others_forward = last.layers * layer_seconds;
    const double others_backward = last.layers * (2 * layer_seconds + again_seconds);
    const double forward = others_forward + head_seconds;
    const double backward = others_backward + 2 * head_seconds;

    // Along model.
    double layer_wait = 0, edge_wait = 0;  // of a microbatch, a layer's and the edge's
    const bool goes_again = p_.kept == Kept::layer_inputs;
    if (p_.model > 1) {
      const double each = m() * last.layers;
      const double once = send("model", Collective::all_reduce, "activations, forward", p_.model,
                               activations(), 2 * each)
                              .seconds() /
                          (2 * each);
      send("model", Collective::all_reduce, "their gradients, backward", p_.model, activations(),
           2 * each);
      if (goes_again)
        send("model", Collective::all_reduce, "activations, again", p_.model, activations(),
             2 * each);
      const double edges = p_.pipe == 1 ? 2 : 1;
      send("model", Collective::all_reduce, "of embedding and head", p_.model, activations(),
           edges * m());
      layer_wait = once;
      edge_wait = edges * once;
    }
    const double forward_wait = 2 * last.layers * layer_wait;
    const double backward_wait = (goes_again ? 2.0 : 1.0) * forward_wait;

    // Along data, and what of it each microbatch hides.
    const double gradients = bytes(job_.recipe.gradients, heaviest);
    const double parameters = bytes(job_.recipe.parameters, heaviest);
    double reduce = 0, gather = 0;  // seconds, each time
    if (p_.data > 1) {
      const bool each_time = p_.zero >= 2;
      const Collective sum = each_time ? Collective::reduce_scatter : Collective::all_reduce;
      reduce = send("data", sum, "gradients", p_.data, gradients, each_time ? m() : 1).seconds() /
               (each_time ? m() : 1);
      const double gathers = p_.zero == 3 ? 2 * m() : 1;
      if (p_.zero > 0)
        gather = send("data", Collective::all_gather, "parameters", p_.data, parameters, gathers)
                     .seconds() /
                 gathers;
    }

    // Along pipe.
    double hop = 0;
    const double chunks = static_cast<double>(p_.chunks);
    if (p_.pipe > 1) {
      const double times = 2 * m() * chunks;
      hop = send("pipe", Collective::send, "activations and their gradients", p_.pipe,
                 activations() / model(), times)
                .seconds() /
            times;
      if (p_.model > 1)
        hop += send("model", Collective::all_gather, "what stages sent", p_.model, activations(),
                    times)
                   .seconds() /
               times;
      if (job_.model.has_tied_head)
        tied_ = send("pipe", Collective::all_reduce, "gradients of the tied embedding", 2,
                     bytes(job_.recipe.gradients, vocabulary()), 1)
                    .seconds();
    }

    // A microbatch on the slowest stage, and on the others.
    const double busy_forward = forward + forward_wait, busy_backward = backward + backward_wait;
    const double slow = busy_forward + busy_backward + edge_wait;
    const double other = others_forward + others_backward + forward_wait + backward_wait;
    const auto beyond = [](double traffic, double busy) { return std::max(0.0, traffic - busy); };
    double exposed = 0;
    if (p_.zero >= 2) {
      const double in_forward = p_.zero == 3 ? gather : 0;
      exposed +=
          m() * (beyond(in_forward, busy_forward) + beyond(in_forward + reduce, busy_backward));
    }
    exposed += m() * beyond(2 * chunks * hop, slow);
    exposed += 2 * (pipe() - 1) * hop + tied_;
    if (p_.zero <= 1) exposed += beyond(reduce, busy_backward);
    if (p_.zero == 1 || p_.zero == 2) exposed += beyond(gather, busy_forward);

    bill_.compute_seconds = m() * (forward + backward);
    bill_.waiting_seconds = m() * (forward_wait + backward_wait + edge_wait);
    bill_.idle_seconds = (pipe() - 1) * other / chunks;
    bill_.exposed_seconds = exposed;
    bill_.update_seconds = update_bytes(heaviest) / cluster_.bandwidth;
    const double all = bill_.seconds() * static_cast<double>(cluster_.devices) * cluster_.peak;
    bill_.mfu = bill_.model_flops / all;
    bill_.hfu = bill_.executed_flops / all;
  }

  /// Gradients are read, state and master copy read and written, parameters written.
  double update_bytes(double parameters) const {
    const State whole = state_bytes(parameters, job_.recipe, 1, 0);
    const double bytes = whole.gradients + 2 * whole.optimizer + whole.parameters;
    return p_.zero > 0 ? bytes / data() : bytes;
  }

  const Job& job_;
  const Counts& counts_;
  const Placement& p_;
  const Cluster& cluster_;
  std::int64_t m_;
  double tied_ = 0;
  Bill bill_;
};

/// Times that differ in the fourth digit alone are equal.
double in_three_digits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

void check_job(const Job& job) {
  napkin::parameters(job.model);  // checks the model's sizes
  require_positive("the batch", job.batch);
}

void check_cluster(const Cluster& cluster) {
  require_positive("the number of devices", cluster.devices);
  require_positive("the number of devices in a node", cluster.node);
  require_positive("the peak", cluster.peak);
  require_positive("the memory", cluster.memory);
  require_positive("the memory's bandwidth", cluster.bandwidth);
  if (cluster.devices > 1 && cluster.node > 1)
    require_positive("the bandwidth inside a node", cluster.inside);
  if (cluster.devices > cluster.node)
    require_positive("the bandwidth between nodes", cluster.between);
}

}  // namespace

Cluster cluster_of(const Hardware& device, std::int64_t devices, std::int64_t node, DType dtype,
                   double inside, double between) {
  require_positive("the number of devices", devices);
  require_positive("the number of devices in a node", node);
  node = std::min(node, devices);
  if (devices % node != 0) {
    fail(text_of(devices) + " devices are no whole number of nodes of " + text_of(node) +
         "; take " + text_of(devices / node * node) + " or " +
         text_of((devices / node + 1) * node) + " devices");
  }
  const std::optional<double> peak = device.peak(dtype);
  if (!peak) fail(device.name + " promises no peak for " + std::string(name(dtype)));
  Cluster cluster{device.name,   devices,          node,   *peak,
                  device.memory, device.bandwidth, inside, between};
  const Hardware::Links& links = device.links;
  if (inside == 0)
    cluster.inside = links.nvlink > 0 && node <= links.nvlink_group ? links.nvlink : links.pcie;
  if (between == 0) cluster.between = links.infiniband;
  if (node > 1 && cluster.inside == 0)
    fail("no link between " + device.name + " of a node is known; give its bytes per second");
  if (devices > node && cluster.between == 0) {
    fail("no link between nodes of " + device.name +
         " is known; give its bytes per second for each device");
  }
  check_cluster(cluster);
  return cluster;
}

std::int64_t devices_of(const Placement& p) {
  require_positive("data", p.data);
  require_positive("model", p.model);
  require_positive("pipe", p.pipe);
  const std::int64_t all = product(p.data, product(p.model, p.pipe));
  if (all == std::numeric_limits<std::int64_t>::max())
    fail("data · model · pipe exceeds 2^63 - 1; take smaller axes");
  return all;
}

std::string to_string(const Placement& p) {
  std::string text = "data " + text_of(p.data) + " · model " + text_of(p.model) + " · pipe " +
                     text_of(p.pipe) + ", ZeRO " + std::to_string(p.zero) + ", microbatch " +
                     text_of(p.microbatch);
  if (p.chunks > 1) text += ", " + text_of(p.chunks) + " chunks";
  return text;
}

void check(const Job& job, const Placement& p, std::int64_t devices) {
  check_job(job);
  const std::int64_t all = devices_of(p);
  require_positive("the microbatch", p.microbatch);
  require_positive("the number of chunks", p.chunks);
  if (p.zero < 0 || p.zero > 3) fail("ZeRO is 0, 1, 2 or 3, not " + std::to_string(p.zero));
  if (all != devices) {
    const std::int64_t rest = product(p.model, p.pipe);
    std::string fix = "take " + text_of(all) + " devices";
    if (devices % rest == 0) fix += ", or data " + text_of(devices / rest);
    fail("data " + text_of(p.data) + " · model " + text_of(p.model) + " · pipe " + text_of(p.pipe) +
         " are " + text_of(all) + " devices, not " + text_of(devices) + "; " + fix);
  }
  const auto require_divides = [](const char* axis, std::int64_t by, const char* what,
                                  std::int64_t size) {
    if (size % by == 0) return;
    std::string fix = "; it may be";
    for (std::int64_t d = 1; d <= std::min(size, std::int64_t{4096}); ++d) {
      if (size % d == 0) fix += (d == 1 ? " " : ", ") + text_of(d);
    }
    fail(std::string(axis) + " " + text_of(by) + " does not divide " + what + " " + text_of(size) +
         fix);
  };
  require_divides("model", p.model, "the heads,", job.model.heads);
  require_divides("model", p.model, "the MLP's width,", mlp_width(job.model));
  require_divides("pipe", p.pipe, "the layers,", job.model.layers);
  require_divides("a number of chunks of", p.chunks, "the layers of a stage,",
                  job.model.layers / p.pipe);
  require_divides("data", p.data, "the batch,", job.batch);
  require_divides("a microbatch of", p.microbatch, "a device's part of the batch,",
                  job.batch / p.data);
  if (p.chunks > 1) {
    if (p.pipe == 1) fail(text_of(p.chunks) + " chunks want a pipeline; take pipe 2 or more");
    if (const std::int64_t m = microbatches(job, p); m % p.pipe != 0) {
      fail("with chunks, pipe " + text_of(p.pipe) + " divides the number of microbatches, " +
           text_of(m) + "; take another microbatch, or 1 chunk");
    }
  }
}

std::int64_t microbatches(const Job& job, const Placement& p) {
  return job.batch / p.data / p.microbatch;
}

double bubble(const Job& job, const Placement& p) {
  return static_cast<double>(p.pipe - 1) /
         (static_cast<double>(p.chunks) * static_cast<double>(microbatches(job, p)));
}

State state_bytes(double parameters, const napkin::Recipe& recipe, std::int64_t data, int zero) {
  require_positive("the number of parameters", parameters);
  require_positive("data", data);
  const auto bytes = [&](DType dtype) { return parameters * static_cast<double>(size_of(dtype)); };
  const auto divided = [&](double whole, int from) {
    return zero >= from ? whole / static_cast<double>(data) : whole;
  };
  const double optimizer = (recipe.has_f32_master ? bytes(DType::f32) : 0) +
                           napkin::state_count(recipe.optimizer) * bytes(recipe.state);
  return {divided(bytes(recipe.parameters), 3), divided(bytes(recipe.gradients), 2),
          divided(optimizer, 1)};
}

double activation_bytes(const napkin::Transformer& model, std::int64_t microbatch, std::int64_t t,
                        Kept kept) {
  napkin::estimated_parameters(model);  // checks the sizes
  require_positive("the microbatch", microbatch);
  require_positive("model", t);
  const double tokens = static_cast<double>(microbatch) * static_cast<double>(model.context);
  const double h = static_cast<double>(model.width);
  if (kept == Kept::layer_inputs) return 2 * tokens * h;
  // Split: queries, keys, values and the input of the output layer, 2·h each; the inputs of the
  // MLP's activation function and second layer.
  double split = 8 * h + 4 * (model.mlp_width == 0 ? 4 * h : static_cast<double>(model.mlp_width));
  if (kept == Kept::everything)
    split += 5 * static_cast<double>(model.heads) * static_cast<double>(model.context);
  return tokens * (10 * h + split / static_cast<double>(t));
}

std::string_view formula(Collective way) {
  if (way == Collective::send) return "V";
  return way == Collective::all_reduce ? "2·(n-1)/n·V" : "(n-1)/n·V";
}

double Bill::bytes() const {
  double sum = 0;
  for (const Traffic& t : traffic) sum += t.sent();
  return sum;
}

double Bill::seconds() const {
  return compute_seconds + waiting_seconds + idle_seconds + exposed_seconds + update_seconds;
}

Bill bill(const Job& job, const Placement& placement, const Cluster& cluster) {
  check_cluster(cluster);
  check(job, placement, cluster.devices);
  return Biller(job, counts_of(job.model), placement, cluster).bill();
}

Plans plans(const Job& job, const Cluster& cluster, std::size_t top) {
  check_cluster(cluster);
  check_job(job);
  for (const auto& [what, size] :
       {std::pair{"sequences", job.batch}, {"devices", cluster.devices}}) {
    if (size > max_listed) {
      fail(text_of(size) + " " + what + " are too many to list placements; take at most " +
           text_of(max_listed));
    }
  }
  const Counts counts = counts_of(job.model);
  Plans plans;
  plans.least_memory = std::numeric_limits<double>::infinity();
  const auto consider = [&](Placement placement) {
    for (const Kept kept : {Kept::everything, Kept::no_scores, Kept::layer_inputs}) {
      placement.kept = kept;
      const Bill bill = Biller(job, counts, placement, cluster).bill();
      plans.least_memory = std::min(plans.least_memory, bill.memory.total());
      if (bill.memory.total() > cluster.memory) continue;
      ++plans.fitting;
      plans.best.push_back({placement, bill});
      return;
    }
    ++plans.left_out;
  };
  for (const std::int64_t model : divisors(cluster.devices)) {
    if (job.model.heads % model != 0 || mlp_width(job.model) % model != 0) continue;
    for (const std::int64_t pipe : divisors(cluster.devices / model)) {
      const std::int64_t data = cluster.devices / model / pipe;
      if (job.model.layers % pipe != 0 || job.batch % data != 0) continue;
      for (const std::int64_t microbatch : divisors(job.batch / data)) {
        for (int zero = 0; zero <= (data > 1 ? 3 : 0); ++zero)
          consider({data, model, pipe, zero, microbatch, 1, Kept::everything});
      }
    }
  }
  if (plans.fitting + plans.left_out == 0) {
    fail("no placement on " + text_of(cluster.devices) +
         " devices divides the model and the batch: data divides " + text_of(job.batch) +
         " sequences, model " + text_of(job.model.heads) + " heads and " +
         text_of(mlp_width(job.model)) + " inner features, pipe " + text_of(job.model.layers) +
         " layers; take another batch or number of devices");
  }
  const auto order = [](const Plan& plan) {
    return std::tuple(in_three_digits(plan.bill.seconds()), plan.bill.bytes(),
                      plan.bill.memory.total(), plan.placement.model, plan.placement.pipe,
                      plan.placement.microbatch, plan.placement.zero);
  };
  std::sort(plans.best.begin(), plans.best.end(),
            [&](const Plan& a, const Plan& b) { return order(a) < order(b); });
  if (plans.best.size() > top) plans.best.resize(top);
  return plans;
}

}  // namespace ein::plan
