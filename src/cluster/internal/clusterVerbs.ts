/** The operations of a kernel whose runs are run by a cluster. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { Agent, InputOf } from "../../Agent.ts"
import { randomId } from "../../kit/randomId.ts"
import { follow } from "../../store-kit/Follow.ts"
import { stored, storedFor } from "../../store-kit/StoredRuns.ts"
import type { KernelShape, Needs } from "../../Kernel.ts"
import type { ResumeError, RunError } from "../../KernelError.ts"
import { AgentConfigInvalid, QueueFull, StoreError } from "../../KernelError.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Input, ResumeOptions, RunOptions } from "../../RunOptions.ts"
import type { RunResult } from "../../RunState.ts"
import type { RunHead, RunStoreShape } from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import { Drive } from "../RunEntity.ts"
import type { Messenger } from "./messenger.ts"
import { failRefused, failureOf } from "./runEnd.ts"
import { resumption } from "./wire.ts"

/** A client of the cluster: a kernel that stores and reads runs, and the messages to their runners. */
export interface Client {
  readonly kernel: KernelShape
  /** The store of this process. */
  readonly store: RunStoreShape
  /** The store whose followers also receive live events of other processes. */
  readonly shared: RunStoreShape
  readonly messenger: Messenger
}

/** Options of a new run, whose context has not been encoded. */
type Starting = Omit<RunOptions, "context"> & { readonly context?: unknown }

type AnyAgent<Output, S extends AnySkill<unknown>, R, I = unknown> = Agent<Output, S, R, unknown, I>

/** Creates the operations of a kernel. Leaving a run or its stream does not stop the run. */
export const make = (client: Client): KernelShape => {
  const { kernel, messenger } = client
  const created = <Output, S extends AnySkill<unknown>, R, I>(
    agent: AnyAgent<Output, S, R, I>,
    input: Input | InputOf<NoInfer<I>>,
    options: Starting
  ) => Effect.andThen(travels(options), kernel.submit<Output, S, R, unknown, I>(agent, input, options))
  const sent = (runId: string) => messenger.begin(new Drive({ runId, revision: 1 }))
  const begin = <Output, S extends AnySkill<unknown>, R, I>(
    agent: AnyAgent<Output, S, R, I>,
    input: Input | InputOf<NoInfer<I>>,
    options: Starting
  ) => Effect.tap(created(agent, input, options), sent)
  return {
    submit: (agent, input, ...[options = {}]) => begin(agent, input, options),
    run: (agent, input, ...[options = {}]) =>
      Effect.flatMap(ifRoom(created(agent, input, options)), (runId) =>
        Effect.andThen(drive(client, runId), resultOf(client, agent, runId))
      ),
    stream: (agent, input, ...[options = {}]) =>
      typed(
        agent,
        Stream.unwrap(
          Effect.map(ifRoom(begin(agent, input, options)), (runId) =>
            concluded(eventsOf(client, runId), runId, resultOf(client, agent, runId))
          )
        ).pipe(Stream.catchTags(atRest))
      ),
    resume: (agent, runId, options = {}) =>
      Effect.andThen(resume(client, agent, runId, options), resumedOf(client, agent, runId)),
    resumeStream: (agent, runId, options = {}) => typed(agent, resumeStream(client, agent, runId, options)),
    parts: kernel.parts
  }
}

/** Fails for an option that cannot reach the runner. */
const travels = (options: Pick<ResumeOptions, (typeof here)[number]>): Effect.Effect<void, AgentConfigInvalid> => {
  const fixed = here.find((name) => options[name] !== undefined)
  return fixed === undefined
    ? Effect.void
    : Effect.fail(
        new AgentConfigInvalid({
          path: `options.${fixed}`,
          reason: "another process runs the run, and this option does not reach it; set it on the runners"
        })
      )
}

const here = [
  "allowedSkills",
  "hooks",
  "middleware",
  "maxSteps",
  "parts",
  "address",
  "signal",
  "steering",
  "onTaskComplete",
  "as"
] as const

// ---------------------------------------------------------------- starting

/** Sends a new run to its runner, and waits until it is at rest. */
const drive = (client: Client, runId: string): Effect.Effect<void> => {
  const message = new Drive({ runId, revision: 1 })
  // A lost message is found by polling, and another runner continues the run of a stopped one.
  const asked = Effect.catchCause(client.messenger.ask(message), () => Effect.never)
  return toRest(client, message, asked)
}

/**
 * Asks for a run to continue from a revision, and waits until it is at rest. Polls the head of the run to notice a dead
 * runner or a lost reply.
 */
const toRest = <E>(
  { store }: Client,
  { revision, runId }: Pick<Drive, "revision" | "runId">,
  asked: Effect.Effect<unknown, E>
): Effect.Effect<void, E> => {
  const isAtRest = (after: number) =>
    store.head(runId).pipe(
      Effect.map(
        Option.match({
          onNone: () => true,
          onSome: (head) => head.revision > after && !underWay.has(head.status.type)
        })
      ),
      Effect.orElseSucceed(() => false)
    )
  const polled = (after: number) =>
    Effect.repeat(isAtRest(after), { until: (isAtRest) => isAtRest, schedule: Schedule.spaced("5 seconds") })
  const continued = Effect.raceFirst(asked, Effect.delay(polled(revision), "5 seconds"))
  // A runner also replies for a run that waits for a runner with its agent.
  return Effect.asVoid(Effect.andThen(continued, polled(0)))
}

const underWay: ReadonlySet<RunHead["status"]["type"]> = new Set(["queued", "running", "interrupted"])

const eventsOf = ({ shared }: Client, runId: string) =>
  Stream.catchTag(follow(shared, runId, {}), "RunNotFound", (error) => Stream.fail(lost(error.message)))

/** Emits the events of a run, with its result in the last one. Fails with the error of the run. */
const concluded = <E, E2, R>(
  events: Stream.Stream<RunEvent, E>,
  runId: string,
  result: Effect.Effect<RunResult<unknown>, E2, R>
) => {
  const withResult = (event: RunEvent) =>
    event.type === "run_completed" && event.runId === runId
      ? Effect.map(result, (result): RunEvent => ({ ...event, result }))
      : Effect.succeed(event)
  return Stream.concat(Stream.mapEffect(events, withResult), Stream.fromEffectDrain(result))
}

/** A pause or a cancellation ends a stream without a failure. */
const atRest = { RunPaused: () => Stream.empty, RunCancelled: () => Stream.empty }

/** Returns the result of a run at rest, or fails with its error. */
const resultOf = <Output, S extends AnySkill<unknown>, R>(
  client: Client,
  agent: AnyAgent<Output, S, R>,
  runId: string
): Effect.Effect<RunResult<Output>, RunError, Needs<R>> =>
  Effect.catchTags(resumedOf(client, agent, runId), {
    RunNotFound: (error) => Effect.fail(lost(error.message)),
    OutputInvalid: (error) => Effect.fail(lost(error.message)),
    AgentMismatch: Effect.die,
    QuestionNotFound: Effect.die,
    AnswerRefused: Effect.die,
    RewindNotAllowed: Effect.die
  })

/** Fails like a store without room if too many runs of a caller wait. Only `submit` fails with `QueueFull`. */
const ifRoom = <A, E, R>(submitted: Effect.Effect<A, E | QueueFull, R>) =>
  Effect.catchIf(
    submitted,
    (error): error is Extract<E | QueueFull, QueueFull> => error instanceof QueueFull,
    ({ message }) => Effect.fail(new StoreError({ operation: "submit", reason: "unavailable", detail: message }))
  )

const lost = (detail: string): StoreError => new StoreError({ operation: "read a result", reason: "invalid", detail })

/** Returns the result of a resumed run. The kernel of this process reads a completed run, which stores nothing. */
const resumedOf = <Output, S extends AnySkill<unknown>, R>(
  { kernel, store }: Client,
  agent: AnyAgent<Output, S, R>,
  runId: string
): Effect.Effect<RunResult<Output>, ResumeError, Needs<R>> =>
  Effect.flatMap(store.head(runId), (head) =>
    Option.getOrUndefined(head)?.status.type === "completed"
      ? kernel.resume(agent, runId)
      : Effect.flatMap(stored(store, runId), (state) => failureOf(state) ?? kernel.resume(agent, runId))
  )

// ---------------------------------------------------------------- resuming

/** Sends a resume, and waits until the run is at rest. */
const resume = Effect.fnUntraced(function* (
  client: Client,
  agent: Pick<Agent, "name" | "aliases">,
  runId: string,
  options: ResumeOptions
) {
  yield* travels(options)
  const { revision } = yield* storedFor(client.store, runId, agent, options)
  const asked = Effect.gen(function* () {
    const nonce = randomId(yield* Random.Random)
    const { refused } = yield* client.messenger.ask(new Drive({ runId, revision, how: resumption(options), nonce }))
    if (refused !== undefined) return yield* failRefused(refused)
  })
  yield* toRest(client, { runId, revision }, untilReplied(asked))
})

/**
 * Asks again after each reply of a stopped runner that it was interrupted. A run that has continued since then is not
 * resumed twice, because a message for an earlier revision changes nothing.
 */
const untilReplied = <A, E>(asked: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.catchCauseIf(asked, Cause.hasInterruptsOnly, () => Effect.delay(untilReplied(asked), "1 second"))

/** Emits the events of a run from its resume until it is at rest. A completed run emits its end again. */
const resumeStream = <Output, S extends AnySkill<unknown>, R>(
  client: Client,
  agent: AnyAgent<Output, S, R>,
  runId: string,
  options: ResumeOptions
) =>
  Stream.unwrap(
    Effect.map(stored(client.store, runId), ({ revision, status }) => {
      const after = status.type === "completed" ? revision - 1 : revision
      const events = Stream.takeUntil(follow(client.shared, runId, { after, until: "end" }), isRestOf(runId))
      const resumed = Stream.fromEffectDrain(resume(client, agent, runId, options))
      const both = Stream.merge(events, resumed, { haltStrategy: "left" })
      return concluded(both, runId, resumedOf(client, agent, runId))
    })
  ).pipe(Stream.catchTags(atRest))

const isRestOf =
  (runId: string) =>
  ({ type, ...event }: RunEvent): boolean =>
    event.runId === runId && (type === "paused" || type === "run_failed" || type === "run_cancelled")

/** Gives events the types of the agent's skills and output schema, from which they are created. */
const typed = <Output, S extends AnySkill<unknown>, E, R>(
  _agent: Agent<Output, S, unknown, unknown>,
  events: Stream.Stream<RunEvent, E, R>
): Stream.Stream<RunEvent<Output, S>, E, R> => events as Stream.Stream<RunEvent<Output, S>, E, R>
