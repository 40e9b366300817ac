/**
 * Says where a played tape of kernel.json differs from what it expects.
 *
 * Differences that the rules ask for are mapped in this folder and nowhere else: skills
 * of an agent without a list run through `gate: "listing"` (BP-66), notes about
 * passed-over blocks are further user messages (W-10), what is injected is
 * escaped (BP-76), prose plans are no rejections (W-34), type names are ours, a
 * hint may follow the reminder (W-36), tasks are recorded at their step (W-28)
 * and their media are named (W-21), one predicate says who can act (BP-42).
 */
import { Exit } from "effect"
import { Provider } from "kernai"
import type { Json } from "../../../src/Content.ts"
import { canonical } from "../canonical.ts"
import { type Outcome, type Tape, type Played, type Difference, isObject } from "./script.ts"
import { compareTape, withoutNotes, anonymous } from "./conversation.ts"
import { withoutDurations } from "./words.ts"
import { toldEvent, wantedEvent, merge } from "./events.ts"
import { type Row, toldRow, wantedRow, droppedRow } from "./rows.ts"

/** Where what was played differs from one expected outcome. */
export const differences = (tape: Tape, played: Played, expected: Outcome): ReadonlyArray<Difference> => {
  const found: Array<Difference> = []
  const compare = (where: string, want: unknown, got: unknown) => {
    if (canonical(want) !== anonymous(canonical(got))) found.push({ where, expected: want, actual: got })
  }
  if (expected.result !== undefined)
    compare("result", expected.result, Exit.isSuccess(played.exit) ? played.exit.value.text : played.exit)
  if (expected.error !== undefined) compareError(expected.error, played, compare)
  const calls = [...played.requests.values()].reduce((sum, list) => sum + list.length, 0)
  if (expected.provider_calls !== undefined) compare("provider_calls", expected.provider_calls, calls)
  for (const want of expected.tapes ?? []) compareTape(want, played, compare)
  const told = merge(played.events.flatMap((event) => toldEvent(event)))
  if (expected.events !== undefined) {
    const wanted = [expected.events, expected.events_when_streamed_by_char ?? expected.events]
    const same = wanted.find((events) => canonical(merge(events.map(wantedEvent))) === canonical(told))
    compare("events", merge((same ?? expected.events).map(wantedEvent)), told)
  }
  if (expected.event_counts !== undefined) {
    // How many pieces of text stand side by side depends on which task spoke in between.
    const counted = (name: string) => name !== "text_chunk" && name !== "block_content"
    const counts: { [name: string]: number } = {}
    for (const [name] of told) if (counted(name)) counts[name] = (counts[name] ?? 0) + 1
    const wanted = Object.entries(expected.event_counts).filter(([name, count]) => counted(name) && count > 0)
    compare("event_counts", Object.fromEntries(wanted), counts)
  }
  const asked = new Map<string, number>()
  const rows = played.rows.map((row): Row => {
    const told = toldRow(row)
    if (told[3] !== "messages_sent") return told
    const scope = told[2] ?? "root"
    const index = asked.get(scope) ?? 0
    asked.set(scope, index + 1)
    const messages = withoutNotes(played.requests.get(scope)?.[index]?.messages ?? [])
    return [told[0], told[1], told[2], told[3], { messages: messages.length }]
  })
  if (expected.recorder !== undefined)
    compare("recorder", expected.recorder.flatMap(wantedRow), rows.flatMap(droppedRow))
  for (const [scope, wanted] of Object.entries(expected.recorder_by_scope ?? {})) {
    const own = rows.filter((row) => (row[2] ?? "root") === scope && !row[3].startsWith("task_"))
    compare(`recorder of ${scope}`, wanted.flatMap(wantedRow), own.flatMap(droppedRow))
  }
  if (expected.on_task_complete !== undefined) {
    const order = (list: ReadonlyArray<Json>) => list.map((item) => anonymous(canonical(item))).toSorted()
    compare("on_task_complete", order(expected.on_task_complete), order(played.tasks))
  }
  if (expected.task_entries !== undefined) {
    const own = rows.filter((row) => row[3].startsWith("task_")).map((row) => anonymous(canonical([row[3], row[4]])))
    compare("task entries", expected.task_entries.map((entry) => canonical(entryOf(entry))).toSorted(), own.toSorted())
  }
  if (expected.media_store !== undefined) {
    const order = (ids: ReadonlyArray<string>) => (tape.unordered === true ? ids.toSorted() : ids)
    compare("media_store", order(expected.media_store), order(played.media))
  }
  if (expected.generation_seen !== undefined)
    compareGeneration(expected.generation_seen, tape.agent.generation ?? {}, played, compare)
  // Ruby asks dynamic instructions once more before the first step (BP-36).
  if (expected.instruction_evaluations !== undefined)
    compare("evaluations", expected.instruction_evaluations - 1, played.evaluations)
  return found.map((difference) => ({ ...difference, where: `${tape.id} ${difference.where}` }))
}

/** An entry of a task: a row, or what is left of one without its scope. */
const entryOf = (entry: Json): readonly [Json, Json] => {
  if (!Array.isArray(entry))
    return isObject(entry) ? [entry["event"] ?? null, withoutDurations(entry["data"] ?? null)] : [null, entry]
  const [event = null, data = null] = entry.slice(-2)
  return [event, withoutDurations(data)]
}

/** Each call is given the agent's options; a sub-agent too, though Ruby gives it none (BP-61). */
const compareGeneration = (
  wanted: Json,
  given: { readonly [key: string]: Json },
  played: Played,
  compare: (where: string, want: unknown, got: unknown) => void
) => {
  const own = withoutNulls(given)
  for (const { options, scope } of played.generations) compare(`generation of ${scope}`, own, wireGeneration(options))
  const named = isObject(wanted) && "root" in wanted ? wanted["root"] : wanted
  const seen = Array.isArray(named) ? named : [named ?? null]
  for (const options of seen) {
    const clean = isObject(options) ? withoutNulls(options) : options
    if (canonical(clean) !== "{}") compare("generation_seen", clean, own)
  }
}

const withoutNulls = (data: { readonly [key: string]: Json }): { readonly [key: string]: Json } =>
  Object.fromEntries(
    Object.entries(data).flatMap(([key, value]) =>
      value === null ? [] : [[key, isObject(value) ? withoutNulls(value) : value]]
    )
  )

const wireGeneration = ({ extra, maxTokens, topP, ...rest }: Provider.Request["generation"]) => ({
  ...rest,
  ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
  ...(topP === undefined ? {} : { top_p: topP }),
  ...extra
})

const classes: { readonly [name: string]: string } = {
  "Kernai::MaxStepsReachedError": "MaxStepsReached",
  "Kernai::ProviderError": "ProviderError"
}

const compareError = (
  expected: { readonly class: string; readonly message: string },
  played: Played,
  compare: (where: string, want: unknown, got: unknown) => void
) => {
  const error = Exit.isFailure(played.exit) ? failureOf(played.exit) : undefined
  // A class that none of ours stands for is told: any failure would do for it.
  compare("error", classes[expected.class] ?? expected.class, error?._tag)
  compare("error message", true, error?.message.includes(expected.message) ?? false)
}

const failureOf = (
  exit: Exit.Failure<unknown, unknown>
): { readonly _tag: string; readonly message: string } | undefined => {
  for (const reason of exit.cause.reasons) {
    if (reason._tag === "Fail" && reason.error instanceof Error && "_tag" in reason.error) {
      return { _tag: String(reason.error._tag), message: reason.error.message }
    }
  }
  return undefined
}
