// Exit statuses of the program, and which error gives which.
#pragma once

#include <functional>

namespace rubato::cli {

enum ExitStatus {
    exit_finished = 0,
    exit_negative = 1,         ///< a negative verdict: a replay differs
    exit_wrong_input = 2,      ///< an output that cannot be written included
    exit_ended_otherwise = 3,  ///< the run did not finish; summary.json says how
    exit_internal = 70
};

/// Wrong input is told by another process that was given the same: from now on guarded() only returns its status.
void leave_wrong_input_to_others();

/// Runs the command. The one place where exceptions become a line on stderr and an exit status.
int guarded(const std::function<int()>& command);

}  // namespace rubato::cli
