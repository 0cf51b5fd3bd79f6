// Stories of a few sentences, made at random: they stand for TinyStories, of which the repository
// has no copy.
#pragma once

#include <cstdint>
#include <random>
#include <string>

inline std::string stories(int count, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](const auto& words) {
    return std::string(words[random() % std::size(words)]);
  };
  constexpr const char* names[] = {"Lily", "Tom", "Mia", "Ben", "Anna", "Sam"};
  constexpr const char* animals[] = {"cat", "dog", "bird", "rabbit", "frog"};
  constexpr const char* places[] = {"park", "garden", "forest", "house", "river"};
  constexpr const char* things[] = {"ball", "flower", "cake", "boat", "red box"};
  constexpr const char* moods[] = {"happy", "sad", "very tired", "surprised"};
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string name = one_of(names), animal = one_of(animals), thing = one_of(things);
    text += "Once upon a time, there was a little " + animal + " named " + name + ". ";
    text += name + " went to the " + one_of(places) + " and found a " + thing + ". ";
    text += "\"What a nice " + thing + "!\" said " + name + ". ";
    text += "The " + animal + " was " + one_of(moods) + ".\n<|endoftext|>\n";
  }
  return text;
}
