#include "cli/units.hpp"

#include <stdexcept>
#include <string>

namespace rubato::cli {

Quantity quantity_named(std::string_view name) {
    if (name == "bandwidth") return Quantity::bandwidth;
    if (name == "time") return Quantity::duration;
    if (name == "speed" || name == "flops") return Quantity::speed;
    if (name == "bytes") return Quantity::size;
    throw std::logic_error("no quantity " + std::string(name));
}

std::string_view number_unit(std::string_view name) {
    if (name == "flops") return "floating-point operations";
    switch (quantity_named(name)) {
        case Quantity::bandwidth: return "bytes/s";
        case Quantity::duration: return "seconds";
        case Quantity::speed: return "flop/s";
        case Quantity::size: return "bytes";
    }
    return "";
}

std::string_view example(Quantity quantity) {
    switch (quantity) {
        case Quantity::bandwidth: return "\"10Gbps\" (bits) or \"1.25GBps\" (bytes)";
        case Quantity::duration: return "\"10us\" or \"5ms\"";
        case Quantity::speed: return "\"100Gf\"";
        case Quantity::size: return "\"350kB\" or \"1MiB\"";
    }
    return "";
}

}  // namespace rubato::cli
