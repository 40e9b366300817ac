/**
 * Facts about a run for lists that its head does not have. They are cached by revision, so an unchanged run is not read
 * again, and a changed one is read from its last known revision.
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { PhaseEvent, RunRecord } from "../../RunRecord.ts"
import type { RunHead, RunStoreShape } from "../../RunStore.ts"
import { addCost } from "../../Usage.ts"
import { titleOf, wordsOf } from "./runTitle.ts"

/** The facts of a run. Errors and cost are absent if the journal is too long to be read for a list. */
export interface Facts {
  /** The first words of its question, as they were sent. */
  readonly words: string
  /** The beginning of its title. */
  readonly title: string
  /** Number of failed calls, plus the failure of the run. */
  readonly errors?: number | undefined
  readonly costUsd?: number | undefined
  /** Tokens of all turns, of prompts and replies. Absent if a provider reported none. */
  readonly tokens?: number | undefined
}

interface Known {
  readonly revision: number
  readonly words: string
  readonly title: string
  readonly errors: number
  readonly costUsd: number | undefined
  readonly tokens: number | undefined
}

/** Maximum number of records that are read for one line of a list. */
const most = 2_000
const kept = 5_000
/** The characters of the first words and of the title. */
const length = 200
const unreadable = "(the journal cannot be read)"

const nothing: Known = { revision: 0, words: "", title: "", errors: 0, costUsd: undefined, tokens: undefined }

/** Reads facts of the runs of a store. */
export const make = (store: RunStoreShape): ((head: RunHead) => Effect.Effect<Facts>) => {
  const known = new Map<string, Known>()
  return ({ revision, runId }) => {
    const before = known.get(runId) ?? nothing
    if (before.revision === revision) return Effect.succeed(before)
    const isLong = revision - before.revision > most
    const records = isLong ? Stream.take(store.read(runId), 1) : store.read(runId, before.revision)
    return Stream.runFold(records, (): Known => before, add).pipe(
      Effect.map((facts): Facts => {
        if (isLong) return { words: facts.words, title: facts.title }
        known.delete(runId)
        known.set(runId, facts)
        const [oldest] = known.keys()
        if (known.size > kept && oldest !== undefined) known.delete(oldest)
        return facts
      }),
      // A run with an unreadable journal is still listed; its own screen shows the problem.
      Effect.orElseSucceed(() => ({ words: unreadable, title: unreadable }))
    )
  }
}

const add = (known: Known, { delta, events, revision }: RunRecord): Known =>
  events.reduce(count, { ...known, revision, costUsd: addCost(known.costUsd, delta.spent?.costUsd) })

const count = (known: Known, event: PhaseEvent): Known => {
  switch (event.type) {
    case "run_started": {
      const asked = event.messages.at(-1)
      return {
        ...known,
        words: wordsOf(asked).slice(0, length),
        title: titleOf(event.agent, asked).slice(0, length)
      }
    }
    case "turn_prepared":
      return { ...known, costUsd: addCost(known.costUsd, event.spent?.costUsd) }
    case "model_completed":
      return {
        ...known,
        costUsd: addCost(known.costUsd, event.costUsd),
        tokens:
          event.usage === null ? known.tokens : (known.tokens ?? 0) + event.usage.inputTokens + event.usage.outputTokens
      }
    case "tool_call_completed":
      return {
        ...known,
        errors: known.errors + (event.result.error === undefined ? 0 : 1),
        costUsd: addCost(known.costUsd, event.spent?.costUsd)
      }
    case "run_failed":
      return { ...known, errors: known.errors + 1 }
    default:
      return known
  }
}
