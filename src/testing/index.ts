/**
 * Tools for tests: scripted and recorded providers, replays of recorded runs, and the suites that every implementation
 * of a port must pass.
 *
 * @since 0.1.0
 */

export * as Cassette from "./Cassette.ts"
export * as MockProvider from "./MockProvider.ts"
export * as ProviderSuite from "./ProviderSuite.ts"
export * as RequestRules from "./RequestRules.ts"
export * as Replay from "./Replay.ts"
export * as ReplayProvider from "./ReplayProvider.ts"
export * as CrashMatrix from "./CrashMatrix.ts"
export * as CodeInterpreterSuite from "./CodeInterpreterSuite.ts"
export * as Evaluation from "./Evaluation.ts"
export * as MediaStoreSuite from "./MediaStoreSuite.ts"
export * as MemorySuite from "./MemorySuite.ts"
export * as Scenario from "./Scenario.ts"
export * as RunStoreSuite from "./RunStoreSuite.ts"
export * as WorkspaceSuite from "./WorkspaceSuite.ts"
