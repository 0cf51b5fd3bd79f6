// All of ein but the interop headers (eigen.hpp).
#pragma once

// First, so that what a compiler says about a pattern begins with few lines of who includes whom.
#include <ein/pattern_error.hpp>

#include <ein/axis.hpp>
#include <ein/call.hpp>
#include <ein/cost.hpp>
#include <ein/create.hpp>
#include <ein/device.hpp>
#include <ein/dtype.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/graph.hpp>
#include <ein/hardware.hpp>
#include <ein/memory.hpp>
#include <ein/named.hpp>
#include <ein/napkin.hpp>
#include <ein/npy.hpp>
#include <ein/ops.hpp>
#include <ein/parallel.hpp>
#include <ein/pattern.hpp>
#include <ein/reduction.hpp>
#include <ein/shape.hpp>
#include <ein/tensor.hpp>
#include <ein/typed.hpp>
