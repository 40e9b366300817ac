/**
 * Files: agents, policies and templates, skill files and packs, recordings, stores of runs and media.
 *
 * @since 0.1.0
 */

export * as AgentFile from "./AgentFile.ts"
export * as FileMediaStore from "./FileMediaStore.ts"
export * as FileRunStore from "./FileRunStore.ts"
export * as JsonLinesRecorder from "./JsonLinesRecorder.ts"
export * as LiquidPipeline from "./LiquidPipeline.ts"
export * as PolicyFile from "./PolicyFile.ts"
export * as SkillFileLoader from "./SkillFileLoader.ts"
export * as SkillFiles from "./SkillFiles.ts"
export * as SkillPack from "./SkillPack.ts"
export * as SkillPackStore from "./SkillPackStore.ts"
