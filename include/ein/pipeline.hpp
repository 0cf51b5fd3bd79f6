// Pipelines: a model cut into stages, each of which other processes compute.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ein/mesh.hpp>

namespace ein {

/// The stages of a model along one axis of a mesh: the processes at place s along it compute stage
/// s. A batch goes through them as microbatches, one forward, one backward (1F1B: Narayanan et al.
/// 2019, "PipeDream"; with the pipeline emptied before the update: Narayanan et al. 2021,
/// "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", section 2.2).
/// With S stages and M microbatches, stage s
///
///   - makes min(S - 1 - s, M) forward passes, then one forward and one backward pass in turn, then
///     the backward passes that are left: in_flight(s, M) microbatches are between theirs at most,
///   - is idle for (S - 1)/M of the time that it computes, where all stages take equally long.
///
/// Where one process stands for all of the mesh, it computes all stages, with the same bits.
class Pipeline {
 public:
  /// A stage: from its input to its output, of microbatch 0, 1, ...
  using Stage = std::function<Tensor(const Tensor& x, int stage, int microbatch)>;
  /// The loss of a microbatch, a scalar that is whole, from the last stage's output.
  using Loss = std::function<Tensor(const Tensor& y, int microbatch)>;

  /// An Error of kind `value` where the mesh has no such axis.
  Pipeline(const Mesh& mesh, std::string_view axis);

  /// The number of stages.
  int size() const { return mesh_.size(axis_); }
  /// The stages that this process computes, and whose modules it makes: one, or all of them where
  /// it stands for all of the mesh.
  const std::vector<int>& stages() const { return stages_; }
  /// The mesh of the other axes, on which a stage's tensors may be placed: Mesh::without. The
  /// processes of a stage have one; where one process stands for all, stages share it.
  const Mesh& mesh() const { return stage_mesh_; }

  /// The forward and backward passes of all microbatches. `microbatches` are the inputs of stage 0,
  /// which alone reads them. `between` has the shape, dtype and placement of what every stage but
  /// the last gives to the next; its values are not read. Adds to grad() of a stage's parameters as
  /// `(loss / M).backward()` of each microbatch in turn does: a parameter belongs to one stage.
  /// Returns the mean loss of the microbatches, the same on every process. All processes call it,
  /// with as many microbatches; what stages draw at random depends on the call, the stage and the
  /// microbatch alone.
  ///
  /// Errors of kind `value`: no microbatches, a dtype between stages that has no gradients, a call
  /// in a function that ein::compile traces; of kind `shape`, `dtype` or `placement`: a stage gives
  /// something else than `between`, or a loss is no scalar.
  double step(std::span<const Tensor> microbatches, const Tensor& between, const Stage& stage,
              const Loss& loss) const;

  /// The sum over all stages of a number that a stage's processes know, the same on every process:
  /// of the square of a gradient's norm, say.
  double sum(const std::function<double(int stage)>& of_stage) const;

  /// What a process of that stage gives to the others along the axis in a step. Each microbatch is
  /// sent to the next stage, and its gradient to the one before; the loss is a sum().
  std::vector<Exchange> exchanges(int stage, int microbatches, const Tensor& between) const;
  /// How many microbatches are between their forward and backward pass on a stage, at most:
  /// min(S - stage, M). Here and above an Error of kind `value` for a stage that there is not.
  int in_flight(int stage, int microbatches) const;

 private:
  Mesh mesh_;
  std::string axis_;
  Mesh stage_mesh_;
  std::vector<int> stages_;
};

}  // namespace ein
