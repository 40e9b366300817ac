/**
 * Holds a conversation over many runs: each message of the user is one run.
 *
 * Messages are stored in the `ChatHistory` in context: the user's message before the run, the messages of the run after
 * it, both with their media. If a run fails, is stopped or interrupted, the user's message stays with what the run did:
 * its finished calls, and those in flight as calls with an unknown outcome. Chatting again under the same `runId` adds
 * nothing twice. Concurrent messages to one history are answered one after the other. Build the layer of a conversation
 * once and keep it: two layers of the same conversation do not wait for each other.
 *
 * A summary made by compaction is kept with the message that was answered at that time. With a `Memory` in context,
 * matching memories become part of the prompt, unless you set a prompt pipeline of your own.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Agent } from "./Agent.ts"
import * as Histories from "./ChatHistory.ts"
import * as Team from "./internal/agent/team.ts"
import { lend, storeMedia } from "./internal/chat/conversation.ts"
import { isSame } from "./internal/words/messageFacts.ts"
import { perObject } from "./kit/perObject.ts"
import * as EmbeddedMedia from "./store-kit/EmbeddedMedia.ts"
import * as KeptSummary from "./internal/prompt/keptSummary.ts"
import { limited, newRunId } from "./internal/kernel/environment.ts"
import { referenceOf, serviceOf } from "./kit/foreignCode.ts"
import { listOf } from "./internal/run/listeners.ts"
import { Kernel, type Input, type OptionsFor, type ResumeOptions, type RunOptions } from "./Kernel.ts"
import type { ResumeError, ResumeStreamError, StoreError } from "./KernelError.ts"
import * as MediaStore from "./MediaStore.ts"
import * as Memory from "./Memory.ts"
import type { Message } from "./Message.ts"
import * as Messages from "./Message.ts"
import * as PromptPipeline from "./PromptPipeline.ts"
import type { RunEvent } from "./RunEvent.ts"
import type { RunResult, RunState } from "./RunState.ts"
import { RunStore } from "./RunStore.ts"
import type { AnySkill } from "./Skill.ts"

type ChatHistory = Histories.ChatHistory
type History = Histories.ChatHistoryShape

/**
 * Options for answering a message. Earlier messages come from the history.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChatOptions extends Omit<RunOptions, "history"> {
  /**
   * The id of the run for this message. An id that exists resumes a failed or interrupted run, and returns the answer
   * of a completed one, whatever the input is. Each message has a run id of its own; it does not identify the
   * conversation. An id can name any run of the store, including those of other conversations: if a client chooses it,
   * check that the run is the client's own.
   */
  readonly runId?: string | undefined
}

// ---------------------------------------------------------------- chatting

/**
 * Answers a message. An agent that declares the context of its runs needs it in the options.
 *
 * A skill of the run must not chat on the same history: it would wait for itself.
 *
 * @example
 * const first = yield* Chat.chat(agent, "I am Ada.")
 * const second = yield* Chat.chat(agent, "Who am I?")
 *
 * @category chatting
 * @since 0.1.0
 */
export const chat = <Output, S extends AnySkill<unknown>, R = never, C = never>(
  agent: Agent<Output, S, R, C>,
  input: Input,
  ...[options = {}]: OptionsFor<ChatOptions, NoInfer<C>>
): Effect.Effect<RunResult<Output>, ResumeError, Kernel | ChatHistory | R> =>
  answering(options.runId, (talk) =>
    Effect.gen(function* () {
      const { kernel, runId } = talk
      const before = yield* startTalk(talk, input)
      const result = yield* kernel
        .run<Output, S, R, unknown>(agent, input, { ...options, runId, history: before })
        .pipe(
          Effect.catchTag("RunExists", () =>
            Effect.flatMap(again(talk, agent, options), (again) => kernel.resume(agent, runId, again))
          )
        )
      yield* endTalk(talk, result)
      return result
    })
  )

/**
 * Answers a message and emits the events of its run. The last event carries the result, if there is one.
 *
 * @category chatting
 * @since 0.1.0
 */
export const chatStream = <Output, S extends AnySkill<unknown>, R = never, C = never>(
  agent: Agent<Output, S, R, C>,
  input: Input,
  ...[options = {}]: OptionsFor<ChatOptions, NoInfer<C>>
): Stream.Stream<RunEvent<Output, S>, ResumeStreamError, Kernel | ChatHistory | R> =>
  streaming(options.runId, (talk) =>
    Effect.gen(function* () {
      const { kernel, runId } = talk
      const before = yield* startTalk(talk, input)
      return kernel
        .stream<Output, S, R, unknown>(agent, input, { ...options, runId, history: before })
        .pipe(
          Stream.catchTag("RunExists", () =>
            Stream.unwrap(Effect.map(again(talk, agent, options), (again) => kernel.resumeStream(agent, runId, again)))
          )
        )
    })
  )

/**
 * Resumes the run of a message after a pause, a failure or a crash.
 *
 * @category chatting
 * @since 0.1.0
 */
export const resume = <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R, unknown>,
  runId: string,
  options?: ResumeOptions
): Effect.Effect<RunResult<Output>, ResumeError, Kernel | ChatHistory | R> =>
  answering(runId, (talk) =>
    Effect.andThen(lent(talk), talk.kernel.resume(agent, runId, options)).pipe(
      Effect.tap((result) => endTalk(talk, result))
    )
  )

/**
 * Resumes the run of a message and emits its events.
 *
 * @category chatting
 * @since 0.1.0
 */
export const resumeStream = <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R, unknown>,
  runId: string,
  options?: ResumeOptions
): Stream.Stream<RunEvent<Output, S>, ResumeStreamError, Kernel | ChatHistory | R> =>
  streaming(runId, (talk) => Effect.as(lent(talk), talk.kernel.resumeStream(agent, runId, options)))

/**
 * Clears the history, after the message in progress has been answered.
 *
 * @category chatting
 * @since 0.1.0
 */
export const reset: Effect.Effect<void, StoreError, ChatHistory> = Histories.ChatHistory.use((history) =>
  lockOf(history).withPermits(1)(history.clear)
)

// ---------------------------------------------------------------- one after the other

const lockOf = perObject((_history: History) => Semaphore.makeUnsafe(1))

/** A message in progress, with everything needed to answer it. */
interface Talk {
  readonly kernel: Kernel["Service"]
  readonly history: History
  readonly runId: string
  /** The services the kernel was built on; empty for a kernel of another copy of this package. */
  readonly built: Context.Context<never>
  /** The media of the run, held until the message is answered. Unknown for a kernel of another copy of this package. */
  readonly media: MediaStore.MediaStoreShape | undefined
}

/** Waits until earlier messages are answered. */
const talkOf = Effect.fnUntraced(function* (
  given: string | undefined
): Effect.fn.Return<Talk, never, Kernel | ChatHistory | Scope.Scope> {
  const kernel = yield* Kernel
  const history = yield* Histories.ChatHistory
  const runId = given ?? newRunId(yield* Random.Random)
  yield* lockOf(history).takeScoped(1)
  const built = kernel.parts ?? Context.empty()
  const store = Option.getOrUndefined(Context.getOption(built, MediaStore.MediaStore))
  const talk: Talk = { kernel, history, runId, built, media: store && (yield* store.run(runId)) }
  // Before the next message, which waits for this one.
  yield* Effect.addFinalizer(() => Effect.ignore(noteUnanswered(talk)))
  return talk
})

const answering = <A, R>(
  runId: string | undefined,
  body: (talk: Talk) => Effect.Effect<A, ResumeError, R>
): Effect.Effect<A, ResumeError, Kernel | ChatHistory | R> =>
  Effect.scoped(Effect.flatMap(talkOf(runId), (talk) => remembering(talk.kernel, limited(talk.built, body(talk)))))

const streaming = <Output, S extends AnySkill<unknown>, R>(
  runId: string | undefined,
  body: (talk: Talk) => Effect.Effect<Stream.Stream<RunEvent<Output, S>, ResumeStreamError, R>, StoreError, R>
): Stream.Stream<RunEvent<Output, S>, ResumeStreamError, Kernel | ChatHistory | R> =>
  Stream.unwrap(
    Effect.gen(function* (): Effect.fn.Return<
      Stream.Stream<RunEvent<Output, S>, ResumeStreamError, R>,
      StoreError,
      Kernel | ChatHistory | Scope.Scope | R
    > {
      const talk = yield* talkOf(runId)
      const pipeline = yield* pipelineOf(talk.kernel)
      const events = yield* limited(talk.built, body(talk))
      const ending = Stream.tap(events, (event) =>
        event.type === "run_completed" && event.result !== undefined ? endTalk(talk, event.result) : Effect.void
      )
      return pipeline === undefined ? ending : Stream.provideService(ending, PromptPipeline.PromptPipeline, pipeline)
    })
  )

// ---------------------------------------------------------------- the history

/**
 * Adds the user's message and returns the earlier messages. The message is left out of them even if an earlier attempt
 * added it, because the run adds it itself.
 */
const startTalk = Effect.fnUntraced(function* (talk: Talk, input: Input) {
  const { history, media, runId } = talk
  yield* addPaused(talk)
  const before = yield* history.toArray
  const message = Messages.user(yield* Effect.forEach(listOf(input), (part) => EmbeddedMedia.ofPart(part, media)))
  yield* history.append(message, runId)
  // The media of the message are stored before those of the history. Without room for them the run itself fails, as it
  // would without a chat.
  if (media !== undefined) yield* Effect.ignore(media.admit(listOf(input)))
  const known = KeptSummary.forRun(before)
  if ((yield* history.size) !== before.length) return yield* storeMedia(known, media)
  const same = before.findLastIndex((other) => isSame(other, message))
  const at = same === -1 ? before.findLastIndex((other) => other.role === "user") : same
  return yield* storeMedia(at === -1 ? known : known.toSpliced(at, 1), media)
})

/** Adds the messages of the run. The first one is the user's, which is already there unless the history was cleared. */
const endTalk = Effect.fnUntraced(function* (
  talk: Talk,
  { messages, runId }: RunResult<unknown>
): Effect.fn.Return<void, StoreError> {
  const { built, history, media } = talk
  const [asked, ...said] = yield* embedded(messages, media)
  const isAsked = (message: Message) => isSame(message, asked)
  let unsaid: ReadonlyArray<Message> = said
  // A long history is read only if something was added after the user's message.
  if (!(yield* history.last(1)).some(isAsked)) {
    if (asked !== undefined && !(yield* history.toArray).some(isAsked)) yield* history.append(asked, runId)
    unsaid = unsaidOf(yield* history.toArray, asked, said)
  }
  const state = Option.getOrUndefined(yield* stateOf(built, runId))
  const all = state === undefined ? unsaid : KeptSummary.keep(state, (yield* history.toArray).concat(unsaid))
  yield* history.append(all.slice(all.length - unsaid.length), `${runId}:messages`)
})

const embedded = (messages: ReadonlyArray<Message>, media: MediaStore.MediaStoreShape | undefined) =>
  Effect.forEach(messages, (message) => EmbeddedMedia.ofMessage(message, media))

/**
 * Returns the messages of a run that are not in the history yet. Where the history says something else, the messages
 * begin again with the reply before, so that a call stands beside its result.
 */
const unsaidOf = (
  history: ReadonlyArray<Message>,
  asked: Message | undefined,
  said: ReadonlyArray<Message>
): ReadonlyArray<Message> => {
  const known = history.slice(history.findLastIndex((message) => isSame(message, asked)) + 1)
  const same = said.findIndex((message, index) => !isSame(message, known[index]))
  if (same === -1) return []
  if (same === known.length || said[same]?.role === "assistant") return said.slice(same)
  return said.slice(
    Math.max(
      0,
      said.slice(0, same).findLastIndex(({ role }) => role === "assistant")
    )
  )
}

// ---------------------------------------------------------------- messages without an answer

/** Paused runs of histories in this process, whose messages are added before the next message. */
const pausedRuns = new WeakMap<History, Set<string>>()

/** Adds what a run did that has no answer. A paused run waits for its own answer first. */
const noteUnanswered = Effect.fnUntraced(function* (talk: Talk): Effect.fn.Return<void, StoreError> {
  const { history, runId } = talk
  const state = yield* unansweredIn(talk, runId)
  if (state?.status.type !== "paused") return state === undefined ? undefined : yield* addUnanswered(talk, state)
  const paused = pausedRuns.get(history) ?? new Set()
  pausedRuns.set(history, paused.add(runId))
})

/** Adds what paused runs did before another message is asked. */
const addPaused = Effect.fnUntraced(function* (talk: Talk): Effect.fn.Return<void, StoreError> {
  const paused = pausedRuns.get(talk.history) ?? []
  for (const runId of paused) {
    if (runId === talk.runId) continue
    const state = yield* unansweredIn(talk, runId)
    if (state !== undefined) yield* addUnanswered(talk, state)
    pausedRuns.get(talk.history)?.delete(runId)
  }
})

/** Returns the state of a run that has no answer. Unknown for a kernel of another copy of this package. */
const unansweredIn = ({ built }: Talk, runId: string): Effect.Effect<RunState | undefined, StoreError> => {
  const store = Option.getOrUndefined(Context.getOption(built, RunStore))
  if (store === undefined) return Effect.succeed(undefined)
  return Effect.map(store.load(runId), (found) => {
    const state = Option.getOrUndefined(found)
    return state?.status.type === "completed" ? undefined : state
  })
}

/** Adds the messages of a run so far. Calls in flight get a result that says so. */
const addUnanswered = Effect.fnUntraced(function* (
  { history, media }: Talk,
  state: RunState
): Effect.fn.Return<void, StoreError> {
  const [asked, ...said] = yield* embedded(Histories.ofState(state).slice(state.history), media)
  const unsaid = unsaidOf(yield* history.toArray, asked, said)
  if (unsaid.length > 0) yield* history.append(unsaid, `${state.runId}:${state.revision}`)
})

/** Gives a resumed run access to the media of its conversation again. */
const lent = ({ history, media }: Talk): Effect.Effect<void, StoreError> =>
  Effect.flatMap(history.toArray, (messages) => lend(messages, media))

/** Turns the options of a new run into those of a resume, which takes the context encoded. Lends the run its media. */
const again = <Options extends { readonly context?: unknown }>(
  talk: Talk,
  agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>,
  { context, ...options }: Options
) =>
  Effect.andThen(
    lent(talk),
    context === undefined
      ? Effect.succeed(options)
      : Effect.map(Team.encodeContext(agent, context), (context) => ({ ...options, context }))
  )

/** The state of a run whose prompt may have been compacted. Unknown for a kernel of another copy of this package. */
const stateOf = (built: Context.Context<never>, runId: string): Effect.Effect<Option.Option<RunState>, StoreError> =>
  Effect.contextWith((here: Context.Context<never>) => {
    const store = Option.getOrUndefined(Context.getOption(built, RunStore))
    return store === undefined || referenceOf(built, here, PromptPipeline.PromptPipeline) === PromptPipeline.simple
      ? Effect.succeedNone
      : store.load(runId)
  })

// ---------------------------------------------------------------- services of the kernel

const remembering = <A, E, R>(kernel: Kernel["Service"], effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(pipelineOf(kernel), (pipeline) =>
    pipeline === undefined ? effect : Effect.provideService(effect, PromptPipeline.PromptPipeline, pipeline)
  )

/** The pipeline that adds memories, if there is a memory and the application set no pipeline. */
const pipelineOf = (kernel: Kernel["Service"]): Effect.Effect<PromptPipeline.PromptPipelineShape | undefined> =>
  Effect.gen(function* () {
    const here = yield* Effect.context<never>()
    const built = kernel.parts ?? here
    const memory = serviceOf(built, here, Memory.Memory)
    const chosen = referenceOf(built, here, PromptPipeline.PromptPipeline)
    if (memory === undefined || chosen !== PromptPipeline.simple) return undefined
    return yield* Effect.provideService(PromptPipeline.make({ sections: [Memory.section()] }), Memory.Memory, memory)
  })
