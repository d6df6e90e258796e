// What the program tells people beside its results: one line each, on stderr.
#pragma once

#include <string>

namespace rubato::cli {

/// Something worth knowing: a key that was dropped, an idle worker.
void note(const std::string& text);
/// Something that makes figures doubtful.
void warn(const std::string& text);
/// A warning that be_quiet() does not hide: something that was written and should be there is not.
void insist(const std::string& text);
/// Why the program ends.
void error(const std::string& text);
/// Only errors from now on.
void be_quiet();

}  // namespace rubato::cli
