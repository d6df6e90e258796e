#include "support/toy_cluster.hpp"

#include <fmt/format.h>
#include <stdexcept>

namespace rubato::test {

namespace {

std::string text(const Batch& batch) {
    if (batch.count == 0) return "no batch";
    return fmt::format("samples {}..{} of epoch {}", batch.first, batch.first + batch.count - 1, batch.epoch);
}

/// "2", or "2..4" where there are several.
std::string numbers(std::int64_t first, std::int32_t count) {
    return count == 1 ? fmt::format("{}", first) : fmt::format("{}..{}", first, first + count - 1);
}

/// "?" where it is not known.
std::string seconds(Time time) {
    return time < 0 ? "?" : fmt::format("{:g}", static_cast<double>(time) * 1e-9);
}

}  // namespace

ToyCluster::ToyCluster(const Scenario& scenario, std::int64_t samples)
    : roles_(make_roles(scenario, samples, scenario.topology == "sharded" ? 10 : 1)),
      lambda_(scenario.lambda()),
      sharded_(scenario.topology == "sharded") {
    for (RoleId role = 0; role < static_cast<RoleId>(roles_.size()); ++role) mail_.push_back({role, Start{allocate()}});
}

std::string ToyCluster::settle() {
    while (!mail_.empty()) {
        const Mail mail = mail_.front();
        mail_.pop_front();
        hand(mail);
    }
    return std::exchange(story_, "");
}

void ToyCluster::hand(const Mail& mail) {
    Actions actions;
    step(roles_[static_cast<std::size_t>(mail.to)], now_, mail.event, actions);
    for (const auto& row : actions.updates) {
        std::string who;
        for (const auto& gradient : actions.gradients)
            if (gradient.outcome == Outcome::applied)
                who += fmt::format(" {}.{}", gradient.worker, numbers(gradient.worker_seq, gradient.count));
        for (const auto& gradient : actions.shards)
            if (gradient.outcome == Outcome::applied && gradient.shard > 0)
                who += fmt::format(" {}.{}", gradient.worker, gradient.worker_seq);
        tell(fmt::format("{}update {}: gradients{}, mean staleness {}, rate {}",
                         sharded_ ? fmt::format("shard {} ", row.shard) : "", row.version, who, row.mean_staleness,
                         row.effective_learning_rate));
    }
    for (const auto& row : actions.shards)
        if (row.outcome != Outcome::applied)
            tell(fmt::format("at shard {} gradient {}.{} is {}", row.shard, row.worker, row.worker_seq,
                             name(row.outcome)));
    for (const auto& row : actions.gradients)
        if (row.outcome != Outcome::applied)
            tell(
                fmt::format("gradient {}.{} is {}", row.worker, numbers(row.worker_seq, row.count), name(row.outcome)));
    for (const auto& row : actions.controller)
        tell(fmt::format("controller: worker {} leads worker {} by {}, intervals {} and {}, grants {} of {}",
                         row.worker, row.slowest, row.gap, seconds(row.interval_ns), seconds(row.slowest_interval_ns),
                         row.granted, row.r_limit));
    for (const auto& row : actions.rounds)
        tell(fmt::format("round {} made version {}: {} steps of {} workers, {} samples", row.round, row.version,
                         row.steps, row.workers, row.samples));
    for (const auto& action : actions.list) act(mail.to, action, actions);
}

void ToyCluster::act(RoleId role, const Action& action, const Actions& actions) {
    const auto own = [&](Event event) { mail_.push_back({role, event}); };
    if (const auto* it = std::get_if<Send>(&action)) return send(role, *it);
    if (const auto* it = std::get_if<Compute>(&action)) {
        tell(fmt::format("worker {} computes on {}", role - 1, text(it->batch)));
        computing_[role] = *it;
    } else if (const auto* cancel = std::get_if<Cancel>(&action)) {
        if (computing_.erase(role) > 0) own(Cancelled{cancel->target, now_});
    } else if (const auto* fold = std::get_if<Fold>(&action)) {
        tell(fmt::format("{} adds a gradient, weight {}", name_of(role), fold->factor));
        own(Folded{fold->id, fold->accumulator == no_buffer ? allocate() : fold->accumulator});
    } else if (const auto* taken = std::get_if<LocalStep>(&action)) {
        std::string what;
        if (taken->sum != no_buffer) what = fmt::format("adds a gradient, weight {}", taken->weight);
        if (taken->steps())
            what += fmt::format("{}takes a step of rate {} from {}", what.empty() ? "" : ", ", taken->learning_rate,
                                taken->local == no_buffer ? "the server's weights" : "its own");
        tell(fmt::format("worker {} {}", role - 1, what.empty() ? "keeps a gradient" : what));
        own(Stepped{taken->id, taken->steps() && taken->local == no_buffer ? allocate() : taken->local, taken->sum});
    } else if (const auto* step = std::get_if<Update>(&action); step != nullptr && role > 0 && role <= lambda_) {
        tell(fmt::format("worker {} takes step {} with its optimizer, rate {}", role - 1, step->from,
                         actions.steps[static_cast<std::size_t>(step->first_step)].learning_rate));
        own(Applied{step->id, step->weights});
    } else if (const auto* mix = std::get_if<Mix>(&action)) {
        std::string factors;
        for (std::int32_t i = 0; i < mix->term_count; ++i) factors += fmt::format(" {:.4g}", mix->terms[i].factor);
        tell(fmt::format("{} {}, factors{}", name_of(role),
                         mix->work == Mix::Work::update ? "makes a version"
                         : mix->work == Mix::Work::sum  ? "adds a model"
                                                        : "mixes",
                         factors));
        own(Mixed{mix->id, mix->out == no_buffer ? allocate() : mix->out});
    } else if (const auto* update = std::get_if<Update>(&action)) {
        std::string weights;
        for (const auto& part : actions.parts) weights += fmt::format(" {:.4g}", part.factor);
        tell(fmt::format("{} updates version {}, weights{}", name_of(role), update->from, weights));
        own(Applied{update->id, update->weights});
    } else if (const auto* evaluate = std::get_if<Evaluate>(&action)) {
        tell(fmt::format("evaluate version {}", evaluate->version));
        Metrics metrics;
        metrics.valid_error = 1.0 / static_cast<double>(1 + evaluate->version);
        own(Evaluated{evaluate->id, metrics});
    } else if (const auto* place = std::get_if<Place>(&action)) {
        if (place->part.count > 0)
            tell(fmt::format("{} places elements {}..{}{}", name_of(role), place->part.first,
                             place->part.first + place->part.count - 1, place->whole == no_buffer ? " in a copy" : ""));
        own(Placed{place->id, place->whole == no_buffer ? allocate() : place->whole});
    } else if (const auto* released = std::get_if<Release>(&action)) {
        release(released->buffer);
    } else if (const auto* timer = std::get_if<SetTimer>(&action)) {
        timers_.emplace_back(role, timer->id);
    } else if (const auto* finish = std::get_if<Finish>(&action)) {
        ++finished_;
        if (role == 0) tell(fmt::format("the run has {}", name(finish->status)));
    }
}

void ToyCluster::send(RoleId role, const Send& send) {
    const auto way = [&](WorkerId worker) {
        const std::string hop = name_of(role) + " to " + name_of(send.to);
        return worker < 0 ? hop : fmt::format("{} for worker {}", hop, worker);
    };
    const auto whose = [&](WorkerId worker) {
        return worker < 0 ? name_of(role) : fmt::format("{}, of worker {},", name_of(role), worker);
    };
    const std::string whom = sharded_ ? name_of(send.to) + " " : "";
    if (const auto* it = std::get_if<Proceed>(&send.message))
        tell(fmt::format("{}: {} version {}, {}", way(it->worker), it->onward ? "go on from" : "proceed on",
                         it->version, text(it->batch)));
    if (const auto* it = std::get_if<Weights>(&send.message))
        tell(fmt::format("{}: weights of version {}, {}", way(it->worker), it->version, text(it->batch)));
    if (const auto* it = std::get_if<Ok>(&send.message)) tell(fmt::format("{}: ok", way(it->worker)));
    if (const auto* it = std::get_if<Halt>(&send.message))
        tell(fmt::format("{}: gradient {} is not wanted", way(it->worker), it->worker_seq));
    if (const auto* it = std::get_if<GaveUp>(&send.message))
        tell(fmt::format("{} gives gradient {} up and asks for anything newer than version {}",
                         whose(it->gradient.worker), it->gradient.worker_seq, it->have));
    if (const auto* it = std::get_if<Stop>(&send.message))
        tell(fmt::format("{}: stop{}", way(-1), it->version < 0 ? "" : fmt::format(" at version {}", it->version)));
    if (const auto* it = std::get_if<Idle>(&send.message))
        tell(fmt::format("{}: worker {} is idle after {} pushes", way(-1), it->worker, it->pushes));
    if (std::holds_alternative<Flush>(send.message)) tell(fmt::format("{}: pass all on", way(-1)));
    if (const auto* it = std::get_if<Round>(&send.message))
        tell(fmt::format("{}: {} of this round", way(-1), it->gradients));
    if (const auto* it = std::get_if<Model>(&send.message))
        tell(fmt::format("{}: {} of version {}, take {} steps", way(-1),
                         send.payload.buffer == no_buffer ? "the word" : "the model", it->version, it->steps));
    if (const auto* it = std::get_if<Share>(&send.message))
        tell(fmt::format("{}: {} of {} workers, weight {}", way(-1),
                         send.payload.buffer == no_buffer ? "no mean" : "the mean", it->workers, it->weight));
    if (const auto* it = std::get_if<Push>(&send.message))
        tell(fmt::format("{} pushes {}{} {}, computed on version {}", whose(it->worker), whom,
                         send.payload.buffer == no_buffer ? "the record of gradient" : "gradient",
                         numbers(it->worker_seq, it->count), it->read_version));
    if (const auto* it = std::get_if<Inquiry>(&send.message))
        tell(fmt::format("{} asks {}for anything newer than version {}", whose(it->worker), whom, it->have));
    Slice payload = send.payload;
    if (payload.buffer != no_buffer) payload.buffer = allocate();
    mail_.push_back({send.to, Delivered{role, send.channel, send.message, payload, now_, now_}});
    mail_.push_back({role, Taken{send.id, now_}});
}

void ToyCluster::compute(WorkerId worker, double loss) {
    const auto it = computing_.find(worker + 1);
    if (it == computing_.end()) throw std::runtime_error(fmt::format("worker {} computes nothing", worker));
    mail_.push_back({worker + 1, GradientReady{it->second.id, allocate(), now_, now_, loss}});
    computing_.erase(it);
}

void ToyCluster::crash(WorkerId worker, bool on_its_way) {
    const RoleId role = worker + 1;
    if (on_its_way) {
        compute(worker, 1);
        hand(mail_.front());  // what it sends is the rest of the mail, and gets nowhere
        for (const auto& mail : mail_)
            if (const auto* sent = std::get_if<Delivered>(&mail.event)) release(sent->payload.buffer);
        mail_.clear();
    }
    if (!down_.insert(role).second) throw std::runtime_error(fmt::format("worker {} is down already", worker));
    computing_.erase(role);
    tell(fmt::format("worker {} crashes", worker));
    hand({role, Crashed{}});
    mail_.push_back({0, PeerDown{role, gradients_begun(roles_[static_cast<std::size_t>(role)])}});
}

void ToyCluster::come_back(WorkerId worker) {
    if (down_.erase(worker + 1) == 0) throw std::runtime_error(fmt::format("worker {} is not down", worker));
    tell(fmt::format("worker {} is back", worker));
    hand({worker + 1, Restarted{}});
    mail_.push_back({0, PeerBack{worker + 1}});
}

void ToyCluster::fire_timer() {
    for (const auto& [role, id] : timers_) mail_.push_back({role, TimerFired{id}});
    timers_.clear();
}

void ToyCluster::release(BufferId buffer) {
    if (--references_.at(buffer) < 0) throw std::logic_error("a buffer was released twice");
}

std::int64_t ToyCluster::references() const {
    std::int64_t sum = 0;
    for (const auto& [buffer, count] : references_) sum += count;
    return sum;
}

}  // namespace rubato::test
