// Besides cli/expression.cpp the only file that sees muparser.
#include "cli/sweep/condition.hpp"

#include "cli/schema.hpp"
#include "cli/schema_keys.hpp"
#include "cli/suggest.hpp"

#include <muParser.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>

namespace rubato::cli {
namespace {

struct Variable {
    std::string path;
    double value = 0;
    bool seen = false;    ///< some scenario had it
    bool scalar = false;  ///< and it was no object or array there
};

/// A text of the scenario or the condition as a number, far from what a scenario counts with: muparser knows no other.
constexpr double text_scale = 1e300;

}  // namespace

struct Condition::Impl {
    std::string source;
    Where where;
    mu::Parser parser;
    std::deque<Variable> variables;  ///< addresses stay
    std::map<std::string, std::size_t> texts;
    std::deque<std::pair<std::string, double>> constants;  ///< texts of the condition itself; addresses stay
    bool met_text = false;                                 ///< in the scenario at hand

    double number_of(const std::string& text, double sign) {
        return sign * (text_scale + 1e290 * static_cast<double>(texts.try_emplace(text, texts.size()).first->second));
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw InputError(where, "where", "\"" + source + "\": " + what);
    }

    /// Texts in quotes become their numbers.
    std::string without_texts() {
        std::string out;
        for (std::size_t i = 0; i < source.size(); ++i) {
            if (source[i] != '"') {
                out += source[i];
                continue;
            }
            const auto end = source.find('"', i + 1);
            if (end == std::string::npos) fail("a text is not closed");
            const std::string text = source.substr(i + 1, end - i - 1);
            const bool known = texts.contains(text);
            const double number = number_of(text, 1);
            const std::string name = "_text" + std::to_string(texts.at(text));
            if (!known) parser.DefineVar(name, &constants.emplace_back(text, number).second);
            out += name;
            i = end;
        }
        return out;
    }

    static double* make(const char* name, void* self) {
        auto& all = static_cast<Impl*>(self)->variables;
        all.push_back({name});
        return &all.back().value;
    }

    double read(const Node* node, double sign) {
        if (!node) return std::numeric_limits<double>::quiet_NaN();
        switch (node->kind) {
            case Node::Kind::boolean: return node->boolean ? 1 : 0;
            case Node::Kind::integer:
            case Node::Kind::number: return node->number;
            case Node::Kind::string: met_text = true; return number_of(node->text, sign);
            default: return std::numeric_limits<double>::quiet_NaN();
        }
    }

    /// `sign`: of the numbers that stand for texts.
    double value(const Node& tree, double sign) {
        for (Variable& variable : variables) {
            const Node* node = value_at(tree, variable.path);
            variable.seen |= node != nullptr;
            variable.scalar |= node && !node->is(Node::Kind::object) && !node->is(Node::Kind::array);
            variable.value = read(node, sign);
        }
        for (auto& [text, number] : constants) number = number_of(text, sign);
        try {
            return parser.Eval();
        } catch (const mu::Parser::exception_type& error) {
            fail(error.GetMsg());
        }
    }
};

Condition::Condition(const std::string& text, const Where& where) : impl_(std::make_unique<Impl>()) {
    impl_->source = text;
    impl_->where = where;
    mu::Parser& parser = impl_->parser;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool compares = i + 1 < text.size() && text[i + 1] == '=';
        if (text[i] == '=' && !compares &&
            (i == 0 || std::string_view("=<>!").find(text[i - 1]) == std::string_view::npos))
            impl_->fail("= does not compare, write ==");
    }
    try {
        parser.DefineNameChars("0123456789_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        parser.SetVarFactory(&Impl::make, impl_.get());
        parser.SetExpr(impl_->without_texts());
        parser.Eval();
        if (parser.GetNumResults() != 1) impl_->fail("expected one condition; && and || join several");
    } catch (const mu::Parser::exception_type& error) {
        impl_->fail(error.GetMsg());
    }
}

Condition::~Condition() = default;

bool Condition::holds(const Node& tree) {
    impl_->met_text = !impl_->constants.empty();
    const double value = impl_->value(tree, 1);
    // Whether texts are equal does not depend on the numbers that stand for them; anything else that is asked of them
    // does.
    if (impl_->met_text) {
        const double turned = impl_->value(tree, -1);
        if (std::fabs(value) >= text_scale / 2)
            impl_->fail("is a text, expected a condition that is true or false, such as protocol.name == \"async\"");
        if (value != turned && !(std::isnan(value) && std::isnan(turned)))
            impl_->fail("a text can be compared with == and != only");
    }
    return value != 0 && !std::isnan(value);
}

void Condition::check_keys() const {
    for (const Variable& variable : impl_->variables) {
        if (variable.path == "seed")
            impl_->fail("it keeps settings with all their seeds; to leave a seed out, take it from \"seeds\"");
        if (variable.seen && !variable.scalar)
            impl_->fail("\"" + variable.path +
                        "\" is an object or an array, expected a key with a number, a text, true or false");
        if (variable.seen || schema_at(variable.path)) continue;
        std::vector<std::string> known;
        for (const SchemaKey& key : schema_keys()) known.push_back(key.path);
        const std::string near = nearest(variable.path, known);
        impl_->fail("\"" + variable.path + "\" is no key of a scenario" +
                    (near.empty() ? "; texts stand in double quotes" : "; did you mean " + near + "?"));
    }
}

const Node* value_at(const Node& tree, std::string_view path) {
    const Node* node = &tree;
    while (node) {
        const auto dot = path.find('.');
        const std::string_view part = path.substr(0, dot);
        if (node->is(Node::Kind::array)) {
            constexpr std::size_t npos = 1'000'000'000;
            std::size_t index = 0;
            for (const char c : part)
                index = c >= '0' && c <= '9' && index < 1'000'000'000 ? index * 10 + static_cast<std::size_t>(c - '0')
                                                                      : npos;
            node = index < node->items.size() ? &node->items[index] : nullptr;
        } else {
            node = node->find(part);
        }
        if (dot == std::string_view::npos) return node;
        path.remove_prefix(dot + 1);
    }
    return nullptr;
}

}  // namespace rubato::cli
