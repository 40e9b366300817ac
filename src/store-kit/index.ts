/**
 * The parts of a store: the rules that every store of runs follows, the parts of a stored state, polling and offers
 * between processes, the media of a run, and the messages and memories of conversations.
 *
 * The stores of `kernai/file` and `kernai/sql` are made of these modules and of `RunCodec`. `RunStoreSuite` and
 * `MediaStoreSuite` of `kernai/testing` prove a store of your own, and its `CrashMatrix` stops runs at every append.
 *
 * @since 0.1.0
 */

export * as EmbeddedMedia from "./EmbeddedMedia.ts"
export * as Follow from "./Follow.ts"
export * as MediaScope from "./MediaScope.ts"
export * as Medium from "./Medium.ts"
export * as MemoryRules from "./MemoryRules.ts"
export * as MessageText from "./MessageText.ts"
export * as Offers from "./Offers.ts"
export * as Polling from "./Polling.ts"
export * as RunPages from "./RunPages.ts"
export * as SharedHistory from "./SharedHistory.ts"
export * as StateParts from "./StateParts.ts"
export * as StoredRuns from "./StoredRuns.ts"
export * as StoreRules from "./StoreRules.ts"
export * as StoreSearch from "./StoreSearch.ts"
