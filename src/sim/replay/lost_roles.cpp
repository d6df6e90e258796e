// What roles sent of which the log has only the receipt: the log of a lost rank breaks off before its last messages.
#include "sim/replay/recomputation.hpp"

#include <algorithm>

namespace rubato::sim {

bool Recomputation::send_for_lost(RoleId role) {
    auto& waiting = seat(role).waiting;
    if (waiting.empty() || ready(role, waiting.front().event)) return false;
    const auto& delivered = std::get<Delivered>(waiting.front().event);
    const Seat& sender = seat(delivered.from);
    // One that ended in order has told all that it sent; one that waits may yet send it.
    if (sender.finished || sender.abandoned || !sender.waiting.empty()) return false;
    Sent sent{0, delivered.message, no_buffer};
    if (delivered.payload.buffer != no_buffer) {
        const auto* push = std::get_if<Push>(&delivered.message);
        if (push == nullptr || push->count > 1 || !needs_.receipts_tell) {
            // The server's log is never lost where this is asked: without its end a log is not whole.
            if (delivered.from != 0 && cut_.empty())
                cut_ =
                    "what " + name_of(delivered.from) + " last sent is lost with its log, and cannot be computed again";
            return false;
        }
        sent.handle = gradient_of_lost(delivered.from, *push);
        if (sent.handle == no_buffer) return false;
    }
    channels_[{delivered.from, role, delivered.channel}].push_back(std::move(sent));
    return true;
}

BufferId Recomputation::gradient_of_lost(RoleId worker, const Push& push) {
    auto& computing = seat(worker).computing;
    const auto begun = std::find_if(computing.begin(), computing.end(),
                                    [&](const auto& it) { return it.second.action.worker_seq == push.worker_seq; });
    Computing job;
    if (begun != computing.end()) {
        job = std::move(begun->second);
        computing.erase(begun);
    } else {
        job.weights = model_of_lost(worker, push.read_version);
        if (job.weights == no_buffer) return no_buffer;
        job.action = Compute{0, no_buffer, push.batch, push.worker_seq};
        submit(worker, job);
    }
    pool_->wait(*job.job);
    ++gradients_;
    buffers_.release(job.weights);
    listener_.on_gradient(worker, job.action, GradientReady{0, no_buffer, push.begin_ns, push.end_ns, push.loss},
                          job.job->loss);
    return job.gradient;
}

BufferId Recomputation::model_of_lost(RoleId worker, Version version) {
    // The first one, the last one that its log has, or one on its way to it.
    const Version first = options_.resumed ? options_.resumed->head.version() : 0;
    if (version == first && starts_ < seats_.size()) return buffers_.share(initial_, -1);
    for (const auto& [id, held] : seat(worker).buffers)
        if (held.version == version) return buffers_.share(held.handle, -1);
    for (const Sent& sent : channels_[{0, worker, Channel::weights}]) {
        const auto* model = std::get_if<Weights>(&sent.message);
        if (model != nullptr && model->version == version && sent.handle != no_buffer)
            return buffers_.share(sent.handle, -1);
    }
    return no_buffer;
}

}  // namespace rubato::sim
