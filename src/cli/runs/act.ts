/**
 * Changes stored runs: answers their questions, cancels, resumes, forks and replays them.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { storedAt } from "../../store-kit/StoredRuns.ts"
import type { Call } from "../../Call.ts"
import * as Kernel from "../../Kernel.ts"
import * as Replay from "../../testing/Replay.ts"
import type { Answer, RunState } from "../../RunState.ts"
import { RunStore } from "../../RunStore.ts"
import * as Session from "../chat/chatSession.ts"
import * as CliAgent from "../cliAgent.ts"
import type {
  AnswerFlags,
  CancelFlags,
  ForkFlags,
  ReplayFlags,
  ResumeFlags,
  RetryFlags
} from "../commands/runsFlags.ts"
import { CommandFailed, asFailure, usage } from "../exit.ts"
import { follow, type Form } from "../followRun.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import { inStore, pick, type Target } from "./findRun.ts"

const at = (revision: number | undefined) => (revision === undefined ? {} : { revision })

/** Returns the state of a run by a shortened id. */
const stored = (target: Target): Effect.Effect<RunState, CommandFailed, Store.Files> =>
  inStore(target, (id) =>
    Effect.flatMap(
      RunStore.use((runs) => runs.load(id)),
      (state) => orMissing(state, id)
    )
  )

const orMissing = (state: Option.Option<RunState>, id: string) =>
  Option.match(state, {
    onNone: () => Effect.fail(usage(`there is no run ${Text.excerpt(id, 80)} in this store`)),
    onSome: (state) => Effect.succeed(state)
  })

/** Records answers without running anything. A worker or `resume` continues the run. */
export const answer = Effect.fnUntraced(function* (approved: boolean, decision: AnswerFlags) {
  const { by, reason, revision, role } = decision
  const screen = yield* Screen
  const input = decision.input === undefined ? {} : { input: yield* inputOf(decision.input) }
  const values = decision.values === undefined ? {} : { values: yield* valuesOf(decision.values) }
  const output = decision.output === undefined ? {} : { output: yield* outputOf(decision.output) }
  yield* inStore(decision, (id) =>
    Effect.gen(function* () {
      yield* storedAt(yield* RunStore, id, revision)
      const questions = yield* Session.questions(id)
      const asked = questions.map(({ callId }) => callId)
      if (asked.length === 0) return yield* usage(`the run ${Text.excerpt(id, 80)} has no open question`)
      const named = Effect.forEach(decision.calls, (call) => pick(call, asked, "call", "that waits in this run"))
      const calls = decision.calls.length > 0 ? new Set(yield* named) : asked
      const answers = Array.from(calls, (callId): Answer => ({
        callId,
        approved,
        by,
        ...(reason === undefined ? {} : { reason }),
        ...input,
        ...values,
        ...output
      }))
      if ("input" in input && answers.length > 1) return yield* usage("--input needs the id of one call")
      if ("values" in values && answers.length > 1) return yield* usage("--values needs the id of one call")
      if ("output" in output && answers.length > 1) return yield* usage("--output needs the id of one call")
      const caller = { id: by, ...(role.length === 0 ? {} : { roles: role }) }
      yield* Kernel.answer(id, answers, { caller, workerId: "cli", ...at(revision) })
      const left = questions.length - answers.length
      if (decision.json) return screen.out(`${Text.json({ runId: id, answers, left })}\n`)
      for (const { callId } of answers) {
        const name = questions.find((question) => question.callId === callId)?.name ?? ""
        screen.out(`${approved ? "approved" : "denied"}  ${Text.flat(callId)}  ${Text.flat(name)}\n`)
      }
      const next = yield* Store.command(["runs", left > 0 ? "show" : "resume", id], decision.store)
      screen.progress(left > 0 ? `${left} more wait: ${next}\n` : `a worker continues the run, or: ${next}\n`)
    })
  )
})

const Values = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json))

const valuesOf = (text: string) =>
  Effect.mapError(Schema.decodeUnknownEffect(Values)(text), () => usage("--values must be a JSON object"))

const outputOf = (text: string) =>
  Effect.mapError(Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Json))(text), () =>
    usage("--output must be JSON")
  )

// A skill takes an object, a protocol a text.
const Input = Schema.fromJsonString(Schema.Union([Schema.Record(Schema.String, Schema.Json), Schema.String]))

const inputOf = (text: string) =>
  Effect.mapError(Schema.decodeUnknownEffect(Input)(text), () => usage("--input must be a JSON object or a JSON text"))

/** Cancels a run and the runs below it. */
export const cancel = Effect.fnUntraced(function* ({ by, json, reason, ...target }: CancelFlags) {
  const screen = yield* Screen
  yield* inStore(target, (id) =>
    Effect.gen(function* () {
      const ended = yield* Kernel.cancel(id, { by, reason, workerId: "cli" })
      const inFlight = yield* Session.inFlight(id)
      if (json) return screen.out(`${Text.json({ runId: id, inFlight, ended })}\n`)
      screen.out(`cancelled  ${Text.flat(id)}\n${unknownEnds(inFlight)}`)
      if (ended.runs.length > 0) screen.progress(`ended: ${endedOf(ended)}\n`)
    })
  )
})

/** Lists what a cancellation ended. */
const endedOf = ({ calls, requests, runs, workers }: Kernel.Cancelled): string =>
  [
    Text.count(runs.length, "run"),
    ...(requests.length === 0 ? [] : [Text.count(requests.length, "request to a model", "requests to models")]),
    ...(calls.length === 0 ? [] : [`${Text.count(calls.length, "call")} in flight`]),
    ...workers.map((worker) => `the work of ${Text.flat(worker)}`)
  ].join(", ")

/** Offers a run at rest to workers again, and forgets its attempts. */
export const retry = Effect.fnUntraced(function* ({ json, revision, ...target }: RetryFlags) {
  const screen = yield* Screen
  yield* inStore(target, (id) =>
    Effect.gen(function* () {
      if (!(yield* Kernel.retry(id, { workerId: "cli", ...at(revision) }))) {
        return yield* usage(`the run ${Text.excerpt(id, 80)} has not failed, and no hook paused it`)
      }
      const inFlight = yield* Session.inFlight(id)
      if (json) return screen.out(`${Text.json({ runId: id, inFlight })}\n`)
      screen.out(`queued  ${Text.flat(id)}\n${unknownEnds(inFlight)}`)
      screen.progress(`a worker continues the run, or: ${yield* Store.command(["runs", "resume", id], target.store)}\n`)
    })
  )
})

const unknownEnds = (calls: ReadonlyArray<Call>): string =>
  calls
    .map(
      ({ callId, kind, name }) => `! ${Text.flat(callId)}: ${Text.flat(name ?? kind)} was started, its end is unknown\n`
    )
    .join("")

/** Resumes a run, and follows it to its end. Omitted settings are those of the run. */
export const resume = Effect.fnUntraced(function* (options: ResumeFlags & { readonly form: Form }) {
  const { as, inFlight, rewind, revision } = options
  const newer = yield* Settings.ofFlags(options)
  const { agent: name, context, revision: seen, runId: id } = yield* stored(options)
  const settings = Settings.over(Settings.ofRun({ context }), newer)
  yield* checkKnown({ agent: name, context }, settings)
  const { agent, kernel } = yield* CliAgent.make(settings, yield* Store.openExisting(options.store))
  // An agent file names its agent, which may be another than that of the run.
  const own = settings.agent === undefined ? agent(name) : agent()
  return yield* Effect.gen(function* () {
    const missing = yield* CliAgent.missingSkill(settings, own, id, revision)
    if (missing !== undefined) return yield* usage(CliAgent.missing(missing))
    const calls = inFlight === undefined ? [] : yield* Session.inFlight(id)
    const recover = Object.fromEntries(calls.map(({ callId }) => [callId, inFlight ?? "fail"] as const))
    const withPrograms = yield* CliAgent.programs(settings)
    const events = Kernel.resumeStream(withPrograms(own), id, {
      recover,
      rewind,
      as,
      context: Settings.contextOf(settings),
      workerId: "cli",
      ...at(revision)
    })
    return yield* follow(events, { ...options, title: `resuming ${id} at revision ${seen}` })
  }).pipe(Effect.mapError(asFailure), Effect.scoped, Effect.provide(kernel))
})

/** Fails for a run of a program whose agent no flag names: it would run under an agent that only has its name. */
const checkKnown = (run: Pick<RunState, "agent" | "context">, settings: Settings.Settings) =>
  CliAgent.isStandIn(run, settings) ? Effect.fail(usage(CliAgent.unnamed(run.agent))) : Effect.void

/** Creates a run from a revision of another, and prints its id. */
export const fork = Effect.fnUntraced(function* ({ json, revision, ...target }: ForkFlags) {
  const screen = yield* Screen
  yield* inStore(target, (id) =>
    Effect.gen(function* () {
      const state = yield* orMissing(yield* RunStore.use((runs) => runs.load(id)), id)
      if (revision !== undefined && (revision < 1 || revision > state.revision)) {
        return yield* usage(`--revision is a number from 1 to ${state.revision}, the revision of the run`)
      }
      const runId = yield* Kernel.fork(id, at(revision))
      screen.out(`${json ? Text.json({ runId }) : Text.flat(runId)}\n`)
      if (!json) screen.progress(`continue it: ${yield* Store.command(["runs", "resume", runId], target.store)}\n`)
    })
  )
})

/** Replays a stored run with its settings: no model is asked, and no skill runs. */
export const replay = Effect.fnUntraced(function* (options: ReplayFlags) {
  const screen = yield* Screen
  const newer = yield* Settings.ofFlags(options)
  const state = yield* stored(options)
  const { runId } = state
  // The recording has `<provider>/<id>`; the agent has the id only.
  const model = [...state.turns, state.currentTurn].find((turn) => turn?.model !== undefined)?.model ?? "replay"
  const unused = model.slice(model.indexOf("/") + 1)
  const settings = Settings.over(Settings.ofRun(state), newer)
  yield* checkKnown(state, settings)
  const { agent, kernel } = yield* CliAgent.make(settings, yield* Store.openExisting(options.store), { unused })
  const { events, lives, runs } = yield* CliAgent.programs(settings).pipe(
    Effect.flatMap((withPrograms) => Replay.run(withPrograms(agent(state.agent)), runId)),
    Effect.mapError((error) => {
      const failure = asFailure(error)
      if (error._tag !== "ReplayDiverged") return failure
      const hint = "; was it run with other flags, such as --system or --skills-from?"
      return new CommandFailed({ ...failure, reason: `${failure.reason}${hint}` })
    }),
    Effect.scoped,
    Effect.provide(kernel)
  )
  if (options.json) return screen.out(`${Text.json({ runId, same: true, events: events.length, runs, lives })}\n`)
  const facts = [Text.count(events.length, "event"), Text.count(runs, "run"), Text.count(lives, "process", "processes")]
  screen.out(`no difference: ${facts.join(", ")}\n`)
})
