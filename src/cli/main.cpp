#include "cli/app.hpp"

int main(int argc, char** argv) {
    return rubato::cli::run_program(argc, argv);
}
