// The scenario as a typed value: what src/cli makes of the JSON after checking it and filling in the defaults.
//
// Field names are those of the JSON. Times are seconds and sizes bytes unless the name says otherwise.
#pragma once

#include "core/averaging/ramp.hpp"
#include "core/cluster_spec.hpp"
#include "core/collective_spec.hpp"
#include "core/protocol_family.hpp"
#include "core/staleness_rule.hpp"
#include "core/types.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rubato {

/// How batches are drawn; the guarantees of each mode are in docs/protocols.md.
enum class Sampling : std::uint8_t { shared_epoch, strided, random, sharded };

struct DataSpec {
    std::string dataset = "synthetic";  ///< synthetic | fashion-mnist | idx | cifar-10
    std::string path;                   ///< folder of the dataset's files, resolved; empty: the package's folder
    std::int64_t samples = 0;           ///< training samples of a synthetic or cut set, or of a timing-only run
    std::int64_t test_samples = 0;      ///< synthetic sets
    std::vector<int> shape;             ///< synthetic sets: {height, width, channels}
    int classes = 10;                   ///< synthetic sets
    double validation = 0;              ///< fraction of the training samples kept for validation
    Sampling sampling = Sampling::shared_epoch;
    bool subtract_mean = true;  ///< the training mean of each pixel
};

struct ModelSpec {
    std::string name;       ///< constant | tagged | quadratic | softmax | mlp | cnn; empty: none
    bool gradients = true;  ///< "gradients": "real" | "none"
    std::vector<int> hidden;
    std::int64_t dimension = 1;  ///< analytic models
    double conditioning = 1;     ///< quadratic: largest over smallest curvature
    double noise = 0;            ///< quadratic: standard deviation of the gradient noise of one sample
    double value = 1;            ///< constant: every element of every gradient
};

/// Workers with one device class.
struct WorkerGroup {
    int count = 1;
    std::string device = "default";
    int per_host = 0;  ///< 0: spread evenly over `hosts`, or one a host
    int devices = 1;   ///< of one worker, which share its batches
    double sum_s = 0;  ///< to sum up what they computed
    /// Samples of the device that has the most of a batch.
    int part(int batch) const { return (batch + devices - 1) / devices; }
    bool operator==(const WorkerGroup&) const = default;
};

/// How often workers and server exchange something (communication interval). A worker pushes the sum of push_every
/// gradients, and only every pull_every-th such exchange brings it weights; between, it takes steps of its own.
struct CommunicationSpec {
    int push_every = 1, pull_every = 1;
    std::optional<double> local_learning_rate;  ///< of those steps, before the schedule; none: optimizer.learning_rate
    /// Whether there is anything but a push and a pull for every gradient.
    bool any() const { return push_every > 1 || pull_every > 1; }
    bool operator==(const CommunicationSpec&) const = default;
};

/// How a worker overlaps communication and computation (docs/protocols.md, pipelines).
enum class Pipeline : std::uint8_t { blocking, overlap };
/// How an overlapping worker comes by weights: asks ahead and waits for one answer a gradient, or takes the newest that
/// have come and never waits.
enum class Pull : std::uint8_t { prefetch, latest };

struct WorkersSpec {
    std::vector<WorkerGroup> groups;
    int batch_size = 32;  ///< of one worker (the papers' mu)
    Pipeline pipeline = Pipeline::blocking;
    Pull pull = Pull::prefetch;        ///< overlap
    int hosts = 0;                     ///< workers spread evenly over so many hosts; 0: per_host decides
    std::vector<double> slow = {};     ///< by worker: factors on its compute times; empty: none
    std::vector<double> seconds = {};  ///< by worker: of its gradients, instead of the device's; empty: none
    CommunicationSpec communication = {};
    bool overlaps() const { return pipeline == Pipeline::overlap; }
    /// Whether workers draw their own batches, and nobody deals them any.
    bool draw_themselves() const { return overlaps() && pull == Pull::latest; }
    /// Samples that a worker is dealt at once, for the gradients of one push.
    int slice_size() const { return batch_size * communication.push_every; }
    int count() const {
        int total = 0;
        for (const auto& group : groups) total += group.count;
        return total;
    }
};

/// dssp (Zhao et al. 2019). What their text leaves open is a switch each: docs/protocols.md, D1 to D9.
struct DsspSpec {
    std::int64_t lower_bound = 3, r_max = 12;
    enum class Mode : std::uint8_t { literal_next, literal_full, strict } mode = Mode::strict;  ///< D7
    bool table_on_every_push = true;                                                            ///< D1
    enum class Slowest : std::uint8_t { count, oldest, interval } slowest = Slowest::count;     ///< D2
    bool ties_are_fastest = true;                                                               ///< D2
    bool smallest_of_ties = true;                                                               ///< D3
    bool intervals_with_waits = true;                                                           ///< D4
    bool exact_grants = true;           ///< D5: r* more iterations; otherwise r* + 1
    bool intervals_from_start = false;  ///< D6: a first push has an interval, from the start of the run
    bool keep_grants = true;            ///< D8: what is left of a grant holds for workers that are no longer fastest
    bool look_at_every_push = true;  ///< D9: whoever waits is looked at again; otherwise at pushes of the slowest only
    bool operator==(const DsspSpec&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("lower_bound", self.lower_bound);
        field("r_max", self.r_max);
        field("mode", self.mode);
        field("table_on_every_push", self.table_on_every_push);
        field("slowest", self.slowest);
        field("ties_are_fastest", self.ties_are_fastest);
        field("smallest_of_ties", self.smallest_of_ties);
        field("intervals_with_waits", self.intervals_with_waits);
        field("exact_grants", self.exact_grants);
        field("intervals_from_start", self.intervals_from_start);
        field("keep_grants", self.keep_grants);
        field("look_at_every_push", self.look_at_every_push);
    }
};

/// How gradients are kept from getting too stale.
enum class Admit : std::uint8_t { pace, discard, withhold };

/// mpca: averaging in phases, over shards of the model (Langer et al. 2018, equations 4 to 9).
struct PhasesSpec {
    int phases = 3;                    ///< 1, 2 or 3
    int shards = 3;                    ///< at least as many
    bool by_layers = true;             ///< whole layers; otherwise equal parts
    std::vector<double> sizes;         ///< of the shards, in proportion; empty: as by_layers says
    bool by_steps = true;              ///< a worker counts in the mean as often as it took steps; otherwise once
    bool pull_gradients = false;       ///< the pull is a part of the gradient (equation 6), not a move (equation 7)
    Ramp alpha;                        ///< of the pull; counts steps of the worker
    Ramp beta = Ramp::constant(1);     ///< what the mean counts in the joint model; counts means of the shard, as do
    Ramp gamma;                        ///< how far the joint model is told ahead of itself, and
    Ramp delta = Ramp::constant(0.8);  ///< how long its motion lasts
    bool operator==(const PhasesSpec&) const = default;
};

/// How a joint model gets from the driver to all workers: core/averaging/broadcast.hpp.
struct SpreadSpec {
    bool swarm = false;  ///< in chunks that workers pass on to each other; otherwise whole, from node to node
    int chunks = 0;
    /// One element is no swarm.
    bool swarms(std::int64_t count) const { return swarm && count > 1; }
    bool operator==(const SpreadSpec&) const = default;
};

/// async-diloco: how the server takes in what workers push, one at a time.
struct DelayedSpec {
    int pushes = 0;      ///< between two steps of the momentum; 0: lambda
    bool whole = false;  ///< a push counts the whole outer learning rate, instead of its part of it
    bool dylu = false;   ///< slow workers take fewer steps
    bool operator==(const DelayedSpec&) const = default;
};

/// streaming-diloco: fragments of the model are exchanged in turn, tau / fragments steps apart. They are cut as the
/// shards of PhasesSpec.
struct StreamSpec {
    int fragments = 1;
    int overlap = 0;  ///< steps between handing on a fragment and merging what came of it
    double keep = 0;  ///< what a worker's own fragment counts beside the joint one
    bool operator==(const StreamSpec&) const = default;
};

/// Protocols that average models instead of gradients, where workers take steps of their own.
struct AveragingSpec {
    int tau = 1;                     ///< steps of a worker between exchanges; mpca has no such number
    bool gradients = false;          ///< sparknet: the gradient of one step is exchanged instead
    double outer_learning_rate = 1;  ///< local-sgd, diloco, async-diloco
    double outer_momentum = 0;
    double alpha = 0;  ///< easgd; 0: 0.9 / lambda
    SpreadSpec spread;
    PhasesSpec phases;
    DelayedSpec delayed = {};
    StreamSpec stream = {};
    bool operator==(const AveragingSpec&) const = default;
};

/// A policy of one's own for lambda workers: core/plugin.hpp.
class ForeignPolicy;
using PolicyMaker = std::function<std::unique_ptr<ForeignPolicy>(int lambda)>;

/// The canonical name, and the keys of all protocols; each looks at its own.
struct ProtocolSpec {
    std::string name;
    int n = 1;                          ///< n-softsync
    int gradients_per_update = 0;       ///< n-softsync; 0: floor(lambda / n). rennala: 0: lambda. admission: 0: 1
    bool per_gradient = false;          ///< bsp
    std::optional<std::int64_t> bound;  ///< ssp: none: no bound. admission
    DsspSpec dssp;
    std::int64_t k = 1;                ///< bounded-delay
    bool single_dependency = false;    ///< bounded-delay
    int backups = 0;                   ///< backup-workers
    std::int64_t delay_threshold = 1;  ///< ringmaster
    bool cancel = false;               ///< ringmaster
    Admit admit = Admit::pace;         ///< admission
    AveragingSpec averaging;           ///< protocols that average models
    CollectiveSpec collective;         ///< protocols without a server
    PolicyMaker plugin;                ///< plugin; empty until its file is loaded
    double warm_epochs = 0;            ///< of hardsync, with which the run begins
    Family family() const { return family_of(name); }
    /// Whether workers reduce gradients among themselves, or none at all, without a server.
    bool reduces() const { return family() == Family::replicas; }
    bool by_layers() const { return reduces() && collective.mode == CollectiveMode::layer_wise; }
    /// Whether models are averaged, by roles of its own, instead of a policy's server being pushed gradients.
    bool averages() const { return rubato::averages(family()); }
    /// Workers hand their models to each other.
    bool gossips() const { return family() == Family::gossip; }
    /// One worker at a time.
    bool averages_alone() const { return family() == Family::alone; }
    /// Parts of models, beside the steps of workers.
    bool averages_in_parts() const { return averages_in_phases() || streams(); }
    bool averages_in_phases() const { return family() == Family::phases; }
    bool streams() const { return family() == Family::fragments; }
    /// Whether sums of what workers have go on beside their steps.
    bool sums_beside() const { return averages_in_parts() || gossips() || reduces(); }
    /// In rounds of all workers.
    bool averages_in_rounds() const { return family() == Family::rounds || streams(); }
};

/// Topologies "tree" and "tree-downcast": who stands between the root and the workers.
struct TreeSpec {
    int fan_out = 8;              ///< children of a node at most
    int weights_fan_out = 2;      ///< "tree-downcast": of a node of the tree that weights go down, on other hosts
    bool broadcast = false;       ///< "tree": relays are given each new version of the weights unasked
    bool leaves_by_host = false;  ///< workers of a host share a leaf, which is there, too
    bool operator==(const TreeSpec&) const = default;
};

/// topology "sharded": servers that each own a part of the parameters.
struct ShardsSpec {
    int count = 1;
    bool by_layers = true;        ///< whole layers; otherwise equal parts
    bool beside_workers = false;  ///< on the first hosts of workers; otherwise each on one of its own
    bool operator==(const ShardsSpec&) const = default;
};

struct OptimizerSpec {
    std::string name = "sgd";  ///< sgd | momentum | nesterov | adagrad | adam
    double momentum = 0;
    /// Momentum less what staleness adds by itself: decoupled_momentum() of learning_rate.hpp.
    bool decoupled_momentum = false;
    double beta1 = 0.9, beta2 = 0.999;  ///< adam
    double epsilon = 1e-8;              ///< adagrad, adam
    double learning_rate = 0.01;
    double weight_decay = 0;
    bool decoupled_weight_decay = false;  ///< beside the optimizer's step, not in its direction
    StalenessRule staleness_rule;
    /// From `epoch` on, the rate is multiplied by `factor` (each entry on top of those before it).
    struct Drop {
        double epoch = 0;
        double factor = 1;
        bool operator==(const Drop&) const = default;
    };
    std::vector<Drop> schedule;
    /// From the end of the warm-up to `epochs` half a cosine, from the whole rate to final_factor times it.
    struct Cosine {
        double epochs = 1;
        double final_factor = 0;
        bool operator==(const Cosine&) const = default;
    };
    std::optional<Cosine> cosine;
    /// Up to `epochs` the rate rises from `from` times itself, linearly. epochs 0: none.
    struct WarmUp {
        double epochs = 0;
        double from = 0.1;
        bool operator==(const WarmUp&) const = default;
    };
    WarmUp warm_up;
    bool operator==(const OptimizerSpec&) const = default;
};

struct Target {
    std::string metric = "valid_error";  ///< valid_error | valid_loss | test_error | test_loss | train_loss | ...
    double at_most = 0;
    bool operator==(const Target&) const = default;
};

/// The first that is reached ends the run.
struct StopSpec {
    std::optional<double> epochs;
    std::optional<std::int64_t> updates;
    std::optional<std::int64_t> gradients;  ///< accepted by the server
    std::optional<double> seconds;
    std::optional<Target> target;
    bool on_divergence = true;  ///< "diverged": "stop" | "continue"
};

struct EvaluateSpec {
    /// When real runs evaluate: after the last gradient; at once, beside the workers; or while nothing is in flight,
    /// for which the server holds the workers (in every backend).
    enum class Mode : std::uint8_t { deferred, rank, pause };
    Mode mode = Mode::deferred;
    std::optional<double> every_epochs;
    bool at_end = true;
};

/// Real runs that take the time and the messages of the simulated machine.
struct EmulateSpec {
    bool compute = false;   ///< gradients take at least what cluster.devices and noise say; the server what it costs
    bool messages = false;  ///< payloads are as long as `cost` says
    bool network = false;   ///< messages take at least what they would alone on their way over cluster.network
    std::map<WorkerId, double> slow;  ///< factors on the compute time of chosen workers
    bool any() const { return compute || messages || network || !slow.empty(); }
};

/// Where the order of the updates comes from, if not from a cluster.
struct ScheduleSpec {
    std::string trace;  ///< file of delays, resolved; empty: none
};

/// When the state of the run is saved: after so many epochs, updates or seconds of the run's clock. At most one is set.
struct CheckpointSpec {
    std::optional<double> every_epochs;
    std::optional<std::int64_t> every_updates;
    std::optional<double> every_s;
    bool any() const { return every_epochs || every_updates || every_s; }
    bool operator==(const CheckpointSpec&) const = default;
};

struct TraceSpec {
    bool gradients = true;
    int every = 1;  ///< gradients.csv keeps one row in `every`
    bool updates = true;
    bool timeline = false;
    bool events = false;
    bool layers = false;  ///< layers.csv: every bucket of layers of protocols without a server
};

/// Seconds of a layer over a batch of samples; backward: gradients of its input and of its weights.
struct LayerTime {
    double forward_s = 0, backward_s = 0;
    bool operator==(const LayerTime&) const = default;
};

struct Seeds {
    std::uint64_t init = 1, data = 1, timing = 1;
};

struct Scenario {
    std::string name;
    std::uint64_t seed = 1;
    Seeds seeds;
    DataSpec data;
    ModelSpec model;
    CostSpec cost;
    WorkersSpec workers;
    ProtocolSpec protocol;
    std::string topology = "star";
    TreeSpec tree = {};
    ShardsSpec shards = {};
    /// Sizes of the layers of what is exchanged, from input to output, in any unit; empty: not known.
    std::vector<std::int64_t> layers = {};
    /// Of each of `layers`, for layer_batch_size samples; empty: not known.
    std::vector<LayerTime> layer_times = {};
    int layer_batch_size = 0;  ///< 0: there are no layer_times
    OptimizerSpec optimizer;
    StopSpec stop;
    EvaluateSpec evaluate;
    ClusterSpec cluster;
    ScheduleSpec schedule;
    std::vector<FaultSpec> faults = {};
    TraceSpec trace;
    CheckpointSpec checkpoint;
    int threads_per_worker = 1;
    int workers_per_rank = 1;  ///< backend mpi
    EmulateSpec emulate;
    double stall_timeout_s = 60;  ///< real runs: so long without any event is a stall
    int pool_threads = 0;         ///< threads for real gradients in simulation; 0: the machine's cores

    int lambda() const { return workers.count(); }
    bool has_relays() const { return topology == "tree" || topology == "tree-downcast"; }
    /// Whether every message is from or to the one server: a star whose workers do not talk with each other.
    bool all_pass_server() const {
        return topology == "star" && !protocol.averages_in_rounds() && !protocol.sums_beside();
    }
};

/// Gradients of one update under n-softsync: floor(lambda / n), at least 1 (Gupta et al. 2015, section 3.1).
inline int gradients_per_update(const ProtocolSpec& protocol, int lambda) {
    if (protocol.gradients_per_update > 0) return protocol.gradients_per_update;
    return lambda / protocol.n > 0 ? lambda / protocol.n : 1;
}

}  // namespace rubato
