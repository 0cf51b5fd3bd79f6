// Plans: how the training of a Transformer lies on the devices of a cluster, what each device then
// holds and sends, and the least time that a step takes. Nothing is measured, and nothing runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ein/dtype.hpp>
#include <ein/hardware.hpp>
#include <ein/napkin.hpp>
#include <ein/placement.hpp>

namespace ein::plan {

// Bytes, seconds and FLOPs are of a step: one update of the parameters. Errors are of kind `value`
// where nothing else is said; they name the sizes and what to change.

/// What is trained.
struct Job {
  napkin::Transformer model;
  std::int64_t batch = 0;  ///< sequences of a step, over all devices
  napkin::Recipe recipe = napkin::mixed_precision();
};

/// Devices of one kind in nodes: a fast link joins those of a node, a slower one the nodes.
struct Cluster {
  std::string device;
  std::int64_t devices = 1;
  std::int64_t node = 1;  ///< devices that share a node
  double peak = 0;        ///< of a device, FLOP/s
  double memory = 0;      ///< of a device, bytes
  double bandwidth = 0;   ///< of a device's memory, bytes/s
  double inside = 0;      ///< what a device sends in its node, bytes/s in one direction
  double between = 0;     ///< what it sends to other nodes
};
/// Inside a node NVLink, or PCI Express where NVLink does not join as many; between nodes
/// InfiniBand. `inside` and `between` are the bandwidths where the table's are 0. An Error where a
/// peak or a bandwidth is wanted that the device does not promise, and for nodes that do not divide
/// the devices.
Cluster cluster_of(const Hardware& device, std::int64_t devices, std::int64_t node,
                   DType dtype = DType::bf16, double inside = 0, double between = 0);

/// How a job lies on a cluster: data · model · pipe devices. Neighbours differ along `model` first,
/// then along `data`, then along `pipe`.
struct Placement {
  std::int64_t data = 1;   ///< parts of the batch
  std::int64_t model = 1;  ///< parts of heads, inner features and vocabulary (Shoeybi et al. 2019)
  std::int64_t pipe = 1;   ///< stages of layers
  int zero = 0;            ///< what is split over `data` (Rajbhandari et al. 2020): 1 the
                           ///< optimizer's state, 2 gradients too, 3 parameters too
  std::int64_t microbatch = 1;  ///< sequences that go through a stage at a time
  std::int64_t chunks = 1;      ///< parts of a stage, in the interleaved schedule; 1 for plain 1F1B
  napkin::Kept kept = napkin::Kept::everything;
};
/// data · model · pipe. An Error where one is not positive, or the product exceeds 2^63 - 1.
std::int64_t devices_of(const Placement& placement);
/// "data 4 · model 8 · pipe 2, ZeRO 1, microbatch 1".
std::string to_string(const Placement& placement);
/// An Error unless the placement's axes multiply to `devices` and divide what they split: model the
/// heads and the MLP's width, pipe · chunks the layers, data · microbatch the batch; chunks want
/// stages, and as many microbatches as a multiple of the stages; ZeRO is 0 to 3.
void check(const Job& job, const Placement& placement, std::int64_t devices);
/// Microbatches of a step for each part of the batch: batch / (data · microbatch).
std::int64_t microbatches(const Job& job, const Placement& placement);
/// Idle time over computing time: (p - 1) / m for 1F1B, (p - 1) / (v · m) with v chunks (Narayanan
/// et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021).
double bubble(const Job& job, const Placement& placement);

/// What a device holds for `parameters` parameters: with Ψ parameters in mixed precision 2Ψ + 2Ψ +
/// 12Ψ bytes, of which ZeRO divides the third, the second and the first by `data` (Rajbhandari et
/// al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020, figure 1).
struct State {
  double parameters = 0, gradients = 0;
  double optimizer = 0;  ///< its state, and the master copy
  double total() const { return parameters + gradients + optimizer; }
};
State state_bytes(double parameters, const napkin::Recipe& recipe, std::int64_t data, int zero);

/// Estimate: bytes of a layer's activations for one microbatch on one device, by Korthikanti et
/// al., Reducing Activation Recomputation in Large Transformer Models, 2022, with tensor
/// parallelism of t devices: s·b·h·(10 + 24/t + 5·a·s/(h·t)) with an MLP of 4·h, without scores
/// s·b·h·(10 + 24/t), and 2·s·b·h of the layer's input.
double activation_bytes(const napkin::Transformer& model, std::int64_t microbatch, std::int64_t t,
                        napkin::Kept kept);

/// Bytes of the device that holds the most, of the first and the last stage.
struct Memory {
  State state;
  double gathered = 0;  ///< a layer's gradients (ZeRO 2, 3) and parameters (3) while they are whole
  double activations = 0;  ///< estimate: of the microbatches between their forward and backward
                           ///< passes, and of one layer that is computed again
  double logits = 0;       ///< estimate: in f32, and what the head reads
  double total() const { return state.total() + gathered + activations + logits; }
};

/// Bytes that each of n devices sends for `bytes` of the whole value: 2·(n-1)/n·V for an
/// all_reduce, (n-1)/n·V for a reduce_scatter or an all_gather, V for a send (Thakur, Rabenseifner,
/// Gropp: Optimization of Collective Communication Operations in MPICH, 2005).
double bytes_sent(Collective way, std::int64_t n, double bytes);
/// "2·(n-1)/n·V".
std::string_view formula(Collective way);

/// What a device sends for one purpose.
struct Traffic {
  std::string axis;  ///< of the mesh: data, model, pipe
  Collective way = Collective::all_reduce;
  std::string what;      ///< "gradients"
  std::int64_t n = 1;    ///< devices of the group
  double bytes = 0;      ///< V, of the whole value, each time
  double times = 1;      ///< in a step
  double bandwidth = 0;  ///< bytes/s in one direction: at best, `inside`, or the sum of what the
                         ///< group's devices of a node send to other nodes
  double sent() const { return bytes_sent(way, n, bytes) * times; }
  double seconds() const { return sent() / bandwidth; }
};

/// What a placement takes.
struct Bill {
  Memory memory;
  double model_flops = 0;     ///< 3 · forward passes, of all devices
  double executed_flops = 0;  ///< with what is computed again
  std::vector<Traffic> traffic;
  double bytes() const;  ///< that a device sends
  double bubble = 0;
  // Estimates, of the schedule with every part at its limit.
  double compute_seconds = 0;  ///< matrix products of the slowest stage at the peak
  double waiting_seconds = 0;  ///< its collectives between products, which nothing hides
  double idle_seconds = 0;     ///< while the pipeline fills and drains
  double exposed_seconds = 0;  ///< traffic over `data` and `pipe` that no computation hides
  double update_seconds = 0;   ///< the optimizer's reads and writes at the memory's bandwidth
  double seconds() const;      ///< the sum: the least time of a step
  double mfu = 0;              ///< bound: model FLOPs over what the devices could do in seconds()
  double hfu = 0;              ///< bound, with what is computed again
};

/// The fullest and the slowest stage decide. Products run at the peak; those of the model axis'
/// all_reduces wait that stand between them, two forward and two backward for each layer (Shoeybi
/// et al., Megatron-LM, 2019), and two more where the layer is computed again. Gradients are summed
/// once a step, with ZeRO 0 and 1 by all_reduce, behind the last microbatch's backward pass; with
/// ZeRO 2 and 3 by a reduce_scatter for each microbatch, behind its backward pass; new parameters
/// are gathered behind the next forward pass (ZeRO 1, 2), or for each pass of each microbatch (3).
/// Between stages each device sends its part of the activations, which are gathered over `model`
/// (scatter/gather, Narayanan et al. 2021, section 4.1). Elementwise operations, latencies, and
/// collectives of single numbers are left out. Errors as those of check.
Bill bill(const Job& job, const Placement& placement, const Cluster& cluster);

struct Plan {
  Placement placement;
  Bill bill;
};
struct Plans {
  std::vector<Plan> best;     ///< by least time in three digits, then bytes sent, then memory
  std::int64_t fitting = 0;   ///< placements that fit the memory
  std::int64_t left_out = 0;  ///< placements that do not
  double least_memory = 0;    ///< bytes, of all placements
};
/// The `top` best of all placements: data × model × pipe × ZeRO × microbatch, each keeping the most
/// activations that fit. Plain 1F1B alone. An Error for a job or a cluster with a size that is not
/// positive, for more than 10^9 sequences or devices, and where no placement divides the job.
Plans plans(const Job& job, const Cluster& cluster, std::size_t top = 5);

}  // namespace ein::plan
