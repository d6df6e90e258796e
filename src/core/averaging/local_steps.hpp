// The steps that a worker takes by itself between exchanges, as a part of its role: batches that it draws, gradients,
// an optimizer whose state lasts, and a record of each step for whoever owns the joint model.
#pragma once

#include "core/action.hpp"
#include "core/dealer.hpp"
#include "core/let_go.hpp"

#include <utility>
#include <vector>

namespace rubato {

class LocalSteps {
public:
    /// begun: the number of its first gradient.
    LocalSteps(WorkerId worker, const DealerConfig& data, std::int64_t begun)
        : worker_(worker), data_(data), begun_(begun) {}

    /// From now on `steps` steps count, whose weights come from the joint model at `version`, asked for at asked_ns.
    void begin(Version version, std::int32_t steps, double rate, Time asked_ns) {
        version_ = version;
        steps_ = steps;
        rate_ = rate;
        asked_ns_ = asked_ns;
        done_ = 0;
        samples_ = 0;
    }
    /// Begins the next gradient; false: all steps are taken, or there is no part of the data.
    bool compute(Time now, BufferId weights, ActionId id, Actions& actions) {
        const Batch batch = own_batch(data_, worker_, begun_);
        if (done_ == steps_ || batch.count == 0) return false;
        record_ = Push{};
        record_.read_version = version_;
        record_.worker_seq = begun_++;
        record_.batch = batch;
        record_.pull_ns = asked_ns_;
        record_.begin_ns = now;
        actions.add<Compute>(compute_ = id, weights, batch, record_.worker_seq);
        return true;
    }
    void cancel(Actions& actions) const { actions.add<Cancel>(compute_); }
    void note(const GradientReady& event) {
        record_.begin_ns = event.begin_ns;
        record_.end_ns = event.end_ns;
        record_.loss = event.loss;
    }
    void note(const Cancelled& event) { record_.begin_ns = event.begin_ns; }
    /// The gradient is computed: tells the owner of the joint model.
    void tell(Time now, ActionId id, Actions& actions) {
        record_.push_ns = now;
        samples_ += record_.batch.count;
        ++pushes_;
        told_.push_back({id, record_});
        actions.add<Send>(id, 0, Channel::control, Message(record_), Slice{});
    }
    /// A step of the worker's optimizer with it. Takes over both references; on() gives back that to the weights.
    void step(BufferId weights, BufferId gradient, ActionId id, Actions& actions) {
        gradient_ = gradient;
        const auto part = static_cast<std::int32_t>(actions.parts.size());
        const auto step = static_cast<std::int32_t>(actions.steps.size());
        actions.parts.push_back({gradient, 1, version_, 0, worker_});
        actions.steps.push_back({part, 1, rate_, -1});
        actions.add<Update>(id, weights, taken_++, step, 1);
    }
    BufferId on(const Applied& event, Actions& actions) {
        actions.add<Release>(std::exchange(gradient_, no_buffer));
        ++done_;
        return event.weights;
    }
    void on(const Taken& event) {
        std::erase_if(told_, [&](const Told& it) { return it.id == event.id; });
    }
    /// The worker's last word to the owner of the joint model; cancelled: the last gradient was.
    void say_bye(ActionId id, bool cancelled, Actions& actions) const {
        actions.send<Bye>(id, 0, Channel::control, {}, pushes_, cancelled, cancelled ? record_ : Push{});
    }
    /// States what may never have been told of, at the end of a run that breaks off; begun: also the last gradient.
    void leave_over(bool begun, Actions& actions) const {
        for (const Told& it : told_) actions.gradients.push_back(unapplied_row(worker_, it.record, Outcome::leftover));
        if (!begun) return;
        GradientRow row = unapplied_row(worker_, record_, Outcome::cancelled);
        row.end_ns = row.push_ns = -1;
        actions.gradients.push_back(row);
    }

    /// States what is lost with the worker; begun: also the last gradient.
    void crash(bool begun, Actions& actions) {
        for (const Told& it : told_) actions.gradients.push_back(unapplied_row(worker_, it.record, Outcome::cancelled));
        pushes_ -= static_cast<std::int64_t>(told_.size());
        told_.clear();
        if (begun) leave_over(true, actions);
        let_go(gradient_, actions);
    }

    const Push& record() const { return record_; }  ///< of the last gradient
    Version version() const { return version_; }
    std::int64_t begun() const { return begun_; }
    std::int32_t done() const { return done_; }
    std::int32_t steps() const { return steps_; }
    std::int64_t samples() const { return samples_; }
    bool operator==(const LocalSteps&) const = default;

private:
    struct Told {
        ActionId id = 0;
        Push record;
        bool operator==(const Told&) const = default;
    };

    WorkerId worker_;
    DealerConfig data_;
    Version version_ = -1;
    std::int32_t steps_ = 0, done_ = 0;
    double rate_ = 0;
    Time asked_ns_ = 0;
    std::int64_t samples_ = 0;
    std::int64_t begun_ = 0, pushes_ = 0, taken_ = 0;  ///< of the run
    ActionId compute_ = 0;
    BufferId gradient_ = no_buffer;  ///< of the step under way
    Push record_;
    std::vector<Told> told_;  ///< under way
};

}  // namespace rubato
