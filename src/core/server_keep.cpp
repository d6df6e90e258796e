// Versions of the weights that a staleness rule looks at: those on which gradients were computed that are still to be
// applied. Nothing is copied: the driver holds on to contents that are there, and works in place no longer.
#include "core/server.hpp"

#include <algorithm>

namespace rubato {

void Server::keep_present(Actions& actions) {
    if (!kept_.empty() && kept_.back() == version_) return;
    kept_.push_back(version_);
    actions.add<Keep>(version_, weights_);
}

// A gradient of staleness 0 has nothing to be looked at, so the present version is kept for others than those that are
// being applied.
void Server::forget_unread(Actions& actions) {
    std::vector<Version> read;
    for (const auto& it : peers_)
        if (it.busy && earlier_.empty())
            read.push_back(it.version);
        else
            for (const Dealt& dealt : outstanding(it)) read.push_back(dealt.version);
    for (std::size_t i = inbox_head_; i < inbox_.size(); ++i)
        if (const auto* push = std::get_if<Push>(&inbox_[i].message)) read.push_back(push->read_version);
    for (const auto* gradients : {&round_, &applying_})
        for (const auto& it : *gradients)
            if (it.gradient != no_buffer && it.row.read_version < version_) read.push_back(it.row.read_version);
    std::sort(read.begin(), read.end());
    std::erase_if(kept_, [&](Version version) {
        if (std::binary_search(read.begin(), read.end(), version)) return false;
        actions.add<Forget>(version);
        return true;
    });
}

}  // namespace rubato
