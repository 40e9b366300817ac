/**
 * The studio, a page about runs.
 *
 * @since 0.1.0
 */

export * as ChatPage from "./ChatPage.ts"
export * as FailureCause from "./FailureCause.ts"
export * as RunExport from "./RunExport.ts"
export * as RunTree from "./RunTree.ts"
export * as Studio from "./Studio.ts"
