// What a profile gives a scenario: ordinary keys of cluster, so that the saved scenario needs no profile.
#pragma once

#include "cli/calibrate/profile.hpp"
#include "cli/node.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// What of a profile is put into a scenario.
struct ProfileParts {
    bool compute = true;
    bool server = true;
    bool network = true;
};

/// Replaces cluster.profile and cluster.devices.NAME.profile by the keys that they stand for. Before the walk; what is
/// malformed is left for the walk to refuse. What the scenario gives itself though the profile has it, too, is told in
/// `notes`. Throws InputError where a profile cannot be read or lacks the device.
void use_profiles(Node& root, std::vector<std::string>& notes);

/// Puts a profile into a scenario that is not yet checked, as cluster.profile does: classes of devices that workers
/// name and the scenario does not define, costs of the server, the inline star. What the scenario gives itself stays,
/// unless `replace`: then the figures of the profile replace the scenario's, and a part that the profile has no figures
/// for is left as it is. `where`: for messages, and of the new keys. Returns the keys of cluster that stayed though the
/// profile has figures for them.
std::vector<std::string> put_profile(Node& root, const Profile& profile, const Where& where,
                                     const ProfileParts& parts = {}, bool replace = false);

}  // namespace rubato::cli
