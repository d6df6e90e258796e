#include "cli/plugins.hpp"

#include "cli/error.hpp"
#include "cli/expression.hpp"
#include "core/plugin.hpp"
#include "trace/load_module.hpp"
#include "trace/plugin.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace rubato::cli {
namespace {

/// Of each of the places below.
constexpr const char* pages[] = {"docs/write-a-protocol.md", "docs/write-a-rule.md"};

bool there(const Node& file) {
    std::error_code error;
    return std::filesystem::is_regular_file(file.text, error);
}

/// FNV-1a, 64 bits, of the contents.
std::string checksum_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::uint64_t hash = 14695981039346656037ull;
    for (std::istreambuf_iterator<char> it(in), end; it != end; ++it)
        hash = (hash ^ static_cast<unsigned char>(*it)) * 1099511628211ull;
    return fmt::format("{:016x}", hash);
}

/// The objects that may name a plugin, with their paths; null: there is none.
std::pair<Node*, const char*> places(Node& root, int index) {
    if (index == 0) return {root.find("protocol"), "protocol"};
    return {root.find("optimizer")->find("staleness_rule"), "optimizer.staleness_rule"};
}

void complete_plugin(Node& object, const std::string& path) {
    const Node* name = object.find("name");
    if (!name || name->text != "plugin") return;
    const Node* file = object.find("file");
    if (!file)
        throw InputError(name->where, path, "\"file\" is missing beside \"plugin\": the file that was compiled of it");
    if (!there(*file)) return;  // whoever needs it says so
    if (const Node* given = object.find("checksum"); given && given->where.rank < file->where.rank)
        object.erase("checksum");
    const std::string checksum = checksum_of(file->text);
    if (const Node* given = object.find("checksum"); given && given->text != checksum)
        throw InputError(given->where, path + ".checksum",
                         "expected \"" + given->text + "\", but " + file->text + " has \"" + checksum +
                             "\": it was compiled anew; leave the key out to take it as it is");
    if (!object.find("checksum")) object.set("checksum", Node::of(checksum), {});
}

rubato::Constants constants_of(const Node& object) {
    rubato::Constants constants;
    if (const Node* given = object.find("constants"))
        for (const auto& [name, where, value] : given->members)
            if (value.is_number()) constants.set(name, value.number);
    return constants;
}

/// What `make` returns; its complaints become one line on the scenario.
template <class Make>
auto loaded(const Node& file, const Node& object, const std::string& path, Make&& make) {
    try {
        return make(constants_of(object));
    } catch (const trace::ModuleError& error) {
        throw InputError(file.where, path + ".file", error.what());
    } catch (const trace::PluginError& error) {
        throw InputError(file.where, path + ".file", error.what());
    } catch (const std::invalid_argument& error) {
        const Node* constants = object.find("constants");
        throw InputError(constants ? constants->where : file.where, path + ".constants", error.what());
    }
}

class PluginRule : public Expression {
public:
    PluginRule(std::string text, std::function<double(const RuleInfo&)> rule)
        : text_(std::move(text)), rule_(std::move(rule)) {}
    double operator()(const RuleInfo& info) const override {
        const double factor = rule_(info);
        if (std::isfinite(factor) && factor >= 0) return factor;
        throw ExpressionError(fmt::format(
            "{} gives {}, expected a finite factor of at least 0, at staleness = {}, worker = {}, version = "
            "{}, mean_staleness = {}",
            text_, factor, info.staleness, info.worker, info.version, info.mean_staleness));
    }
    std::string_view text() const override { return text_; }

private:
    std::string text_;
    std::function<double(const RuleInfo&)> rule_;
};

}  // namespace

void complete_plugins(Node& root) {
    for (const int index : {0, 1}) {
        const auto [object, path] = places(root, index);
        if (object->is(Node::Kind::object)) complete_plugin(*object, path);
    }
}

void require_plugins(const Node& root) {
    Node copy = root;
    std::error_code error;
    for (const int index : {0, 1}) {
        const auto [object, path] = places(copy, index);
        const Node* file = object->find("file");
        if (file && !there(*file))
            throw InputError(file->where, std::string(path) + ".file",
                             (std::filesystem::exists(file->text, error) ? file->text + " is not a file"
                                                                         : "there is no file " + file->text) +
                                 "; " + pages[index] + " tells how it is compiled");
    }
}

PolicyMaker policy_of(const Node& file, const Node& protocol, int lambda) {
    if (!there(file)) return {};
    return loaded(file, protocol, "protocol", [&](const rubato::Constants& constants) {
        PolicyMaker maker = trace::load_policy(file.text, constants);
        maker(lambda);
        return maker;
    });
}

std::shared_ptr<const Expression> rule_of(const Node& file, const Node& rule) {
    if (!there(file)) return {};
    return loaded(file, rule, "optimizer.staleness_rule", [&](const rubato::Constants& constants) {
        std::string text = "plugin " + file.text;
        if (const Node* given = rule.find("constants"))
            for (const auto& [name, where, value] : given->members)
                if (value.is_number()) text += fmt::format("; {}={}", name, value.number);
        return std::make_shared<const PluginRule>(std::move(text), trace::load_rule(file.text, constants));
    });
}

}  // namespace rubato::cli
