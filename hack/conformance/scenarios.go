package main

// scenario is one scenario of the specification and the test that stands for it.
type scenario struct{ requirement, scenario, test string }

var scenarios = []scenario{
	{"StorageMux is a storage", "subclass is an instance of AbstractStorage", "TestMuxHasEveryOperationOfAStorage"},
	{"StorageMux is a storage", "empty backend list is rejected at construction", "TestConfigurationsAreRefusedWithTheirCode/no_backends"},
	{"StorageMux is a storage", "duplicate backend names rejected", "TestConfigurationsAreRefusedWithTheirCode/two_of_one_name"},

	{"Six modes", "unknown mode string is rejected", "TestConfigurationsAreRefusedWithTheirCode/unknown_mode"},

	{"failover", "transient error advances to next backend", "TestWalkFallsThroughToTheNextBackendOnATransientError"},
	{"failover", "semantic KEY_NOT_FOUND is not retried across backends", "TestWalkReturnsSemanticErrorWithoutAdvancing"},
	{"failover", "exhausting all backends throws ALL_BACKENDS_DOWN with cause chain", "TestWalkThatExhaustsTheListReportsAllBackendsDown"},

	{"round-robin", "nine calls across three healthy backends distribute evenly", "TestRoundRobinDistributesEvenly"},
	{"round-robin", "down backend is skipped", "TestRoundRobinSkipsABackendThatIsDown"},

	{"weighted", "weights 1/3/6 distribute roughly 10/30/60 percent over 1000 calls", "TestWeightedDistributesByWeightUnderSeveralSeeds"},
	{"weighted", "weighted without weights rejects at construction", "TestConfigurationsAreRefusedWithTheirCode/weighted,_no_weights"},
	{"weighted", "negative weight rejected", "TestConfigurationsAreRefusedWithTheirCode/negative_weight"},

	{"sticky-by-key", "same key resolves to same backend across 100 calls", "TestStickyKeyStaysWithItsBackend"},
	{"sticky-by-key", "removed backend triggers redistribution", "TestStickyKeyOfABackendThatIsDownMovesAndStaysThere"},

	{"shield", "shield with single backend rejected at construction", "TestConfigurationsAreRefusedWithTheirCode/shield_of_one"},
	{"shield", "read falls through to mirror after origin timeout", "TestShieldReadsFromAMirrorWhenItsOriginHangs"},
	{"shield", "write succeeds when origin accepts and one mirror rejects (default)", "TestShieldWriteSucceedsWithItsOriginAndNamesTheMirrorsThatMissedIt"},
	{"shield", "write throws WRITE_FANOUT_PARTIAL when caller opts in", "TestShieldWriteThatMissedAMirrorFailsWhereThatIsAskedFor"},
	{"shield", "write fails when origin rejects regardless of mirror outcomes", "TestShieldWriteFailsWithItsOriginWhateverTheMirrorsDid"},

	{"mirror", "read returns first successful peer", "TestMirrorReadTakesTheFirstAnswer"},
	{"mirror", "write fans out to all peers and emits partial when one rejects", "TestMirrorWriteReachesAllAndNamesTheOneThatMissedIt"},
	{"mirror", "all peers reject a read throws ALL_BACKENDS_DOWN", "TestMirrorReadThatEveryPeerRejectsCarriesAllTheirErrors"},

	{"Bulkhead", "hung primary does not delay fallback beyond backendTimeoutMs", "TestHungPrimaryDoesNotDelayTheFallbackBeyondItsTimeout"},
	{"Bulkhead", "exhausted timeouts surface BACKEND_TIMEOUT", "TestExhaustedTimeoutsAreTheCauseOfAllBackendsDown"},

	{"The caller's cancellation", "caller abort surfaces BACKEND_ABORTED and does not advance", "TestCallerWhoHasLeftIsNotServedAndNobodyIsAsked"},
	{"The caller's cancellation", "composed signal aborts backend mid-flight on user cancellation", "TestCallersLeavingReachesTheBackendAndIsNobodysFailure"},

	{"Passive health", "failing backend cools down for 2000ms after second failure", "TestBackendStaysDownForTwiceAsLongAfterItsSecondFailure"},
	{"Passive health", "cooldown is capped at maxCooldownMs", "TestCooldownNeverExceedsItsLimit"},
	{"Passive health", "successful probe after cooldown restores backend and emits recovered event", "TestSuccessfulProbeBringsTheBackendBackAndTellsForHowLongItWasDown"},

	{"Active health checks", "rejecting active healthcheck marks backend down", "TestActiveCheckTakesABackendDownAndOnlyACheckBringsItBack"},
	{"Active health checks", "dispose cancels scheduled healthchecks", "TestCloseEndsActiveChecks"},

	{"Retry", "backend that fails twice then succeeds is retried in place before fall-through", "TestBackendIsRetriedInPlaceBeforeTheNextIsTried"},
	{"Retry", "no inline retry implementation in package", "TestEngineHasNoRetryOfItsOwn"},

	{"Isolation", "throw from backend A leaves backend B health unchanged", "TestFailureOfOneBackendLeavesTheOthersUntouched"},
	{"Isolation", "concurrent in-flight ops on different backends do not interleave state writes", "TestConcurrentCallsAddUp"},

	{"Recursion", "two-level recursive mux passes basic round-trip", "TestSpansOfNestedMuxesAreNestedUnderTheNameOfTheOperation"},
	{"Recursion", "deeply nested mux beyond depth 8 throws RECURSION_DEPTH_EXCEEDED", "TestConfigurationsAreRefusedWithTheirCode/nested_too_deep"},

	{"Runtime mutation", "addBackend with duplicate name rejected", "TestAddedBackendServesAndItsNameIsTaken"},
	{"Runtime mutation", "setWeight rebuilds alias table under weighted mode", "TestSetWeightShiftsTheDistribution"},

	{"Drain", "drain awaits in-flight calls before completing", "TestDrainWaitsForWhatIsInFlightAndThenFreesTheName"},
	{"Drain", "draining backend is skipped by new selections", "TestDrainingBackendIsSkippedByRoundRobin"},

	{"Stats", "stats reflect a successful call and a failed call", "TestStatsCountOneOutcomeForEachAttempt"},
	{"Stats", "reservoir bounds memory under high call volume", "TestReservoirIsBoundedAndUniform"},

	{"Error codes", "every declared code is reachable from a real call site", "TestEveryCodeIsReachedFromARealCall"},

	{"Events", "failover emits storage-mux.failover with both backend names", "TestWalkFallsThroughToTheNextBackendOnATransientError"},
	{"Events", "no bus configured does not throw", "TestWithoutSinkAndTracerEverythingWorks"},

	{"Spans", "failover attempt records two child spans under one parent", "TestOperationHasOneSpanAndOneBelowItForEachAttempt"},

	{"The storage contract", "conformance passes under all six modes: failover", "TestMuxKeepsTheContract/failover"},
	{"The storage contract", "conformance passes under all six modes: round-robin", "TestMuxKeepsTheContract/round-robin"},
	{"The storage contract", "conformance passes under all six modes: weighted", "TestMuxKeepsTheContract/weighted"},
	{"The storage contract", "conformance passes under all six modes: sticky-by-key", "TestMuxKeepsTheContract/sticky-by-key"},
	{"The storage contract", "conformance passes under all six modes: shield", "TestMuxKeepsTheContract/shield"},
	{"The storage contract", "conformance passes under all six modes: mirror", "TestMuxKeepsTheContract/mirror"},
	{"The storage contract", "conformance passes under recursive composition", "TestMuxKeepsTheContract/failover_of_mirrors"},

	{"Purity", "tier-purity grep finds no Node or DOM imports", "TestEngineImportsNothingOfAnOperatingSystemOrACluster"},
}
