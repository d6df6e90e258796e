// The columns of the CSV tables, and rows as their lines. Empty cells stand for what is not known or never happened.
#pragma once

#include "core/rows.hpp"
#include "trace/recorder.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace rubato::trace {

inline constexpr std::string_view gradients_header =
    "seq,worker,worker_seq,read_version,apply_version,staleness,samples,pull_ns,begin_ns,end_ns,push_ns,applied_ns,"
    "outcome,scale,loss,data_epoch,data_first";
/// Where a row may stand for several gradients.
inline constexpr std::string_view summed_gradients_header =
    "seq,worker,worker_seq,read_version,apply_version,staleness,samples,pull_ns,begin_ns,end_ns,push_ns,applied_ns,"
    "outcome,scale,loss,data_epoch,data_first,count";
inline constexpr std::string_view updates_header =
    "time_ns,version,shard,contributors,mean_staleness,samples,epoch,learning_rate,effective_learning_rate";
inline constexpr std::string_view evals_header =
    "time_ns,version,epoch,samples,train_loss,valid_loss,valid_error,test_loss,test_error,gradient_norm,suboptimality";
inline constexpr std::string_view controller_header =
    "time_ns,worker,pushes,slowest,slowest_pushes,gap,last_push_ns,interval_ns,slowest_last_push_ns,"
    "slowest_interval_ns,r_limit,granted,predicted_ns,slowest_predicted_ns";
inline constexpr std::string_view shards_header =
    "shard,worker,worker_seq,read_version,apply_version,staleness,applied_ns,outcome";
inline constexpr std::string_view rounds_header =
    "round,version,worker,shard,workers,steps,samples,broadcast_begin_ns,broadcast_end_ns,compute_begin_ns,compute_end_"
    "ns,"
    "reduce_begin_ns,reduce_end_ns,prepare_begin_ns,prepare_end_ns";
inline constexpr std::string_view iterations_header =
    "worker,iteration,delay,in_flight,version,begin_ns,computed_ns,waited_ns,end_ns";
inline constexpr std::string_view layers_header =
    "worker,iteration,bucket,gradient_begin_ns,gradient_end_ns,reduce_begin_ns,reduce_end_ns,apply_begin_ns,"
    "apply_end_ns";
inline constexpr std::string_view exchanges_header = "cycle,shard,worker,steps,pulls,asked_ns,begin_ns,end_ns";
inline constexpr std::string_view timeline_header = "role,kind,begin_ns,end_ns,peer,bytes";
inline constexpr std::string_view faults_header = "time_ns,event,role,host,link,bandwidth_factor,latency_factor";
inline constexpr std::string_view workers_header =
    "worker,device,host,gradients,applied,dropped,cancelled,leftover,staleness_mean,staleness_p99,compute_s,"
    "push_queued_s,push_moving_s,pull_request_s,pull_moving_s,policy_wait_s,apply_wait_s,evaluate_s,idle_s,inquiries,"
    "pulls";
inline constexpr std::string_view servers_header =
    "role,host,pushes,updates,replies,push_s,update_s,pull_s,evaluate_s,idle_s,bytes_in,bytes_out,receiving_s,sending_"
    "s";

/// Write one line with its newline at `at` and return the end. The caller leaves LineFile::line_chars_max characters.
char* put_row(char* at, const GradientRow& row);
/// With the last column of summed_gradients_header.
char* put_summed_row(char* at, const GradientRow& row);
char* put_row(char* at, const UpdateRow& row);
char* put_row(char* at, const EvalRow& row);
char* put_row(char* at, const ControllerRow& row);
char* put_row(char* at, const ShardRow& row);
char* put_row(char* at, const RoundRow& row);
char* put_row(char* at, const ExchangeRow& row);
char* put_row(char* at, const IterationRow& row);
char* put_row(char* at, const BucketRow& row);
char* put_row(char* at, const Span& span);

/// What became of the gradients of one worker, or of all.
struct Outcomes {
    std::int64_t applied = 0, dropped = 0, cancelled = 0, leftover = 0;
    std::int64_t started() const { return applied + dropped + cancelled + leftover; }
    std::int64_t& of(Outcome outcome);
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("applied", self.applied);
        field("dropped", self.dropped);
        field("cancelled", self.cancelled);
        field("leftover", self.leftover);
    }
};

/// One line of workers.csv without its newline; `times` is empty where the worker never came to its end. Idling
/// beyond `run_ns`, the time of the last applied update, is cut off.
std::string worker_line(WorkerId worker, const Place& place, const Outcomes& outcomes,
                        std::optional<double> staleness_mean, std::optional<std::int64_t> staleness_p99,
                        const std::optional<WorkerRow>& times, Time run_ns);
/// One line of faults.csv without its newline.
std::string fault_line(const FaultRow& row);
/// One line of servers.csv without its newline. Idle is what remains of `run_ns`, the time of the last applied update.
std::string server_line(const ServerRow& row, const Place& place, Time run_ns);

}  // namespace rubato::trace
