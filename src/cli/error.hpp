// The one error of wrong input: a line that says where, what was expected and what was found.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

namespace rubato::cli {

/// Where a value was written. `rank` orders the layers of a scenario: extended files from the innermost on, then the
/// file itself, then the command line.
struct Where {
    std::shared_ptr<const std::string> file;  ///< a file, or "--set KEY=VALUE"; null: a default
    int line = 0;                             ///< from 1; 0: no line
    int rank = 0;
};

/// "scenario.json:12", "--set a=b"; empty for defaults.
std::string to_text(const Where& where);

/// The first or last bytes of a text, at most so many; no character of UTF-8 is cut.
std::string head_of(const std::string& text, std::size_t most);
std::string tail_of(const std::string& text, std::size_t most);

/// "--set KEY=VALUE" for messages; of a long one the beginning.
std::string set_label(const std::string& assignment);

/// The input is wrong: exit status 2. what() is one line.
class InputError : public std::runtime_error {
public:
    explicit InputError(const std::string& message);
    /// "FILE:LINE: PATH: MESSAGE"; an empty path is left out.
    InputError(const Where& where, const std::string& path, const std::string& message);
    /// It is about a key that no file has: a default, which does not go with what the file says.
    bool about_default() const { return about_default_; }

private:
    bool about_default_ = false;
};

}  // namespace rubato::cli
