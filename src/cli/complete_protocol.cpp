#include "cli/complete_protocol.hpp"

#include "cli/complete.hpp"
#include "core/policy.hpp"

#include <algorithm>
#include <string>

namespace rubato::cli {
namespace {

[[noreturn]] void refuse_key(const Node& protocol, const std::string& key, const std::string& why) {
    refuse(protocol.at(key), "protocol." + key, why);
}

void fill(Node& protocol, const std::string& key, std::int64_t value) {
    if (!protocol.find(key)) protocol.set(key, Node::of(value), {});
}

/// "expected ..., found 5".
std::string expected(const std::string& what, const Node& found) {
    return "expected " + what + ", found " + (found.is(Node::Kind::null) ? "null" : std::to_string(found.whole()));
}

void check_softsync(const Node& protocol, std::int64_t lambda) {
    const Node* n = protocol.find("n");
    if (n && n->whole() > lambda)
        refuse_key(
            protocol, "n",
            expected("at most the number of workers, " + std::to_string(lambda), *n) +
                ": floor(lambda / n) gradients an update would be none (n and the number of workers go together)");
}

void check_dssp(const Node& protocol) {
    // Whoever was slowest when a wait began may have been overtaken, so that wait alone keeps no bound.
    if (protocol.at("mode").text == "strict" && protocol.at("reexamine").text == "slowest")
        refuse_key(
            protocol, "reexamine",
            "\"slowest\" lets workers go before all others have come close enough, which mode \"strict\" promises: "
            "expected \"every-push\", or a literal mode");
}

}  // namespace

void complete_protocol(Node& root) {
    Node& protocol = *root.find("protocol");
    const std::string name = protocol.at("name").text;
    const std::int64_t lambda = worker_count(root);
    if (name == "n-softsync" && !protocol.find("gradients_per_update")) fill(protocol, "n", 1);
    if (name == "n-softsync") check_softsync(protocol, lambda);
    if (name == "dssp") check_dssp(protocol);
    if (name == "bounded-delay") fill(protocol, "k", lambda);
    if (name == "rennala") fill(protocol, "gradients_per_update", lambda);
    if (name == "ringmaster") fill(protocol, "delay_threshold", lambda);
    if (name == "backup-workers") {
        fill(protocol, "backups", std::min<std::int64_t>(1, lambda - 1));
        const Node& backups = protocol.at("backups");
        if (backups.whole() >= lambda)
            refuse_key(protocol, "backups",
                       expected("fewer than the number of workers, " + std::to_string(lambda), backups) +
                           ": an update would take no gradient");
    }
    if (name == "admission") {
        fill(protocol, "gradients_per_update", 1);
        const Node& bound = protocol.at("bound");
        if (bound.is(Node::Kind::null))
            refuse_key(protocol, "bound",
                       expected("an integer of at least 0", bound) + "; without a bound it is async");
    }
    if (root.find("schedule") && protocol.find("warm_start"))
        refuse_key(protocol, "warm_start", "cannot stand beside schedule, which says who goes on and when");
}

void check_policy(const Node& root, const Scenario& scenario) {
    if (scenario.protocol.averages() || scenario.protocol.reduces()) return;  // without a policy
    const Policy policy = make_policy(scenario.protocol, scenario.lambda());
    const PolicyTraits said = traits(policy);
    const std::string name(rubato::name(policy));
    if (scenario.workers.communication.pull_every > 1 && (said.drops || said.minds_staleness))
        refuse(root.at("workers").at("communication").at("pull_every"), "workers.communication.pull_every",
               "\"" + name +
                   "\" minds how old the weights are that a gradient was computed on, and a worker that does "
                   "not pull keeps old ones: expected 1 (push_every may be more)");
    // Workers go on as they like, or in rounds.
    const bool decides = said.asks || said.drops || said.word != (said.rounds ? Word::broadcast : Word::inquiry);
    if (root.find("schedule") && decides)
        throw InputError(root.at("protocol").at("name").where, "protocol.name",
                         "expected \"hardsync\", \"n-softsync\" or \"async\" beside schedule, which says who goes on "
                         "and when; \"" +
                             name + "\" decides that itself");
}

}  // namespace rubato::cli
