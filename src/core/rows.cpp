#include "core/rows.hpp"

namespace rubato {

GradientRow unapplied_row(WorkerId worker, const Push& push, Outcome outcome) {
    GradientRow row;
    row.seq = -1;
    row.worker = worker;
    row.worker_seq = push.worker_seq;
    row.read_version = push.read_version;
    row.samples = push.batch.count;
    row.pull_ns = push.pull_ns;
    row.begin_ns = push.begin_ns;
    row.end_ns = push.end_ns;
    row.push_ns = push.push_ns;
    row.outcome = outcome;
    row.loss = push.loss;
    row.batch = push.batch;
    row.count = push.count;
    return row;
}

ShardRow shard_row(int shard, const GradientRow& row) {
    return {shard, row.worker, row.worker_seq, row.read_version, row.apply_version, row.applied_ns, row.outcome};
}

}  // namespace rubato
