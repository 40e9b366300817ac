/**
 * Tools for tests: scripted and recorded providers, and the suites every implementation of a port must pass.
 *
 * @since 0.1.0
 */

/**
 * @category providers
 * @since 0.1.0
 */
export * as Cassette from "./Cassette.ts"
/**
 * @category providers
 * @since 0.1.0
 */
export * as MockProvider from "./MockProvider.ts"
/**
 * @category providers
 * @since 0.1.0
 */
export * as ReplayProvider from "./ReplayProvider.ts"
/**
 * @category suites
 * @since 0.1.0
 */
export * as CrashMatrix from "./CrashMatrix.ts"
/**
 * @category suites
 * @since 0.1.0
 */
export * as MediaStoreSuite from "./MediaStoreSuite.ts"
/**
 * @category scenarios
 * @since 0.1.0
 */
export * as Scenario from "./Scenario.ts"
/**
 * @category suites
 * @since 0.1.0
 */
export * as RunStoreSuite from "./RunStoreSuite.ts"
