# Differential tests beside real systems; the Makefile includes this file. test/peers/README.md
# tells how they work.

peers_o := $(patsubst %.c,$B/%.o,$(wildcard test/peers/ours/*.c))

$B/test/peers/ours/play: $(peers_o) $(archives)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ -lm

.PHONY: check-peers check-peers-planted

# PEERS holds options of test/peers/run.mjs, as PEERS="--count 200".
PEERS ?=

check-peers: deps-build+peers ## random scripts beside RxJS, React, p-limit, p-queue, Bottleneck, Java, Netty
	$(again) $B/test/peers/ours/play
	$(Q)test/peers/check.sh $B/test/peers/ours/play $(PEERS)

check-peers-planted: deps-build+peers ## plants bugs in a copy of the sources; check-peers must find each
	$(Q)test/peers/install.sh
	$(Q)test/planted/run.sh --list test/peers/planted
