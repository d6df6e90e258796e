#include "cli/pipeline.hpp"

#include "cli/complete.hpp"
#include "cli/protocol_text.hpp"

#include <string>

namespace rubato::cli {
namespace {

/// A policy without any say in who goes on, which is all that a worker may run ahead of.
void check_policy(const Node& pipeline, const Scenario& scenario) {
    const PolicyTraits policy = traits_of(scenario);
    const std::string its = "\"" + scenario.protocol.name + "\" ";
    const auto no = [&](const std::string& why) {
        // Where weights come unasked there is no other pipeline.
        const bool other = scenario.topology != "tree-downcast";
        refuse(pipeline, "workers.pipeline",
               why + ": expected " + (other ? "\"blocking\", or " : "") + "protocol n-softsync or async");
    };
    if (scenario.protocol.name == "plugin" && !scenario.protocol.plugin) return;  // its file is not loaded yet
    if (policy.rounds || policy.word == Word::broadcast)
        no(its + "has workers wait for the update that their gradients go into, so there is nothing to overlap");
    if (policy.word == Word::ok || policy.asks)
        no(its +
           "has a worker go on by the server's word on what it has pushed, and one that asks ahead has not pushed "
           "yet");
    if (policy.drops)
        no(its + "drops stale gradients, and those of a worker that asks ahead are always stale by one or two");
}

}  // namespace

void check_pipeline(const Node& root, const Scenario& scenario) {
    if (!scenario.workers.overlaps()) return;
    const Node& workers = root.at("workers");
    const Node& pipeline = workers.at("pipeline");
    check_policy(pipeline, scenario);
    if (scenario.workers.communication.any())
        refuse(pipeline, "workers.pipeline",
               "a worker that takes steps of its own between exchanges has to have its weights: expected \"blocking\" "
               "beside workers.communication");
    if (scenario.protocol.warm_epochs > 0)
        refuse(pipeline, "workers.pipeline",
               "protocol.warm_start is hardsync, whose workers wait: expected \"blocking\" beside it");
    if (!scenario.schedule.trace.empty())
        refuse(pipeline, "workers.pipeline",
               "a schedule says on which version each gradient is computed: expected \"blocking\" beside it");
    if (!scenario.workers.draw_themselves()) return;
    // What was given is refused, as "latest" may be a default.
    if (scenario.data.sampling == Sampling::shared_epoch)
        refuse(root.at("data").at("sampling"), "data.sampling",
               "\"latest\" workers wait for nobody, so nobody deals them slices of an epoch that they share: "
               "expected \"strided\", \"random\" or \"sharded\"");
    if (scenario.evaluate.mode == EvaluateSpec::Mode::pause)
        refuse(
            root.at("evaluate").at("mode"), "evaluate.mode",
            "\"pause\" holds workers back, and workers with pull \"latest\" wait for nobody: expected \"deferred\" or "
            "\"rank\"");
    if (scenario.optimizer.staleness_rule.looks_at_weights())
        refuse(root.at("optimizer").at("staleness_rule"), "optimizer.staleness_rule",
               "looks at the weights that a gradient was computed on, and the server does not know "
               "which ones a worker with pull \"latest\" takes: expected another rule, or workers.pull \"prefetch\"");
}

}  // namespace rubato::cli
