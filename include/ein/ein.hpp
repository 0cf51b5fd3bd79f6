// Tensors, and all that is computed with them. Apart from it: autograd.hpp, compile.hpp, nn.hpp,
// optim.hpp, cost.hpp, hardware.hpp, napkin.hpp, safetensors.hpp, eigen.hpp and others beside this
// file; all.hpp includes all of them but Eigen's.
#pragma once

#include <ein/compiler.hpp>

// Then, so that what a compiler says about a pattern begins with few lines of who includes whom.
#include <ein/pattern_error.hpp>

#include <ein/pattern.hpp>

#include <ein/ops.hpp>

#include <ein/axis.hpp>
#include <ein/create.hpp>
#include <ein/device.hpp>
#include <ein/dtype.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/linalg.hpp>
#include <ein/map.hpp>
#include <ein/memory.hpp>
#include <ein/named.hpp>
#include <ein/npy.hpp>
#include <ein/ops.hpp>
#include <ein/parallel.hpp>
#include <ein/pattern.hpp>
#include <ein/reduction.hpp>
#include <ein/shape.hpp>
#include <ein/tensor.hpp>
#include <ein/typed.hpp>
#include <ein/typed_named.hpp>
#include <ein/typed_ops.hpp>
#include <ein/vmap.hpp>
