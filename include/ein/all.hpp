// All of ein in one header, but what needs Eigen (eigen.hpp, eigen_tensor.hpp). A program compiles
// sooner with the headers that it uses: each says in its first lines what it holds.
#pragma once

// Tensors, patterns, and what is computed with them.
#include <ein/ein.hpp>

#include <ein/complex.hpp>
#include <ein/version.hpp>

// Gradients, values that are computed again, compiled functions.
#include <ein/autograd.hpp>
#include <ein/checkpoint.hpp>
#include <ein/compile.hpp>

// Models and their training.
#include <ein/autocast.hpp>
#include <ein/data.hpp>
#include <ein/grad_scaler.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include <ein/schedule.hpp>
#include <ein/text.hpp>
#include <ein/tokenizer.hpp>
#include <ein/train.hpp>

// Files, and tensors of other libraries.
#include <ein/checkpoint_files.hpp>
#include <ein/dlpack.hpp>
#include <ein/npy.hpp>
#include <ein/npz.hpp>
#include <ein/safetensors.hpp>

// Several processes.
#include <ein/mesh.hpp>
#include <ein/pipeline.hpp>

// Cost, before and after.
#include <ein/account.hpp>
#include <ein/call.hpp>
#include <ein/cost.hpp>
#include <ein/draw.hpp>
#include <ein/hardware.hpp>
#include <ein/napkin.hpp>
#include <ein/plan.hpp>
#include <ein/shapes_only.hpp>
