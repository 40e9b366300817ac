/**
 * The listeners of a run's events: the stream of its host, the recorder and the bus.
 *
 * Recorder and bus come from the running fiber, or else from the layer of the kernel.
 */

import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { AgentId } from "../../Address.ts"
import type { Agent } from "../../Agent.ts"
import type { Content } from "../../Content.ts"
import { EventBus, agentIdOf } from "../../EventBus.ts"
import type { KernelError, RunCancelled, RunPaused } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { Media } from "../../Media.ts"
import { Recorder, type Sink as EventSink, guard } from "../../Recorder.ts"
import { Redaction, type Redactor } from "../../Redaction.ts"
import { type RunEvent, isStreamed } from "../../RunEvent.ts"
import type { Input } from "../../RunOptions.ts"
import type { AnySkill } from "../../Skill.ts"
import { perObject } from "../../kit/perObject.ts"
import { attempt, referenceOf, serviceOf } from "../../kit/foreignCode.ts"
import { deep } from "../../kit/redact.ts"
import * as Streams from "../../kit/streams.ts"
import type { Publish } from "../../store-kit/internal/liveTree.ts"

/** Receives the events of a run. */
export interface Sink {
  readonly publish: (event: RunEvent) => void
  /** Returns whether the buffer is full. */
  readonly isFull: () => boolean
  /** Returns whether the listener has worked through all events. */
  readonly isIdle: () => boolean
  readonly batch: <A>(body: () => A) => A
}

/** A sink for runs without a listener. */
export const silent: Sink = { publish: () => {}, isFull: () => false, isIdle: () => true, batch: (body) => body() }

export const listOf = (input: Input): ReadonlyArray<string | Media | Content> => (isList(input) ? input : [input])

/** Returns a run as a stream of its events. */
export const events = <Output, S extends AnySkill<unknown>, E extends KernelError, R>(
  _agent: Agent<Output, S, unknown, unknown>,
  start: (sink: Sink) => Effect.Effect<unknown, E, R>
): Stream.Stream<RunEvent<Output, S>, Exclude<E, Rest>, R> =>
  // The agent's skills and output schema determine the types of its events.
  Stream.unwrap(started(start)) as Stream.Stream<RunEvent<Output, S>, Exclude<E, Rest>, R>

/** Starts a run beside its consumer, and returns its events. */
const started = Effect.fnUntraced(function* <E extends KernelError, R>(
  start: (sink: Sink) => Effect.Effect<unknown, E, R>
) {
  const { liveEvents } = yield* Limits
  const mailbox = Streams.mailbox<RunEvent, Exclude<E, Rest>>({
    limit: liveEvents,
    keep: (event) => !isStreamed(event)
  })
  yield* Effect.forkScoped(
    Effect.onExit(start({ ...mailbox, publish: mailbox.offer }), (exit) =>
      Effect.sync(() => (Exit.isFailure(exit) && isFailure(exit.cause) ? mailbox.fail(exit.cause) : mailbox.end()))
    ),
    { startImmediately: true }
  )
  return mailbox.stream
})

/** Combines all listeners of a run. Each receives the same events in the same order. Undefined without any. */
export const publisher = (
  built: Context.Context<never>,
  current: Context.Context<never>,
  sink: Sink,
  toAddress: (agent: string) => AgentId
): Publish | undefined => {
  const recorder = referenceOf(built, current, Recorder)
  const bus = serviceOf(built, current, EventBus)
  const all: ReadonlyArray<Publish> = [
    ...(sink === silent ? [] : [sink.publish]),
    ...(recorder === undefined
      ? []
      : [guard(cleaned(recorder, soundRedactor(referenceOf(built, current, Redaction)))).record]),
    ...(bus === undefined ? [] : [toBus(bus, toAddress)])
  ]
  const [first, second] = all
  if (first === undefined) return undefined
  if (second === undefined) return first
  return (event, agent) => {
    for (const publish of all) publish(event, agent)
  }
}

/** Returns the addresses of a run's agents. The first agent has its own address, the others share its namespace. */
export const addresses =
  (first: string, own: AgentId = agentIdOf(first)) =>
  (agent: string): AgentId =>
    agent === first ? own : agentIdOf(agent, own.namespace)

/** Wraps a redactor so that it always returns a text. If it fails, the whole text is withheld. */
export const soundRedactor = (redactor: Redactor | undefined): Redactor | undefined =>
  redactor === undefined ? undefined : sound(redactor)

const sound = perObject((redactor: Redactor): Redactor => {
  const text = (given: string): string => {
    const clean: unknown = attempt(() => redactor.text(given), undefined)
    return typeof clean === "string" ? clean : "<redacted>"
  }
  return { text }
})

const isList = (input: Input): input is ReadonlyArray<string | Media | Content> =>
  attempt(() => Array.isArray(input), false)

/** Errors that are reported as events, so the stream ends without failing. */
type Rest = RunPaused | RunCancelled

const isRest = (error: KernelError): boolean => error._tag === "RunPaused" || error._tag === "RunCancelled"

const isFailure = <E extends KernelError>(cause: Cause.Cause<E>): cause is Cause.Cause<Exclude<E, Rest>> =>
  !cause.reasons.some((reason) => Cause.isFailReason(reason) && isRest(reason.error))

/** Publishes the events of each agent under its own address. A failing bus is disabled, like a failing recorder. */
const toBus = (bus: EventBus["Service"], toAddress: (agent: string) => AgentId): Publish => {
  let name: string | undefined
  let from: AgentId | undefined
  const { record } = guard({ record: (event: RunEvent) => bus.publish(event, from) })
  return (event, agent) => {
    if (agent !== name) {
      name = agent
      from = toAddress(agent)
    }
    record(event)
  }
}

/** Redacts the events of a sink, if there is a redactor. */
const cleaned = (sink: EventSink, redactor: Redactor | undefined): EventSink =>
  redactor === undefined ? sink : { record: (event) => sink.record(deep(event, redactor.text)) }
