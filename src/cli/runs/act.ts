/**
 * Changes stored runs: answers their questions, resumes, forks and replays them.
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
import * as CliAgent from "../cliAgent.ts"
import type { Agent } from "../commands/flags.ts"
import type { AnswerFlags, CancelFlags, ResumeFlags } from "../commands/runsCommand.ts"
import { CommandFailed, asFailure, usage } from "../exit.ts"
import { follow, type Form } from "../followRun.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import { notFound } from "./showRuns.ts"

/** A run of a store. */
export interface Target {
  readonly store: string
  readonly id: string
  /** The revision that was looked at; another one fails. */
  readonly revision?: number | undefined
}

const at = ({ revision }: Target) => (revision === undefined ? {} : { revision })

const headOf = Effect.fnUntraced(function* (id: string) {
  const head = yield* RunStore.use((runs) => runs.head(id))
  return Option.isSome(head) ? head.value : yield* notFound(id)
})

/** Records answers. Nothing runs: a worker continues the run, or `resume`. */
export const answer = Effect.fnUntraced(function* (approved: boolean, decision: AnswerFlags) {
  const { by, id, reason, revision } = decision
  const screen = yield* Screen
  const input = decision.input === undefined ? {} : { input: yield* inputOf(decision.input) }
  const store = yield* Store.openExisting(decision.store)
  yield* Effect.gen(function* () {
    yield* Effect.catchTag(storedAt(yield* RunStore, id, revision), "RunNotFound", () => notFound(id))
    const questions = yield* Session.questions(id)
    const calls = decision.calls.length > 0 ? new Set(decision.calls) : questions.map(({ callId }) => callId)
    const answers = Array.from(calls, (callId): Answer => ({
      callId,
      approved,
      by,
      ...(reason === undefined ? {} : { reason }),
      ...input
    }))
    if (answers.length === 0) return yield* usage(`the run ${Text.excerpt(id, 80)} asks nothing`)
    if ("input" in input && answers.length > 1) return yield* usage("--input needs the id of one call")
    yield* Kernel.answer(id, answers, { workerId: "cli", ...at(decision) })
    for (const { callId } of answers) {
      const name = questions.find((question) => question.callId === callId)?.name ?? ""
      screen.out(`${approved ? "approved" : "denied"}  ${Text.flat(callId)}  ${Text.flat(name)}\n`)
    }
    const left = questions.length - answers.length
    screen.progress(left > 0 ? `${left} more wait\n` : "a worker continues the run, or 'kernai runs resume'\n")
  }).pipe(Effect.mapError(asFailure), Effect.provide(store.runs))
})

// A skill takes an object, a protocol a text.
const Input = Schema.fromJsonString(Schema.Union([Schema.Record(Schema.String, Schema.Json), Schema.String]))

const inputOf = (text: string) =>
  Effect.mapError(Schema.decodeUnknownEffect(Input)(text), () =>
    usage("--input has to be a JSON object or a JSON text")
  )

/** Cancels a run and the runs below it. */
export const cancel = Effect.fnUntraced(function* ({ by, id, reason, ...options }: CancelFlags) {
  const screen = yield* Screen
  const store = yield* Store.openExisting(options.store)
  const calls = yield* Kernel.cancel(id, { by, reason, workerId: "cli" }).pipe(
    Effect.catchTag("RunNotFound", () => notFound(id)),
    Effect.andThen(Session.inFlight(id)),
    Effect.mapError(asFailure),
    Effect.provide(store.runs)
  )
  screen.out(`cancelled  ${Text.flat(id)}\n`)
  for (const { callId, kind, name } of calls) {
    screen.out(`! ${Text.flat(callId)}: ${Text.flat(name ?? kind)} was started, its end is unknown\n`)
  }
})

/** Resumes a run, and follows it to its end. */
export const resume = Effect.fnUntraced(function* (described: Agent, options: ResumeFlags & { readonly form: Form }) {
  const { id, inFlight, rewind } = options
  const store = yield* Store.openExisting(options.store)
  const { agent, kernel } = yield* CliAgent.make(described, store)
  return yield* Effect.gen(function* () {
    const head = yield* headOf(id)
    const missing = yield* CliAgent.missingSkill(described, id, options.revision)
    if (missing !== undefined) return yield* usage(CliAgent.missing(missing))
    const calls = inFlight === undefined ? [] : yield* Session.inFlight(id)
    const recover = Object.fromEntries(calls.map(({ callId }) => [callId, inFlight ?? "fail"] as const))
    const events = Kernel.resumeStream(agent(head.agent), id, { recover, rewind, workerId: "cli", ...at(options) })
    return yield* follow(events, { ...options, title: `resuming ${id} at revision ${head.revision}` })
  }).pipe(Effect.mapError(asFailure), Effect.provide(kernel))
})

/** Creates a run from a revision of another, and prints its id. */
export const fork = Effect.fnUntraced(function* (options: Target) {
  const { id, revision } = options
  const screen = yield* Screen
  const store = yield* Store.openExisting(options.store)
  const forkId = yield* Effect.gen(function* () {
    const head = yield* headOf(id)
    if (revision !== undefined && (revision < 1 || revision > head.revision)) {
      return yield* usage(`--revision is a number from 1 to ${head.revision}, the revision of the run`)
    }
    return yield* Kernel.fork(id, at(options))
  }).pipe(Effect.mapError(asFailure), Effect.provide(store.runs))
  screen.out(`${Text.flat(forkId)}\n`)
})

/** Replays a stored run: no model is asked, and no skill runs. */
export const replay = Effect.fnUntraced(function* (described: Agent, options: Target) {
  const { id } = options
  const screen = yield* Screen
  const store = yield* Store.openExisting(options.store)
  const stored = RunStore.use((runs) => runs.load(id)).pipe(Effect.mapError(asFailure), Effect.provide(store.runs))
  const state = Option.getOrUndefined(yield* stored)
  if (state === undefined) return yield* notFound(id)
  // Recorded as `<provider>/<id>`; the agent has the id.
  const model = [...state.turns, state.currentTurn].find((turn) => turn?.model !== undefined)?.model ?? "replay"
  const source = { _tag: "Unused", id: model.slice(model.indexOf("/") + 1) } as const
  const { agent, kernel } = yield* CliAgent.make({ ...described, source }, store)
  const { events, lives, runs } = yield* Replay.run(agent(state.agent), id).pipe(
    Effect.mapError((error) => {
      const failure = asFailure(error)
      if (error._tag !== "ReplayDiverged") return failure
      const hint = "; was it run with other flags, such as --system or --skills-from?"
      return new CommandFailed({ ...failure, reason: `${failure.reason}${hint}` })
    }),
    Effect.provide(kernel)
  )
  const processes = lives === 1 ? "one process" : `${lives} processes`
  screen.out(`the same again: events ${events.length}, runs ${runs}, in ${processes}\n`)
})
