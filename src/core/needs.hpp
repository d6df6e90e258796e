// What the roles of a scenario need of whoever drives them, so that drivers know no protocol by its name.
#pragma once

#include "core/scenario.hpp"

namespace rubato {

struct Needs {
    int gradient_slots = 1;  ///< inbox slots of a channel for gradients
    int library_sums = 0;    ///< how many SumAll may be under way at once; 0: there are none
    bool layers = false;     ///< LayerReady is told while a gradient is computed
    bool parts = false;      ///< payloads of a channel differ in size
    /// Workers' weights are all that there is: what their updates take is theirs, the optimizer of worker 0 is saved,
    /// and role 0 has nothing but what that hands over to be evaluated, beside which it stands.
    bool replicas = false;
    bool exchanges = false;         ///< who sends a payload has the costs of cluster.exchange
    bool gradients_arrive = false;  ///< at role 0: a sign that a run gets on. Otherwise updates are
    /// What a worker has pushed can be told from the receipt: a gradient of one model, which the server sent, to which
    /// nothing was added.
    bool receipts_tell = false;
};

Needs needs_of(const Scenario& scenario);

}  // namespace rubato
