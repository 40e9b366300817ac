/**
 * A conversation over many runs: each message of the user is one run (AC-24).
 *
 * What is said is kept in the `ChatHistory` around: the user's message before
 * the run, the run's own messages after it. A run that fails leaves the user's
 * message where it is, and making it again under the same `runId` adds nothing
 * twice. What one history is asked at once is answered one after the other. With
 * a `Memory` around, what fits the message is looked up and told, unless the
 * prompt pipeline is your own.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Agent } from "./Agent.ts"
import * as Histories from "./ChatHistory.ts"
import type { Content } from "./Content.ts"
import * as Contents from "./Content.ts"
import { newRunId } from "./internal/ground.ts"
import { listOf } from "./internal/host.ts"
import { partsOf } from "./internal/kernelParts.ts"
import { Kernel, type Input, type ResumeOptions, type RunOptions } from "./Kernel.ts"
import type { KernelError, StoreError } from "./KernelError.ts"
import type { Media } from "./Media.ts"
import { isMedia } from "./Media.ts"
import * as Memory from "./Memory.ts"
import type { Message } from "./Message.ts"
import * as Messages from "./Message.ts"
import * as PromptPipeline from "./PromptPipeline.ts"
import type { RunEvent } from "./RunEvent.ts"
import type { RunResult } from "./RunState.ts"
import type { AnySkill } from "./Skill.ts"

type ChatHistory = Histories.ChatHistory
type History = Histories.Shape

/**
 * How a message is answered. What was said before is the history's to tell.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChatOptions extends Omit<RunOptions, "history"> {
  /** The run of this message: the same id again goes on with a run that failed or was cut off. */
  readonly runId?: string
}

// ---------------------------------------------------------------- chatting

/**
 * Answers a message.
 *
 * A call of the run must not chat on the same history: it would wait for itself.
 *
 * @example
 * const first = yield* Chat.chat(agent, "I am Ada.")
 * const second = yield* Chat.chat(agent, "Who am I?")
 *
 * @category chatting
 * @since 0.1.0
 */
export const chat = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  input: Input,
  options: ChatOptions = {}
): Effect.Effect<RunResult<Output>, KernelError, Kernel | ChatHistory | R> =>
  inTurn((kernel, history) =>
    Effect.gen(function* () {
      const runId = options.runId ?? newRunId(yield* Random.Random)
      const before = yield* begin(history, input, runId)
      const result = yield* kernel
        .run(agent, input, { ...options, runId, history: before })
        .pipe(Effect.catchTag("RunExists", () => kernel.resume(agent, runId, options)))
      yield* end(history, result)
      return result
    })
  )

/**
 * Answers a message and tells it as it happens. The last event carries the result, when there is one.
 *
 * @category chatting
 * @since 0.1.0
 */
export const chatStream = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  input: Input,
  options: ChatOptions = {}
): Stream.Stream<RunEvent<Output, S>, KernelError, Kernel | ChatHistory | R> =>
  told((kernel, history) =>
    Effect.gen(function* () {
      const runId = options.runId ?? newRunId(yield* Random.Random)
      const before = yield* begin(history, input, runId)
      return kernel
        .stream(agent, input, { ...options, runId, history: before })
        .pipe(Stream.catchTag("RunExists", () => kernel.resumeStream(agent, runId, options)))
    })
  )

/**
 * Goes on with the run of a message: after a pause, a failure or a crash.
 *
 * @category chatting
 * @since 0.1.0
 */
export const resume = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  runId: string,
  options?: ResumeOptions
): Effect.Effect<RunResult<Output>, KernelError, Kernel | ChatHistory | R> =>
  inTurn((kernel, history) => Effect.tap(kernel.resume(agent, runId, options), (result) => end(history, result)))

/**
 * Goes on with the run of a message and tells what happens.
 *
 * @category chatting
 * @since 0.1.0
 */
export const resumeStream = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  runId: string,
  options?: ResumeOptions
): Stream.Stream<RunEvent<Output, S>, KernelError, Kernel | ChatHistory | R> =>
  told((kernel) => Effect.succeed(kernel.resumeStream(agent, runId, options)))

/**
 * Forgets what was said, when the message that is being answered is answered.
 *
 * @category chatting
 * @since 0.1.0
 */
export const reset: Effect.Effect<void, StoreError, ChatHistory> = Histories.ChatHistory.use((history) =>
  lockOf(history).withPermits(1)(history.clear)
)

// ---------------------------------------------------------------- one after the other

const locks = new WeakMap<History, Semaphore.Semaphore>()

const lockOf = (history: History): Semaphore.Semaphore => {
  let lock = locks.get(history)
  if (lock === undefined) locks.set(history, (lock = Semaphore.makeUnsafe(1)))
  return lock
}

const inTurn = <A, R>(
  body: (kernel: Kernel["Service"], history: History) => Effect.Effect<A, KernelError, R>
): Effect.Effect<A, KernelError, Kernel | ChatHistory | R> =>
  Effect.gen(function* () {
    const kernel = yield* Kernel
    const history = yield* Histories.ChatHistory
    return yield* lockOf(history).withPermits(1)(remembering(kernel, body(kernel, history)))
  })

const told = <Output, S extends AnySkill<unknown>, R>(
  body: (
    kernel: Kernel["Service"],
    history: History
  ) => Effect.Effect<Stream.Stream<RunEvent<Output, S>, KernelError, R>, KernelError, R>
): Stream.Stream<RunEvent<Output, S>, KernelError, Kernel | ChatHistory | R> =>
  Stream.unwrap(
    Effect.gen(function* (): Effect.fn.Return<
      Stream.Stream<RunEvent<Output, S>, KernelError, R>,
      KernelError,
      Kernel | ChatHistory | Scope.Scope | R
    > {
      const kernel = yield* Kernel
      const history = yield* Histories.ChatHistory
      yield* lockOf(history).takeScoped(1)
      const pipeline = yield* pipelineOf(kernel)
      const events = yield* body(kernel, history)
      const kept = Stream.tap(events, (event) =>
        event.type === "run_completed" && event.depth === 0 && event.result !== undefined
          ? end(history, event.result)
          : Effect.void
      )
      return pipeline === undefined ? kept : Stream.provideService(kept, PromptPipeline.PromptPipeline, pipeline)
    })
  )

// ---------------------------------------------------------------- the history

/**
 * Adds the user's message and gives what else was said. Added by an earlier try, it is there already, maybe with a
 * conversation behind it: it is taken out, for the run says it itself.
 */
const begin = /*#__PURE__*/ Effect.fnUntraced(function* (history: History, input: Input, runId: string) {
  const before = yield* history.toArray
  const message = messageOf(input)
  yield* history.append(message, runId)
  if ((yield* history.size) !== before.length) return before
  const same = before.findLastIndex((other) => Equal.equals(other, message))
  const at = same === -1 ? before.findLastIndex((other) => other.role === "user") : same
  return at === -1 ? before : before.toSpliced(at, 1)
})

/** Adds what the run said. Its first message is the user's, which is there. */
const end = (history: History, result: RunResult<unknown>): Effect.Effect<void, StoreError> =>
  history.append(result.messages.slice(1), `${result.runId}:messages`)

/** The user's message as a history keeps it: with its media inside, since those of a run end with it. */
const messageOf = (input: Input): Message =>
  Messages.user(listOf(input).map((part) => (isMedia(part) ? contentOf(part) : part)))

const contentOf = ({ kind, mimeType, source }: Media): Content => {
  switch (source._tag) {
    case "Bytes":
      return Contents[kind]({ data: source.bytes, mediaType: mimeType })
    case "Url":
      return Contents[kind]({ url: source.url, mediaType: mimeType })
    case "Path":
      return Contents.text(`[${kind} unavailable: ${mimeType}]`)
  }
}

// ---------------------------------------------------------------- the memory

const remembering = <A, E, R>(kernel: Kernel["Service"], effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(pipelineOf(kernel), (pipeline) =>
    pipeline === undefined ? effect : Effect.provideService(effect, PromptPipeline.PromptPipeline, pipeline)
  )

/** A pipeline that looks into the memory, where there is one and nobody chose a pipeline. */
const pipelineOf = (kernel: Kernel["Service"]): Effect.Effect<PromptPipeline.PromptPipelineShape | undefined> =>
  Effect.gen(function* () {
    const here = yield* Effect.context<never>()
    const built = partsOf(kernel)
    const memory = Option.orElse(Context.getOption(here, Memory.Memory), () =>
      built === undefined ? Option.none() : Context.getOption(built, Memory.Memory)
    )
    const own = here.mapUnsafe.has(PromptPipeline.PromptPipeline.key) || built === undefined ? here : built
    if (Option.isNone(memory) || Context.get(own, PromptPipeline.PromptPipeline) !== PromptPipeline.simple)
      return undefined
    return yield* Effect.provideService(
      PromptPipeline.make({ sections: [Memory.section()] }),
      Memory.Memory,
      memory.value
    )
  })
