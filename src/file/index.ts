/**
 * Files: recordings, skill files and packs, stores.
 *
 * @since 0.1.0
 */
export * as JsonLinesRecorder from "./JsonLinesRecorder.ts"

export * as SkillFileLoader from "./SkillFileLoader.ts"
