#include "trace/steady.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::trace {
namespace {

constexpr int batches = 10;
/// 97.5 % quantile of Student's t distribution with batches - 1 degrees of freedom.
constexpr double student_t = 2.2621571628540993;

}  // namespace

void SteadyWindow::add(const UpdateRow& row) {
    ++total_.updates;
    total_.time_ns = row.time_ns;
    total_.samples += row.samples;
    total_.gradients += row.contributors;
    total_.staleness += row.mean_staleness * row.contributors;
    if ((total_.updates & (stride_ - 1)) != 0) return;  // a power of two
    marks_.push_back(total_);
    if (marks_.size() <= marks_max) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < marks_.size(); i += 2) marks_[kept++] = marks_[i];
    marks_.resize(kept);
    stride_ *= 2;
}

const SteadyWindow::Mark& SteadyWindow::nearest(double updates) const {
    const auto index = static_cast<std::size_t>(std::floor(updates / static_cast<double>(stride_) + 1e-9));
    return marks_[std::min(index, marks_.size() - 1)];
}

double SteadyWindow::updates_before() const {
    return std::floor(0.10 * static_cast<double>(total_.updates) + 1e-9);
}

double SteadyWindow::updates_until() const {
    const auto updates = static_cast<double>(total_.updates);
    return updates - std::floor(0.05 * updates + 1e-9);
}

SteadyWindow::Edges SteadyWindow::edges() const {
    return {nearest(updates_before()), nearest(updates_until())};
}

SteadyFigures SteadyWindow::figures() const {
    SteadyFigures out;
    const double first = updates_before(), last = updates_until();
    const auto [begin, end] = edges();
    if (end.gradients > begin.gradients)
        out.staleness_mean = (end.staleness - begin.staleness) / static_cast<double>(end.gradients - begin.gradients);
    const auto rate = [](const Mark& from, const Mark& to) {
        return static_cast<double>(to.samples - from.samples) / (static_cast<double>(to.time_ns - from.time_ns) / 1e9);
    };
    if (end.time_ns <= begin.time_ns) return out;
    out.samples_per_s = rate(begin, end);

    double sum = 0, sum_of_squares = 0;
    double rates[batches];
    for (int i = 0; i < batches; ++i) {
        const Mark& from = nearest(first + (last - first) * i / batches);
        const Mark& to = nearest(first + (last - first) * (i + 1) / batches);
        if (to.time_ns <= from.time_ns) return out;  // too few updates, or several in one instant
        rates[i] = rate(from, to);
        sum += rates[i];
    }
    for (const double value : rates) sum_of_squares += (value - sum / batches) * (value - sum / batches);
    out.samples_per_s_ci95 = student_t * std::sqrt(sum_of_squares / (batches - 1)) / std::sqrt(double{batches});
    return out;
}

}  // namespace rubato::trace
