// Whoever includes the core gets no third party with it.

#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>

#if defined(HIREDIS_MAJOR) || defined(REDIS_OK) || defined(SDS_MAX_PREALLOC)
#error "kunci.hpp includes hiredis"
#endif
#ifdef OPENSSL_VERSION_NUMBER
#error "kunci.hpp includes OpenSSL"
#endif

int main() {
    return KUNCI_VERSION_MAJOR < 0;
}
