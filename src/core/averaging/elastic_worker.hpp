// A worker of elastic averaging, or of asynchronous local SGD: elastic_server.hpp says what it does.
#pragma once

#include "core/averaging/local_worker.hpp"

#include <string>

namespace rubato {

struct ElasticWorkerConfig {
    WorkerId worker = 0;
    std::int64_t parameters = 0;
    DealerConfig data;
    double alpha = 0;     ///< how far it moves towards the joint model, and that towards it
    bool deltas = false;  ///< async-diloco: it goes on from the joint model itself, and sends what its steps made of it
    bool operator==(const ElasticWorkerConfig&) const = default;
};

class ElasticWorker : public LocalWorker {
public:
    /// state: what it goes on from.
    explicit ElasticWorker(const ElasticWorkerConfig& config, const WorkerState& state = {});

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return phase_ == Phase::finished; }
    WorkerRow books(Time now) const;
    bool operator==(const ElasticWorker&) const = default;

private:
    /// For a word, or the joint model; its steps; until its last difference is taken; until that one is there, and its
    /// own move is done. With deltas: its own copy of the joint model; until the delta is there; until it is taken.
    enum class Phase : std::uint8_t {
        waiting,
        computing,
        stepping,
        held_up,
        parting,
        moving,
        adopting,
        subtracting,
        sending,
        down,
        finished
    };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const GradientReady& event, Actions& actions);
    void on(Time now, const Cancelled& event, Actions& actions);
    void on(Time now, const Applied& event, Actions& actions);
    void on(Time now, const Mixed& event, Actions& actions);
    void on(Time now, const Abandoned& event, Actions& actions);
    void on(Time now, const Crashed& event, Actions& actions);
    void on(Time now, const Restarted& event, Actions& actions);
    /// Events that it is not told of.
    template <class Other>
    void on(Time now, const Other& event, Actions& actions);

    void on_model(Time now, const Delivered& event, const Model& model, Actions& actions);
    /// Of the joint model it makes a copy of its own; that which it has been sent is held until the delta is there.
    void adopt(BufferId joint, Time now, Actions& actions);
    void subtract(Actions& actions);
    Mix& mix(Phase phase, Actions& actions);
    void go_on_with_steps(Time now, Actions& actions);
    /// Asks for the joint model, once the last difference is taken.
    void ask(Time now, Actions& actions);
    void send_share(Time now, BufferId difference, double weight, Actions& actions);
    /// The run ends: it waits for what is under way.
    void pause(Time now, Actions& actions);
    void try_leave(Actions& actions);
    void book(Time now) { LocalWorker::book(now, account(books_)); }
    Time& account(WorkerRow& books) const;

    ElasticWorkerConfig config_;
    Phase phase_ = Phase::waiting;
    BufferId joint_ = no_buffer;       ///< until the difference is there, which may be made in its place
    BufferId difference_ = no_buffer;  ///< until it is taken and the move is done
    Model model_;                      ///< what it was told with the last one
    ActionId mixing_ = 0, share_ = 0;
    bool moved_ = true;  ///< by the difference
    std::int64_t models_ = 0, models_expected_ = -1;
    Time asked_ns_ = 0;
};

}  // namespace rubato
