#include "cli/footers.hpp"

#include <map>

namespace rubato::cli {

std::string footer_of(const std::string& command) {
    static const std::map<std::string, std::string> footers{
        {"run",
         "Examples:\n"
         "  rubato run scenarios/quickstart.json --out runs/one\n"
         "  rubato run scenarios/quickstart.json --set protocol.n=1 --set stop.epochs=1 --backend local\n"
         "  rubato run scenarios/quickstart.json --set execution.checkpoint.every_epochs=1 --out runs/long --resume"},
        {"sweep",
         "Under mpirun or srun the ranks share the points, and so do several sweeps of one folder at once.\n"
         "Exit status 1: some points failed.\n\n"
         "Examples:\n"
         "  rubato sweep scenarios/bench/sweep-bench.json --out runs/bench -j 2\n"
         "  rubato sweep scenarios/bench/sweep-bench.json --out runs/bench --best 5 --by time_s"},
        {"calibrate",
         "Sources may be combined; a table replaces what the run says of the same devices, or of the network.\n"
         "docs/calibration.md tells what is measured and how it is used.\n\n"
         "Examples:\n"
         "  rubato calibrate scenarios/quickstart.json --out here.json\n"
         "  rubato calibrate --run runs/one --out here.json\n"
         "  rubato calibrate --timings gpu.csv --network nccl.csv --out cluster.json\n"
         "  rubato run scenarios/quickstart.json --set 'cluster={\"profile\": \"here.json\"}'"},
        {"replay",
         "Exit status 1: the roles would not do the same again, or compute something else; the first difference is\n"
         "named. With --set as `rubato run`: 3 where the run diverges under the other rule.\n\n"
         "Examples:\n  rubato run scenarios/quickstart.json --events --out runs/one\n  rubato replay runs/one\n"
         "  rubato replay runs/one --weights\n"
         "  rubato replay runs/one --set optimizer.staleness_rule=inverse-n --out runs/one-divided"},
        {"init", "Examples:\n  rubato init --protocol async first.json\n  rubato init - | less"},
        {"check",
         "It tells the placement of the roles, the sizes of messages, what is guaranteed, and how much time and disk "
         "a\n"
         "run takes at least.\n\nExample:\n  rubato check scenarios/quickstart.json --set workers.count=16"},
        {"list", "Example:\n  rubato list protocols"},
        {"plot",
         "RUN_OR_SWEEP is a run directory, or one that `rubato sweep` has left. The figure goes to FILE (PNG, PDF or\n"
         "SVG; default: KIND.png), its data beside it as CSV. `rubato plot KIND --help` tells the options of a "
         "kind.\n\n"
         "Examples:\n  rubato plot curves runs/one runs/two -o curves.png\n"
         "  rubato plot tradeoff sweeps/grid -o tradeoff.png"},
        {"table",
         "`rubato table SWEEP --help` tells the options: --latex, --csv, --rows KEY, --columns KEY, --value FIGURE,\n"
         "--best min|max, --where KEY=VALUE, -o FILE.\n\n"
         "Example:\n  rubato table sweeps/grid --latex --rows workers.count --columns label --value test_error"},
        {"help", "Examples:\n  rubato help workers.batch_size\n  rubato help hardsync\n  rubato help run"},
    };
    const auto found = footers.find(command);
    return found == footers.end() ? "" : found->second;
}

}  // namespace rubato::cli
