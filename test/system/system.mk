# Unusual systems.

.PHONY: check-sandbox check-clocks check-arm64

##@ Unusual systems

sandboxed := loop ledger close groups
# Runs clang's build of the unit tests, so that one run checks both: another compiler, and the gate that takes
# membarrier's place.
check-sandbox: deps-build+clang ## unit tests built by clang, and short stress, on a system without membarrier
	$(again) build/clang/plain/run build/clang/test/system/sandbox $(sandboxed:%=build/clang/test/stress/%) \
		MODE=clang CC=clang CXX=clang++ CFLAGS="-Werror $(CFLAGS)"
	$(Q)build/clang/test/system/sandbox build/clang/plain/run --jobs 2 --patience 5 \
		--without test/plain/not_sandboxed
	$(Q)build/clang/test/system/sandbox test/stress/run.sh $(SHORT) 2 $(sandboxed:%=build/clang/test/stress/%)

$B/test/system/sandbox: $B/test/system/sandbox.o
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^

check-clocks: deps-build+faults ## odd real clocks: time namespaces, leaps, steps of the time of day
	$(again) $B/test/system/clocks $B/test/stress/ledger $B/test/stress/loop
	$(Q)test/system/clocks.sh $B/test/system/clocks $B/test/stress/ledger $B/test/stress/loop

$B/test/system/clocks: $B/test/system/clocks.o $(archives)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ -lm

check-arm64: deps-build+arm64 ## library and tests for arm64 under qemu, which does not show weak ordering
	$(Q)test/system/arm64.sh
