#include "sim/expression.hpp"

#include <cctype>
#include <cstdlib>
#include <stdexcept>

namespace rubato::tests {

namespace {

class Parser {
public:
    explicit Parser(const std::string& text) : text_(text), next_(text_.c_str()) {}
    double whole() {
        const double value = sum();
        blanks();
        if (*next_ != '\0') fail();
        return value;
    }

private:
    double sum() {
        double value = product();
        for (;;) {
            if (take('+'))
                value += product();
            else if (take('-'))
                value -= product();
            else
                return value;
        }
    }
    double product() {
        double value = atom();
        for (;;) {
            if (take('*'))
                value *= atom();
            else if (take('/'))
                value /= atom();
            else
                return value;
        }
    }
    double atom() {
        if (take('(')) {
            const double value = sum();
            if (!take(')')) fail();
            return value;
        }
        blanks();
        if (!std::isdigit(static_cast<unsigned char>(*next_))) fail();
        char* end = nullptr;
        const double value = std::strtod(next_, &end);
        next_ = end;
        return value;
    }
    void blanks() {
        while (*next_ == ' ') ++next_;
    }
    bool take(char symbol) {
        blanks();
        if (*next_ != symbol) return false;
        ++next_;
        return true;
    }
    [[noreturn]] void fail() const { throw std::runtime_error("cannot read \"" + text_ + "\" at \"" + next_ + "\""); }

    std::string text_;
    const char* next_;
};

}  // namespace

double evaluate(const std::string& text) {
    return Parser(text).whole();
}

}  // namespace rubato::tests
