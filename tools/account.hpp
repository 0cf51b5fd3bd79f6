// An account in the forms that ein account prints.
#pragma once

#include <string>

#include <ein/account.hpp>

namespace ein::command {

/// A tree with the share of each line in the one that it is a part of.
std::string account_text(const Account& root);
/// A member for each value, whose key is its path; `estimates` has the paths of those that are
/// estimates, one after the other.
std::string account_json(const Account& root);
/// Columns path, name, value, unit, estimate, note (RFC 4180).
std::string account_csv(const Account& root);
std::string account_markdown(const Account& root);
/// A tabular for each section, in need of no package.
std::string account_latex(const Account& root);
/// A page that needs nothing else: bars of memory, a table for each section.
std::string account_html(const Account& root, const std::string& title);

}  // namespace ein::command
