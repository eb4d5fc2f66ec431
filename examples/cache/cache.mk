# tickcache, its tests, and `make cache`. The Makefile includes this file.

cache_o   := $(patsubst %.c,$B/%.o,$(wildcard examples/cache/*.c)) $B/examples/server/metrics.o
tickcache := $B/cache/tickcache
cache_tests := $(patsubst test/cache/%.c,$B/cache/%,$(wildcard test/cache/*.c))

$(tickcache): $(cache_o) $(lib)
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ $(ck_libs) -lm

$(cache_tests): $B/cache/%: $B/test/cache/%.o
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ -lm

.PHONY: test-cache check-cache

# The part that needs no redis-server; a part of `make test`.
test-cache: deps-build
	$(again) $(tickcache) $(cache_tests)
	$(Q)test/cache/replay.sh $(tickcache) $B/cache/replay

check-cache: deps-build+cache ## replays the cache's table of commands against it and a redis-server
	$(again) $(tickcache) $(cache_tests)
	$(Q)test/cache/replay.sh $(tickcache) $B/cache/replay both
