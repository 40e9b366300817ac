/**
 * Files: agents, policies and templates, skill files and packs, recordings, stores of runs and media.
 *
 * @since 0.1.0
 */

/**
 * @category agents
 * @since 0.1.0
 */
export * as AgentFile from "./AgentFile.ts"
/**
 * @category stores
 * @since 0.1.0
 */
export * as FileMediaStore from "./FileMediaStore.ts"
/**
 * @category stores
 * @since 0.1.0
 */
export * as FileRunStore from "./FileRunStore.ts"
/**
 * @category recorders
 * @since 0.1.0
 */
export * as JsonLinesRecorder from "./JsonLinesRecorder.ts"
/**
 * @category pipelines
 * @since 0.1.0
 */
export * as LiquidPipeline from "./LiquidPipeline.ts"
/**
 * @category policies
 * @since 0.1.0
 */
export * as PolicyFile from "./PolicyFile.ts"
/**
 * @category skills
 * @since 0.1.0
 */
export * as SkillFileLoader from "./SkillFileLoader.ts"
/**
 * @category skills
 * @since 0.1.0
 */
export * as SkillPackStore from "./SkillPackStore.ts"
