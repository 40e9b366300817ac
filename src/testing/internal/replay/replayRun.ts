/**
 * Replays a recorded tree of runs, without asking a model and without running a skill.
 *
 * The kernel is the real one, on a store that compares every record with the recording; models and calls return their
 * recorded results. Every recorded process becomes a simulated process, cut off at the same place. Time is that of the
 * recording. A fork is replayed from the revision at which it left its origin.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { CallResult } from "../../../Call.ts"
import type { ReplayDiverged, ResumeError, StoreError } from "../../../KernelError.ts"
import {
  ContextWindowExceeded,
  ExtensionFailed,
  MiddlewareTermination,
  ProviderError,
  RunNotFound
} from "../../../KernelError.ts"
import type { Message } from "../../../Message.ts"
import type { Middleware, ModelCall, ToolEffect } from "../../../Middleware.ts"
import { type PromptPipelineShape, type Recorded, simple, summaryIn } from "../../../PromptPipeline.ts"
import type { PhaseEvent, RunEvent } from "../../../RunEvent.ts"
import type { ErrorInfo, RunRecord, RunState } from "../../../RunState.ts"
import { advance } from "../../../RunState.ts"
import * as RunStore from "../../../RunStore.ts"
import * as Simulation from "../../../Simulation.ts"
import type { StreamPart } from "../../../StreamPart.ts"
import { drive, type Machine, World } from "./virtualProcess.ts"
import { stored, treeOf } from "../../../store-kit/StoredRuns.ts"
import type { Recovery } from "../../../RunOptions.ts"
import { isRest } from "../../../RunEvent.ts"
import { endOf, startOf } from "./callEvents.ts"
import { partsOf, split } from "./recordedParts.ts"
import { Tape } from "./recording.ts"

/**
 * A finished replay: its events in order, and the state at the end of the recording.
 *
 * @category models
 * @since 0.1.0
 */
export interface Replayed {
  /** For a fork, the events after the copied ones. */
  readonly events: ReadonlyArray<RunEvent>
  readonly state: RunState
  /** Number of runs in the tree. */
  readonly runs: number
  /** Number of processes that ran the tree. */
  readonly lives: number
}

/** Returns the name of the provider that replied first, for an agent whose model string names none. */
export const providerOf = (records: ReadonlyArray<RunRecord>): string => {
  for (const { events } of records) {
    for (const event of events) if (event.type === "model_completed") return split(event.model)[0]
  }
  return "replay"
}

/**
 * Replays a recording to its end, or to the first difference. If the parts of a reply were recorded, they are emitted
 * one by one.
 */
export const replay = Effect.fnUntraced(function* (
  process: MakeProcess,
  root: string,
  records: ReadonlyArray<RunRecord>,
  heard: ReadonlyArray<RunEvent>
): Effect.fn.Return<Replayed, ReplayDiverged | RunNotFound | StoreError> {
  const tape = new Tape(root, records)
  if (tape.recordsOf(root).length === 0) return yield* new RunNotFound({ runId: root })
  const context = yield* Effect.context<never>()
  const store = yield* RunStore.makeMemory
  const events: Array<RunEvent> = []
  const world = new World()
  for (const record of tape.copied) yield* append(store, record)
  for (const life of tape.lives) {
    for (const record of tape.asides()) yield* append(store, record)
    tape.life = life
    const own = tape.ofLife()
    if (own.every((record) => record.op === "resume")) {
      // Records made without running: answers of a person, or a resume that was cut off at once.
      for (const record of own) {
        tape.skip(record)
        yield* append(store, record)
      }
      continue
    }
    const machine = world.boot(life)
    const before = Option.getOrUndefined(yield* store.load(root))
    const started = process(surroundings(tape, store, machine, events, repliesOf(heard), before))
    const fiber = machine.start(yield* begun(started, tape, store, root), context)
    yield* drive(world, () => tape.fault !== undefined || tape.isOver() || fiber.pollUnsafe() !== undefined)
    if (!tape.isOver() && tape.fault === undefined) {
      tape.diverge(root, undefined, fiber.pollUnsafe() === undefined ? "nothing more" : "the end of the run")
    }
    machine.kill()
    if (tape.fault !== undefined) return yield* tape.fault
  }
  const state = yield* stored(store, root)
  const runs = new Set(records.map((record) => record.runId)).size
  return { events, state, runs, lives: tape.lives.length }
})

type MakeProcess = (surroundings: Simulation.Surroundings) => Simulation.Process

/** Starts a recorded process in the way it started. */
const begun = Effect.fnUntraced(function* (
  process: Simulation.Process,
  tape: Tape,
  store: RunStore.RunStoreShape,
  root: string
): Effect.fn.Return<Effect.Effect<unknown, ResumeError>, RunNotFound | StoreError> {
  const own = tape.ofLife()
  const first = own.find((record) => record.runId === root)
  const event = first?.events[0]
  if (event?.type === "run_started") {
    const { caller, context, history, messages, runId } = event
    const input = messages.at(-1)?.content ?? []
    return process.start({ runId, history: messages.slice(0, history), input, context, caller })
  }
  const state = yield* stored(store, root)
  const replay: { [id: string]: Recovery } = {}
  // A refused resume names the calls without a decision. The decisions of other resumes are not recorded and may not be
  // needed.
  const open = event?.type === "run_failed" ? event.error.fields?.["callIds"] : undefined
  for (const { currentTurn } of yield* treeOf(store, state)) {
    for (const { callId } of currentTurn?.inFlight ?? []) {
      replay[callId] = Array.isArray(open) && open.includes(callId) ? "fail" : "retry"
    }
  }
  for (const { delta } of own) {
    for (const id of delta.retried ?? []) replay[id] = "retry"
    for (const result of delta.resolved ?? []) replay[result.callId] = { resolve: known(result) }
  }
  const delta = first?.op === "resume" ? first.delta : {}
  return process.resume(state, {
    recover: replay,
    ...(delta.context === undefined ? {} : { context: delta.context }),
    ...(delta.answers === undefined ? {} : { answers: delta.answers }),
    ...(delta.rewind === undefined ? {} : { rewind: delta.rewind })
  })
})

const known = ({ error, output = [], value }: CallResult): Exclude<Recovery, string>["resolve"] =>
  error !== undefined ? { error } : value === undefined ? { output } : { output, value }

/** Stores a record after the stored ones, whatever revision its run assumes. */
const append = (store: RunStore.RunStoreShape, record: RunRecord): Effect.Effect<void, StoreError> => {
  const appended = Effect.flatMap(store.load(record.runId), (state) => {
    const before = Option.getOrUndefined(state)
    const next = before === undefined ? record : { ...record, revision: before.revision + 1 }
    return store.append([next], advance(before, next))
  })
  // The store belongs to the replay alone.
  return Effect.catchTag(appended, ["RunExists", "ConcurrentAppendError"], Effect.die)
}

// ---------------------------------------------------------------- surroundings

/** The surroundings of a replayed process, cut off from the outside. */
const surroundings = (
  tape: Tape,
  store: RunStore.RunStoreShape,
  machine: Machine,
  events: Array<RunEvent>,
  replies: Replies,
  before: RunState | undefined
): Simulation.Surroundings => {
  // Runs that passed the end of their process. Their further records were never stored, and are not published.
  const beyond = new Set<string>()
  const held = (record: RunRecord) => {
    const play = Effect.suspend(() => {
      const plays = tape.plays(record)
      if (tape.fault !== undefined) return Effect.never
      if (!plays) {
        beyond.add(record.runId)
        return Effect.void
      }
      machine.world.now = tape.timeOf(record.runId) ?? machine.world.now
      return Effect.orDie(append(store, record))
    })
    const ends = record.events.some(isRest)
    return Effect.suspend(() => inTurn(machine, ends ? tape.placeOfRun(record.runId) : undefined, play))
  }
  // A task that had already ended reports its end again without storing anything.
  const load = (runId: string) =>
    Effect.flatMap(store.load(runId), (state) => {
      const isOver = Option.isSome(state) && state.value.status.type === "completed"
      return inTurn(machine, isOver ? tape.placeOfRun(runId) : undefined, Effect.succeed(state))
    })
  const watched: RunStore.RunStoreShape = {
    ...store,
    append: (records) => Effect.forEach(records, held, { discard: true }),
    load,
    cancelled: () => Effect.never
  }
  const publish = (event: RunEvent) => {
    if (!beyond.has(event.runId)) events.push(event)
  }
  return {
    store: watched,
    workerId: tape.life,
    clock: machine.clock,
    middleware: [played(tape, machine, replies, publish)],
    pipeline: (own) => (own === simple ? simple : remembering(tape, own)),
    parts: replies.size > 0,
    steering: () => saidNext(tape),
    awaited: (runId) => (tape.nextTurn(runId)?.ended ?? []).map(({ callId }) => callId),
    before,
    publish
  }
}

/** Gives the pipeline the recorded parts of the prompt, so that no memory or model is asked. */
const remembering = (tape: Tape, pipeline: PromptPipelineShape): PromptPipelineShape => ({
  build: (context) => {
    const record = tape.next(context.state.runId)
    const event = record?.events[0]
    // The recording does not hold the text that made this prompt too long.
    const tooLong = event?.type === "run_failed" ? decodeTooLong(wire(event.error)) : Option.none()
    return Option.isSome(tooLong)
      ? Effect.fail(tooLong.value)
      : pipeline.build({ ...context, recorded: recordedIn(record) })
  }
})

const decodeTooLong = Schema.decodeUnknownOption(ContextWindowExceeded)

const wire = ({ fields, tag }: ErrorInfo) => ({ _tag: tag, ...fields })

const recordedIn = (record: RunRecord | undefined): Recorded => {
  const event = record?.events[0]
  if (event?.type !== "turn_prepared") return { summary: { text: "" } }
  const { prompt, spent } = event
  const text = summaryIn(prompt.append)
  return {
    ...(prompt.system === undefined ? {} : { system: prompt.system }),
    summary: spent === undefined ? { text } : { text, spent }
  }
}

/** Returns the messages that were sent to the run before its next turn. */
const saidNext = (tape: Tape): ReadonlyArray<Message> => tape.nextTurn(tape.root)?.steering ?? []

/** Runs an effect at its recorded position, once nothing else can continue: others may still be launched before it. */
const inTurn = <A, E>(machine: Machine, place: number | undefined, happens: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  place === undefined ? happens : Effect.andThen(machine.giveWay(place), happens)

/** Returns recorded replies and results. A call that never ended does not end now. */
const played = (tape: Tape, machine: Machine, replies: Replies, publish: (event: RunEvent) => void): Middleware => ({
  callModel: (call, next) =>
    Stream.suspend(() => {
      const event = tape.next(call.runId)?.events[0]
      if (isProgrammed(call, event)) return next(call)
      if (event?.type === "run_failed") return Stream.fail(failureOf(event.error))
      if (event?.type !== "model_completed") return Stream.never
      const [name, id] = split(event.model)
      const parts = replies.get(replyKey(event.runId, event.step)) ?? partsOf(event)
      const provider = { name, stream: () => Stream.fromIterable(parts) }
      return next({ ...call, provider, request: { ...call.request, model: { ...call.request.model, id } } })
    }),
  callTool: ({ call, depth, rootRunId, runId, step }) => {
    const taskId = tape.recordsOf(runId)[0]?.events[0]?.taskId
    const at = () => ({ call, scope: { runId, rootRunId, step, depth, taskId, at: machine.world.now } })
    const ended = Effect.suspend((): ToolEffect => {
      const result = tape.resultOf(runId, step, call)
      if (result !== undefined) {
        endOf(at(), result).forEach(publish)
        return Effect.succeed(result)
      }
      const asks = tape.questionOf(runId, call)
      if (asks !== undefined) return Effect.succeed(Simulation.asking(call, asks))
      const event = tape.next(runId)?.events[0]
      if (event?.type === "run_failed" && event.error.tag === "ExtensionFailed") {
        return Effect.fail(new ExtensionFailed({ extension: "callTool", detail: "", ...texts(event.error.fields) }))
      }
      if (event?.type === "run_completed" && event.reason === "guardrail") {
        return Effect.fail(new MiddlewareTermination({ reason: "", ...texts(event.metadata) }))
      }
      return Effect.never
    })
    return Effect.suspend(() => {
      startOf(at(), tape.resultOf(runId, step, call)).forEach(publish)
      return inTurn(machine, tape.placeOfCall(runId, step, call.callId), ended)
    })
  }
})

/** Returns whether a program replied, and still does. It runs anew on the recorded results, since it never guesses. */
const isProgrammed = ({ provider }: ModelCall, event: PhaseEvent | undefined): boolean =>
  provider.name === "program" &&
  (event?.type === "model_completed"
    ? split(event.model)[0] === provider.name
    : event?.type === "run_failed" && event.error.tag.startsWith("Program"))

const texts = (fields: unknown): { readonly [key: string]: string } =>
  Object.fromEntries(
    Object.entries(fields ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === "string")
  )

/** The errors of recorded model calls. */
const ModelFailure = Schema.Union([ProviderError, ExtensionFailed, MiddlewareTermination])

const decodeFailure = Schema.decodeUnknownOption(ModelFailure)

const failureOf = (error: ErrorInfo): typeof ModelFailure.Type =>
  Option.getOrElse(
    decodeFailure(wire(error)),
    () => new ProviderError({ provider: "replay", reason: "unknown", detail: error.message })
  )

/** The parts of complete replies, by run and step. */
type Replies = ReadonlyMap<string, ReadonlyArray<StreamPart>>

const replyKey = (runId: string, step: number): string => JSON.stringify([runId, step])

const repliesOf = (heard: ReadonlyArray<RunEvent>): Replies => {
  const replies = new Map<string, Array<StreamPart>>()
  const whole = new Map<string, ReadonlyArray<StreamPart>>()
  let attempt = ""
  for (const event of heard) {
    if (event.type !== "stream_part") continue
    const key = replyKey(event.runId, event.step)
    // A later attempt replaces an earlier one.
    const parts = attempt === `${key} ${event.attempt}` ? (replies.get(key) ?? []) : []
    attempt = `${key} ${event.attempt}`
    parts.push(event.part)
    replies.set(key, parts)
    if (event.part.type === "finish") whole.set(key, parts)
  }
  return whole
}
