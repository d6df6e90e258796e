// A relay of a tree of servers (Gupta et al. 2015, section 3.2, Rudra-adv): it stands between the root and the workers
// and has no say. Gradients go up, summed where the policy lets sums be made; weights go down, once to each child, and
// so do the words that let workers go on, each to its worker.
//
// Only the root applies updates. What a relay holds are copies of versions that the root made, so no model is ever a
// mixture of two.
#pragma once

#include "core/action.hpp"
#include "core/dealer.hpp"
#include "core/feed.hpp"
#include "core/policies/decision.hpp"
#include "core/tree.hpp"

#include <string>
#include <vector>

namespace rubato {

struct RelayConfig {
    Tree::Relay place;
    int lambda = 1;
    std::int64_t parameters = 0;  ///< elements of the weights
    int batch_size = 1;
    /// Gradients that it adds up before it passes their sum on; 1: each as it comes.
    int gradients = 1;
    /// Instead: those of a round, of which each worker below has one, added in the order of the workers.
    bool rounds = false;
    /// Inquiries of a worker are not passed on before its gradients are: the policy looks at both.
    bool in_order = false;
    bool broadcast = false;  ///< it is given each new version unasked, and gives it to the relays below
    bool answers = false;    ///< a leaf: see leaves_answer()
    DealerConfig data;       ///< then: of the batches that its workers would draw
    bool operator==(const RelayConfig&) const = default;
};

/// What a policy with these traits wants of a relay with so many workers below it.
void arrange(RelayConfig& config, const PolicyTraits& traits);

/// Whether leaves answer their workers by themselves, with the weights that are here and batches of the workers' own:
/// where they are given each new version, the policy has no say, and workers do not share an epoch.
bool leaves_answer(const Scenario& scenario, const PolicyTraits& traits);

class Relay {
public:
    explicit Relay(const RelayConfig& config);

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return finished_; }
    const RelayConfig& config() const { return config_; }
    /// Records of gradients that are here: taken in, and not yet taken by the parent.
    std::int64_t buffered() const;
    bool operator==(const Relay&) const = default;

private:
    struct Child : Receiver {
        WorkerId end = 0;           ///< of the workers there
        std::vector<Push> records;  ///< of a sum whose payload is to come
        std::int64_t dealt = 0;     ///< batches, where a leaf answers by itself
        bool operator==(const Child&) const = default;
    };
    /// A gradient or a sum, and whose it is.
    struct Gradient {
        std::vector<Push> records;
        BufferId buffer = no_buffer;
        bool operator==(const Gradient&) const = default;
    };
    /// A record in a message that is not yet taken. outcome: what became of it, if nobody takes it.
    struct OnWay {
        ActionId id = 0;
        Push record;
        Outcome outcome = Outcome::leftover;
        bool operator==(const OnWay&) const = default;
    };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const Folded& event, Actions& actions);
    void on(Time now, const Abandoned& event, Actions& actions);
    template <class Other>
    void on(Time now, const Other& event, Actions& actions);

    // Up: relay.cpp
    void take(const Delivered& event, const Push& push, Actions& actions);
    /// Does what can be done with the gradients that are here.
    void relay(Actions& actions);
    /// Gradients that make what is passed on.
    std::size_t due() const;
    void fold(Gradient gradient, Actions& actions);
    void send_up(Actions& actions);
    /// A record without payload, which nobody waits for any more.
    void leave_over(const Push& record, Actions& actions);
    void inquire(WorkerId worker, const Message& message, Actions& actions);
    bool has_gradient_of(WorkerId worker) const;
    void forget_on_way(ActionId id);
    void pass_up(const Message& message, Actions& actions);

    // Down: relay_words.cpp
    void on_word(const Proceed& word, Actions& actions);
    void give(const Proceed& word, Actions& actions);
    void on_weights(const Delivered& event, const Weights& weights, Actions& actions);
    template <class M>
    void pass_down(WorkerId worker, M message, Actions& actions);
    void feed_below(Actions& actions);
    /// As a leaf that answers by itself.
    void answer(WorkerId worker, Actions& actions);
    void try_stop(Actions& actions);
    void try_leave(Actions& actions);
    Child& child_of(WorkerId worker);
    bool leaf(const Child& child) const { return child.role <= config_.lambda; }
    ActionId next_id() { return ++last_id_; }

    RelayConfig config_;
    std::vector<Child> children_;
    ActionId last_id_ = 0;
    std::int64_t sends_under_way_ = 0;

    BufferId weights_ = no_buffer;
    Version version_ = 0;
    std::vector<Proceed> words_;  ///< that wait for their version
    std::int64_t replies_ = 0;    ///< received

    std::vector<Gradient> inbox_;  ///< [inbox_head_, end) waits
    std::size_t inbox_head_ = 0;
    Gradient sum_;                 ///< that is being made
    BufferId folded_ = no_buffer;  ///< on its way into it
    ActionId fold_ = 0;            ///< 0: none is under way
    int expected_ = 0;             ///< gradients of this round
    ActionId push_ = 0;            ///< the payload that is on its way up; 0: none is
    BufferId pushed_ = no_buffer;
    std::vector<Push> later_;    ///< records that are left over, and do not overtake that payload
    std::vector<OnWay> on_way_;  ///< [on_way_head_, end) are
    std::size_t on_way_head_ = 0;
    std::vector<Message> inquiries_;  ///< and words that gradients were given up, behind gradients of their workers
    bool flushing_ = false;

    std::int64_t records_ = 0;           ///< received,
    std::int64_t records_expected_ = 0;  ///< and said by those who said Bye
    int byes_ = 0;
    std::int64_t replies_expected_ = -1;  ///< said by Stop
    bool stopping_ = false;               ///< Stop was passed on
    bool finished_ = false;
};

}  // namespace rubato
