/**
 * Moves stored runs on: answers their questions, takes them up, parts them, and plays them again.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { storedAt } from "../../internal/store/stored.ts"
import * as Kernel from "../../Kernel.ts"
import * as Replay from "../../Replay.ts"
import type { Answer } from "../../RunState.ts"
import { RunStore } from "../../RunStore.ts"
import * as Session from "../chat/chatSession.ts"
import { CommandFailed, usage } from "../exit.ts"
import { follow, type Options as FollowOptions } from "../followRun.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import * as Actor from "./actor.ts"
import { unknown } from "./showRuns.ts"

/** Which run of which store. */
export interface Target {
  readonly store: string
  readonly runId: string
}

// ---------------------------------------------------------------- answers

/** What a person decided. */
export interface Decision extends Target {
  /** The revision of the run that was looked at. */
  readonly revision: number | undefined
  readonly approved: boolean
  /** Ids of calls; none: all that wait. */
  readonly calls: ReadonlyArray<string>
  readonly by: string
  readonly reason?: string | undefined
  /** JSON text: the arguments to run with instead. */
  readonly input?: string | undefined
}

/** Records answers and runs nothing: a worker, or `runs resume`, goes on (DR-22). */
export const answer = Effect.fnUntraced(function* (decision: Decision) {
  const { approved, by, reason, revision, runId } = decision
  const screen = yield* Screen
  const input = decision.input === undefined ? undefined : yield* decodeInput(decision.input)
  const store = yield* Store.open(decision.store, { exists: true })
  yield* Effect.gen(function* () {
    yield* Effect.catchTag(storedAt(yield* RunStore, runId, revision), "RunNotFound", () => unknown(runId))
    const open = yield* Session.questions(runId)
    const calls = decision.calls.length === 0 ? open.map(({ callId }) => callId) : new Set(decision.calls)
    const answers = Array.from(calls, (callId): Answer => ({
      callId,
      approved,
      by,
      ...(reason === undefined ? {} : { reason }),
      ...(input === undefined ? {} : { input: input.value })
    }))
    if (answers.length === 0) return yield* usage(`the run ${Text.excerpt(runId, 80)} waits for no answer`)
    if (input !== undefined && answers.length > 1) return yield* usage("--input is for one call: name it")
    yield* Kernel.answer(runId, answers, { workerId: "cli", ...at(revision) })
    for (const { callId } of answers) {
      const name = open.find((question) => question.callId === callId)?.name ?? ""
      screen.out(`${approved ? "approved" : "denied"}  ${Text.flat(callId)}  ${Text.flat(name)}\n`)
    }
    const left = open.length - answers.length
    screen.progress(left === 0 ? "a worker goes on with it, or 'kernai runs resume'\n" : `${left} more wait\n`)
  }).pipe(Effect.mapError(Actor.failed), Effect.provide(store))
})

const headOf = Effect.fnUntraced(function* (runId: string) {
  const head = yield* RunStore.use((runs) => runs.head(runId))
  return Option.isSome(head) ? head.value : yield* unknown(runId)
})

const at = (revision: number | undefined) => (revision === undefined ? {} : { revision })

// A skill takes an object, a protocol the text of its block: anything else is a slip.
const Arguments = Schema.fromJsonString(Schema.Union([Schema.Record(Schema.String, Schema.Json), Schema.String]))

const decodeInput = (text: string) =>
  Effect.mapBoth(Schema.decodeUnknownEffect(Arguments)(text), {
    onFailure: () => usage("--input is no JSON object and no JSON text"),
    onSuccess: (value) => ({ value })
  })

// ---------------------------------------------------------------- resume

/** How a run is taken up. */
export interface Resuming extends Target, Pick<FollowOptions, "form" | "colors"> {
  readonly actor: Actor.Actor
  /** What becomes of calls of which nobody knows whether they ran. */
  readonly inFlight?: Kernel.Recovery | undefined
  readonly rewind: boolean
  /** The revision of the run that was looked at. */
  readonly revision: number | undefined
}

/** Takes a run up where it stands and follows it to its end. */
export const resume = Effect.fnUntraced(function* (options: Resuming) {
  const { inFlight, runId } = options
  const store = yield* Store.open(options.store, { exists: true })
  const { agent, ground } = yield* Actor.make(options.actor, store, options.store)
  return yield* Effect.gen(function* () {
    const head = yield* headOf(runId)
    const missing = yield* Actor.missing(options.actor, runId, options.revision)
    if (missing !== undefined) return yield* usage(Actor.notHere(missing))
    const calls = inFlight === undefined ? [] : yield* Session.inFlight(runId)
    const replay = Object.fromEntries(calls.map(({ callId }) => [callId, inFlight ?? "fail"] as const))
    const how = { replay, rewind: options.rewind, workerId: "cli", ...at(options.revision) }
    return yield* follow(Kernel.resumeStream(agent(head.agent), runId, how), {
      ...options,
      title: `going on with ${runId} at revision ${head.revision}`
    })
  }).pipe(
    Effect.catchTag("StoreError", (error) => Effect.fail(Actor.failed(error))),
    Effect.provide(ground)
  )
})

// ---------------------------------------------------------------- fork and replay

/** Makes a new run from a commit of another, and prints its id. */
export const fork = Effect.fnUntraced(function* (options: Target & { readonly revision: number | undefined }) {
  const screen = yield* Screen
  const { revision, runId } = options
  const store = yield* Store.open(options.store, { exists: true })
  const id = yield* Effect.gen(function* () {
    const head = yield* headOf(runId)
    if (revision !== undefined && (revision < 1 || revision > head.revision)) {
      return yield* usage(`--revision is a number from 1 to ${head.revision}, where the run is`)
    }
    return yield* Kernel.fork(runId, at(revision))
  }).pipe(Effect.mapError(Actor.failed), Effect.provide(store))
  screen.out(`${Text.flat(id)}\n`)
})

/** Runs a stored run again without a model and without entering a skill. */
export const replay = Effect.fnUntraced(function* (options: Target & { readonly actor: Omit<Actor.Actor, "speaker"> }) {
  const { runId } = options
  const screen = yield* Screen
  const store = yield* Store.open(options.store, { exists: true })
  const state = Option.getOrUndefined(
    yield* RunStore.use((runs) => runs.load(runId)).pipe(Effect.mapError(Actor.failed), Effect.provide(store))
  )
  if (state === undefined) return yield* unknown(runId)
  const model = [...state.turns, state.currentTurn].find((turn) => turn?.model !== undefined)?.model ?? "replay"
  // Recorded is `<provider>/<id>`; the agent had the id.
  const nobody = model.slice(model.indexOf("/") + 1)
  const { agent, ground } = yield* Actor.make({ ...options.actor, speaker: { nobody } }, store, options.store)
  const { events, lives, runs } = yield* Replay.run(agent(state.agent), runId).pipe(
    Effect.mapError((error) => {
      const failed = Actor.failed(error)
      // The store knows the agent by its name alone: how it was made is told again.
      return error._tag === "ReplayDiverged"
        ? new CommandFailed({
            code: failed.code,
            reason: `${failed.reason}; was it run with other flags, such as --system or --skills-from?`,
            tag: error._tag
          })
        : failed
    }),
    Effect.provide(ground)
  )
  const lived = lives === 1 ? "one process" : `${lives} processes`
  screen.out(`the same again: events ${events.length}, runs ${runs}, in ${lived}\n`)
})
