// The only file that sees muparser.
#include "cli/expression.hpp"

#include "cli/suggest.hpp"

#include <muParser.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <mutex>

namespace rubato::cli {
namespace {

struct Variable {
    const char* name;
    double RuleInfo::*field;
};

constexpr Variable variables[] = {
    {"staleness", &RuleInfo::staleness},
    {"age", &RuleInfo::age},
    {"worker", &RuleInfo::worker},
    {"samples", &RuleInfo::samples},
    {"version", &RuleInfo::version},
    {"epoch", &RuleInfo::epoch},
    {"lambda", &RuleInfo::lambda},
    {"mean_staleness", &RuleInfo::mean_staleness},
    {"n", &RuleInfo::n},
    {"batch_size", &RuleInfo::batch_size},
};

std::string shortest(double value) {
    char text[40];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// Where a single = stands (muparser would assign); npos: nowhere.
std::size_t assignment_at(const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '=') continue;
        const char before = i > 0 ? text[i - 1] : ' ';
        const char after = i + 1 < text.size() ? text[i + 1] : ' ';
        if (after == '=') {
            ++i;
        } else if (before != '<' && before != '>' && before != '!') {
            return i;
        }
    }
    return std::string::npos;
}

class ParsedExpression : public Expression {
public:
    ParsedExpression(const std::string& text, const Constants& constants) : source_(text), text_(text) {
        const std::size_t assignment = assignment_at(text);
        if (assignment != std::string::npos) fail(assignment, "= does not compare, write ==");
        try {
            for (const auto& variable : variables) parser_.DefineVar(variable.name, &(values_.*variable.field));
            for (const auto& [name, value] : constants) {
                for (const auto& variable : variables) {
                    if (name == variable.name) {
                        throw std::invalid_argument("the constant \"" + name + "\" has the name of a variable");
                    }
                }
                parser_.DefineConst(name, value);
                text_ += "; " + name + "=" + shortest(value);
            }
            parser_.SetExpr(text);
            parser_.Eval();
            if (parser_.GetNumResults() != 1) fail(text.find(','), "expected one value");
            for (const auto& [name, value] : constants)
                if (!looks_at(name))
                    throw std::invalid_argument("the constant \"" + name + "\" does not occur in the expression \"" +
                                                source_ + "\"");
        } catch (const mu::Parser::exception_type& error) {
            fail(error);
        }
    }

    double operator()(const RuleInfo& info) const override {
        // Roles are copied and share the expression, and the parser reads its variables from one place.
        const std::lock_guard lock(mutex_);
        values_ = info;
        double factor = 0;
        try {
            factor = parser_.Eval();
        } catch (const mu::Parser::exception_type& error) {
            throw ExpressionError("staleness rule \"" + text_ + "\": " + error.GetMsg());
        }
        if (std::isfinite(factor) && factor >= 0) return factor;
        std::string inputs;
        for (const auto& variable : variables) {
            inputs +=
                (inputs.empty() ? "" : ", ") + std::string(variable.name) + " = " + shortest(info.*variable.field);
        }
        throw ExpressionError("staleness rule \"" + text_ + "\" gives " + shortest(factor) +
                              ", expected a finite factor of at least 0, at " + inputs);
    }

    std::string_view text() const override { return text_; }

    bool looks_at(std::string_view name) const override {
        const auto part_of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
        for (auto at = source_.find(name); at != source_.npos; at = source_.find(name, at + 1)) {
            const auto end = at + name.size();
            const bool begins = at == 0 || !part_of_name(source_[at - 1]);
            if (begins && (end == source_.size() || !part_of_name(source_[end]))) return true;
        }
        return false;
    }

private:
    [[noreturn]] void fail(std::size_t position, const std::string& what) const {
        throw std::invalid_argument("expression \"" + source_ + "\", character " + std::to_string(position + 1) + ": " +
                                    what);
    }

    [[noreturn]] void fail(const mu::Parser::exception_type& error) const {
        const auto position = static_cast<std::size_t>(std::max(error.GetPos(), 0));
        if (error.GetCode() != mu::ecUNASSIGNABLE_TOKEN) fail(position, error.GetMsg());
        std::vector<std::string> names;
        for (const auto& variable : variables) names.emplace_back(variable.name);
        const std::string near = nearest(error.GetToken(), names);
        const std::string hint =
            near.empty() ? "; variables are " + one_of(names, "and") : "; did you mean \"" + near + "\"?";
        fail(position, "\"" + error.GetToken() + "\" is neither a variable nor a constant of the rule" + hint);
    }

    mutable std::mutex mutex_;
    mutable RuleInfo values_;
    mutable mu::Parser parser_;
    std::string source_;
    std::string text_;
};

}  // namespace

std::vector<double> worker_figures(const std::string& text, int lambda) {
    const auto fail = [&](std::size_t position, const std::string& what) {
        throw std::invalid_argument("expression \"" + text + "\", character " + std::to_string(position + 1) + ": " +
                                    what);
    };
    if (const auto at = assignment_at(text); at != std::string::npos) fail(at, "= does not compare, write ==");
    double i = 1, count = lambda;
    mu::Parser parser;
    std::vector<double> figures;
    try {
        parser.DefineVar("i", &i);
        parser.DefineVar("lambda", &count);
        parser.SetExpr(text);
        for (int worker = 1; worker <= lambda; ++worker) {
            i = worker;
            figures.push_back(parser.Eval());
            if (parser.GetNumResults() != 1) fail(text.find(','), "expected one value");
        }
    } catch (const mu::Parser::exception_type& error) {
        const auto position = static_cast<std::size_t>(std::max(error.GetPos(), 0));
        if (error.GetCode() != mu::ecUNASSIGNABLE_TOKEN) fail(position, error.GetMsg());
        fail(position,
             "\"" + error.GetToken() + "\" is no variable; there are i, from 1 for the first worker on, and lambda");
    }
    for (std::size_t worker = 0; worker < figures.size(); ++worker) {
        if (std::isfinite(figures[worker]) && figures[worker] > 0) continue;
        throw std::invalid_argument("expression \"" + text + "\" gives " + shortest(figures[worker]) +
                                    " for i = " + std::to_string(worker + 1) + ", expected a finite number above 0");
    }
    return figures;
}

std::shared_ptr<const Expression> make_expression(const std::string& text, const Constants& constants) {
    return std::make_shared<const ParsedExpression>(text, constants);
}

}  // namespace rubato::cli
