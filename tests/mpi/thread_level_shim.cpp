// Grants the thread level that RUBATO_TEST_THREAD_LEVEL says, whatever is asked for.
#include <dlfcn.h>

#include <cstdlib>

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    using Init = int (*)(int*, char***, int, int*);
    int granted = 0;
    // The library is loaded by now: what calls this is linked with it.
    void* library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD);
    const auto next = library ? reinterpret_cast<Init>(dlsym(library, "PMPI_Init_thread")) : nullptr;
    const int code = next ? next(argc, argv, required, &granted) : 1;
    const char* level = std::getenv("RUBATO_TEST_THREAD_LEVEL");
    *provided = level ? std::atoi(level) : granted;
    return code;
}
