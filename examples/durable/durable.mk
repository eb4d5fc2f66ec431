# The example of timers that outlive a machine, and its test. The Makefile includes this file.

durable_o := $(patsubst %.c,$B/%.o,$(wildcard examples/durable/*.c))
durable   := $B/durable/durable

$(durable): $(durable_o) $(lib)
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ $(ck_libs) -lhiredis

.PHONY: durable check-durable

durable: deps-build+durable ## builds the example of timers in Redis, build/release/durable/durable
	$(again) $(durable)

check-durable: deps-build+durable ## durable timers: nodes killed and stopped, redis-server killed; half a minute
	$(again) $(durable)
	$(Q)test/durable.sh $(durable)
