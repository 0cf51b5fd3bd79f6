// Bytes given to a function that loads files, which takes them or refuses them with a reason.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <ein/error.hpp>
#include "support/scratch.hpp"

namespace ein::test {

/// A fixture for the function load(path, options), which errors call `loader`.
template <auto load, class Options>
class LoadedBytes : public testing::Test {
 protected:
  using Loaded = std::invoke_result_t<decltype(load), const std::string&, Options>;

  /// `suffix` is of a file's name; `all_options` are those under which bytes are refused alike.
  LoadedBytes(std::string loader, const std::string& suffix, std::vector<Options> all_options)
      : loader_(std::move(loader)),
        tried_("tried" + suffix),
        all_options_(std::move(all_options)) {}

  std::string path(const std::string& name) const { return scratch_.path(name); }
  /// What the bytes stand for, or nothing and the text of the Error of kind `file` in `what_`.
  std::optional<Loaded> try_load(const std::string& bytes, const Options& options = {}) {
    const std::string file = path(tried_);
    write_bytes(file, bytes);
    try {
      return load(file, options);
    } catch (const Error& error) {
      what_ = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::file) << what_;
      EXPECT_TRUE(what_.starts_with(loader_ + ": \"" + file)) << what_;
      return std::nullopt;
    }
  }
  void expect_refused(const std::string& bytes, const std::string& reason) {
    for (const Options& options : all_options_) {
      what_.clear();
      EXPECT_FALSE(try_load(bytes, options)) << reason;
      EXPECT_NE(what_.find(reason), std::string::npos)
          << "wanted: " << reason << "\ngot: " << what_;
    }
  }

  ScratchDirectory scratch_;
  std::string what_;

 private:
  std::string loader_, tried_;
  std::vector<Options> all_options_;
};

}  // namespace ein::test
