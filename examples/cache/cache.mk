# tickcache, its tests, and `make cache`. The Makefile includes this file.

cache_o   := $(patsubst %.c,$B/%.o,$(wildcard examples/cache/*.c))
tickcache := $B/cache/tickcache
cache_tests := $(patsubst test/examples/cache/%.c,$B/cache/%,$(wildcard test/examples/cache/*.c))

$(tickcache): $(cache_o) $(archives)
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ -lm

$(cache_tests): $B/cache/%: $B/test/examples/cache/%.o
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ -lm

cache_parts := buffer resp table
$B/cache/parts: $(cache_parts:%=$B/examples/cache/%.o)

# The other fuzz targets link with the unit tests' support; this one needs none of it.
build/fuzz/test/fuzz/fuzz_resp: $(patsubst %,build/fuzz/plain/%.o,test/fuzz/fuzz_resp \
	examples/cache/buffer examples/cache/resp)
	@mkdir -p $(@D)
	$(call say,link)$(CC) -fsanitize=fuzzer,address,undefined $(CFLAGS) -o $@ $^

.PHONY: test-cache stress-cache check-cache

EXPIRIES ?= 10000000

# The part that needs no redis-server; a part of `make test`. AddressSanitizer keeps little of what is freed, because a
# test looks whether memory goes back.
test-cache: deps-build
	$(again) $(tickcache) $(cache_tests)
	$(Q)TSAN_OPTIONS="suppressions=$(CURDIR)/test/tsan.supp halt_on_error=1 $$TSAN_OPTIONS" \
		ASAN_OPTIONS="quarantine_size_mb=16 $$ASAN_OPTIONS" \
		test/examples/cache/run.sh $B/cache $(if $(filter release,$(MODE)),100000,30000)

stress-cache: deps-build ## EXPIRIES=n keys of the cache expire under eight clients; none early, late or lost
	$(again) $(tickcache) $(cache_tests)
	$(Q)test/examples/cache/run.sh $B/cache $(EXPIRIES) stress

check-cache: deps-build+cache ## the cache's tests with sanitizers, and its table of commands against a redis-server
	$(again) $(tickcache) $(cache_tests)
	$(Q)test/examples/cache/replay.sh $(tickcache) both
	$(Q)test/examples/cache/cli.sh $(tickcache)
	$(again) test-cache MODE=asan
	$(again) test-cache MODE=tsan

.PHONY: cache
cache: deps-build+cache ## a Redis-protocol cache beside a real redis-server: lateness of expiry, throughput
	$(again) $(tickcache)
	$(Q)bench/cache.py $(tickcache)
