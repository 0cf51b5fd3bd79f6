// Models: modules, their layers and initialisations.
#pragma once

#include <ein/nn/attention.hpp>
#include <ein/nn/checkpointed.hpp>
#include <ein/nn/conv.hpp>
#include <ein/nn/cruncher.hpp>
#include <ein/nn/decoder.hpp>
#include <ein/nn/decoder_file.hpp>
#include <ein/nn/ein_mix.hpp>
#include <ein/nn/families.hpp>
#include <ein/nn/feed_forward.hpp>
#include <ein/nn/hugging_face.hpp>
#include <ein/nn/init.hpp>
#include <ein/nn/layers.hpp>
#include <ein/nn/module.hpp>
#include <ein/nn/pattern_layers.hpp>
#include <ein/nn/rotary.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/nn/typed_layers.hpp>
