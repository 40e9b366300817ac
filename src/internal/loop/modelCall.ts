/**
 * One model call: made through the middleware, heard through the dialect, told as it comes in.
 *
 * Middleware may send a call elsewhere, so who answered is known only at the
 * end: what counts is the call that brought the last part. Every call that
 * failed on the way is told.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Dialects from "../../Dialect.ts"
import * as Generations from "../../Generation.ts"
import type { KernelError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { ModelCall, ModelStream } from "../../Middleware.ts"
import type { ReplyGrammar, Request, ToolDefinition } from "../../Provider.ts"
import type { Redactor } from "../../Redaction.ts"
import type { Turn } from "../../RunState.ts"
import type { StreamPart } from "../../StreamPart.ts"
import * as Usage from "../../Usage.ts"
import { promptLog } from "../state/state.ts"
import { tell } from "./commit.ts"
import { observed } from "../base/passedOver.ts"
import { deep, redact } from "../base/redact.ts"
import { now, type Run, stepOf } from "./run.ts"
import * as Streams from "../base/streams.ts"
import * as Tree from "./sharedBudget.ts"

/** A reply, the call it answers, and what it used. */
export interface Heard {
  readonly reply: Dialects.Reply
  readonly call: ModelCall
  readonly usage: Usage.Usage | null
  readonly costUsd: number
  readonly latencyMs: number
  readonly raw: ReadonlyArray<StreamPart>
  /** Why a reply that had ended must not count, such as a middleware that refused it. */
  readonly refused: Cause.Cause<KernelError> | undefined
}

/**
 * Asks the model once. It is told when this is called, so it is called when it is due.
 *
 * A reply is in hand from its finish part on, not from the end of its
 * connection: then it is given even while the run is being stopped (DR-7), and
 * what it used is told even when it is refused.
 */
export const hear = (
  run: Run,
  turn: Turn,
  tools: ReadonlyArray<ToolDefinition>,
  grammar: ReplyGrammar | undefined,
  restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
): Effect.Effect<Heard, KernelError> => {
  const call = modelCall(run, turn, tools, grammar)
  const started = now(run)
  tellSent(run, call.request, started)
  const hearing: Hearing = { raw: [], first: undefined, call, calls: 0, reader: undefined }
  // Made when the first part comes: a run that waits for its model holds nothing to read with.
  const reader = () =>
    (hearing.reader ??= Dialects.of(turn.dialect, markupsOf(run.agent, grammar)).reader(
      listener(run, turn),
      run.limits,
      new Origin(hearing)
    ))
  const reading = traced(run, call, reader, hearing, read(run, turn, reader, hearing))
  const heard = (refused?: Cause.Cause<KernelError>): Effect.Effect<Heard, KernelError> =>
    Effect.succeed({ ...told(reader(), hearing), latencyMs: now(run) - started, raw: hearing.raw, refused })
  return Effect.matchCauseEffect(restore(reading), {
    onFailure: (cause) =>
      reader().end().finish === undefined
        ? Effect.failCause(cause)
        : heard(Cause.hasInterruptsOnly(cause) ? undefined : cause),
    onSuccess: () => heard()
  })
}

/** A server that takes a JSON Schema alone gives the blocks in their JSON form. */
const markupsOf = (agent: Run["agent"], grammar: ReplyGrammar | undefined): ReadonlyArray<Dialects.Markup> =>
  grammar?._tag !== "Blocks" || agent.markups.includes("json") ? agent.markups : [...agent.markups, "json"]

/** What is noted while a reply comes in. */
interface Hearing {
  readonly raw: Array<StreamPart>
  /** When its first part came. */
  first: number | undefined
  /** The call that brought the last part. */
  call: ModelCall
  /** How many calls the middleware made. */
  calls: number
  reader: Dialects.Reader | undefined
}

/** Who spoke, asked when the reply is whole: thinking belongs to the model that thought it (CP-9). */
class Origin {
  readonly #hearing: Hearing

  constructor(hearing: Hearing) {
    this.#hearing = hearing
  }

  get provider(): string {
    return this.#hearing.call.provider.name
  }

  get model(): string {
    return this.#hearing.call.request.model.id
  }
}

/** A reply as far as it came, and what it used: null when it was cut, or its provider reported nothing. */
const told = (reader: Dialects.Reader, { call }: Hearing) => {
  const reply = reader.end()
  const usage = reply.finish === undefined ? null : (Usage.fromAi(reply.finish.usage) ?? null)
  return { reply, call, usage, costUsd: Tree.costOf(usage, call.request.model.price) }
}

/** The span of a model call, where somebody watches. */
const traced = (
  run: Run,
  call: ModelCall,
  reader: () => Dialects.Reader,
  heard: Hearing,
  reading: Effect.Effect<void, KernelError>
): Effect.Effect<void, KernelError> => {
  if (run.telemetry === undefined) return reading
  const { generation, messages, model } = call.request
  const { rootRunId, runId, step } = call
  const facts = {
    provider: call.provider.name,
    model: model.id,
    generation,
    runId,
    rootRunId,
    step,
    input: () => messages
  }
  const started = now(run)
  return run.telemetry.chat(reading, facts, () => {
    const { call, costUsd, reply, usage } = told(reader(), heard)
    const { content, finish } = reply
    return {
      usage,
      model: call.request.model.id,
      ...(finish === undefined ? {} : { finishReason: finish.reason }),
      firstChunkMs: heard.first === undefined ? undefined : heard.first - started,
      costUsd,
      output: () => ({ role: "assistant", content })
    }
  })
}

/** Streams the reply through the dialect, telling as it goes. */
const read = (
  run: Run,
  turn: Turn,
  reader: () => Dialects.Reader,
  heard: Hearing
): Effect.Effect<void, KernelError> => {
  const keep = run.hooks.onModelCompleted !== undefined
  const observe = run.hooks.onStreamPart
  let reading: ReadonlyArray<StreamPart> = []
  const push = () => reader().push(reading)
  return Streams.runForEachArray(throughMiddleware(run, heard), (parts) => {
    heard.first ??= now(run)
    if (keep) for (const part of parts) heard.raw.push(part)
    if (run.parts) tellParts(run, turn, parts)
    reading = parts
    const broken = run.batch(push)
    if (broken !== undefined) return Effect.fail(broken)
    if (observe !== undefined) {
      return observed("onStreamPart", () => Effect.forEach(parts, observe, { discard: true }))
    }
    // A consumer that is there but has had no chance to read must not lose anything.
    return run.isFull() ? Effect.yieldNow : undefined
  })
}

const modelCall = (
  run: Run,
  turn: Turn,
  tools: ReadonlyArray<ToolDefinition>,
  grammar: ReplyGrammar | undefined
): ModelCall => {
  const { agent, state } = run
  const system: ReadonlyArray<Message> = state.system === null ? [] : [Messages.system(state.system)]
  const model = turn.args?.model ?? run.model
  const generation = Generations.merge(agent.generation, turn.args?.generation ?? Generations.empty)
  const breakpoints = turn.args?.cacheBreakpoints
  const rest = {
    model,
    tools,
    generation,
    media: run.media,
    ...(grammar === undefined ? {} : { grammar }),
    ...(breakpoints === undefined ? {} : { cacheBreakpoints: breakpoints.map((index) => index + system.length) })
  }
  const log = promptLog(state)
  let messages: ReadonlyArray<Message> | undefined
  const request = withMessages(rest, log.length, () => (messages ??= clean(run, log.after(system))))
  return { runId: state.runId, rootRunId: state.rootRunId, step: stepOf(state), provider: run.provider, request }
}

/**
 * Adds the conversation to a value: at once, or, where it is long, when somebody looks at it. A list of thousands
 * is not copied every turn for a provider that keeps what it encoded, nor is a short one hidden behind an accessor,
 * which costs more than its copy.
 */
const withMessages = <A extends object>(
  value: A,
  count: number,
  messages: () => ReadonlyArray<Message>
): A & { readonly messages: ReadonlyArray<Message> } =>
  count < 512
    ? { ...value, messages: messages() }
    : {
        ...value,
        get messages() {
          return messages()
        }
      }

/** Tells what is sent. Nothing waits to be told here: what was before is stored. */
const tellSent = (run: Run, request: Request, at: number): void => {
  if (run.tell === undefined) return
  const { depth, rootRunId, runId, taskId } = run.state
  const event = { type: "messages_sent" as const, runId, rootRunId, step: stepOf(run.state), depth, taskId, at }
  run.tell(withMessages(event, promptLog(run.state).length, () => request.messages))
}

const clean = (run: Run, messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const { redactor } = run
  if (redactor === undefined) return messages
  let known = cleaned.get(redactor)
  if (known === undefined) cleaned.set(redactor, (known = new WeakMap()))
  const kept = known
  return messages.map((message) => {
    let clean = kept.get(message)
    if (clean === undefined) kept.set(message, (clean = deep(message, redactor.text)))
    return clean
  })
}

// Each message is looked at once: what is sent stays the same object, so adapters encode it once too.
const cleaned = new WeakMap<Redactor, WeakMap<Message, Message>>()

/** First middleware outermost; its own failures are typed before they reach the run (DR-23). */
const throughMiddleware = (run: Run, heard: Hearing): ModelStream => {
  const { call } = heard
  let next: ((call: ModelCall) => ModelStream) | undefined
  for (const { callModel } of run.middleware.toReversed()) {
    if (callModel === undefined) continue
    const inner = next ?? ((call: ModelCall): ModelStream => noted(run, heard, call))
    next = (call) => callModel(call, inner)
  }
  return next === undefined ? call.provider.stream(call.request) : next(call)
}

/** A call as middleware makes it: whoever brings parts is who answered, and a failure is told. */
const noted = (run: Run, heard: Hearing, call: ModelCall): ModelStream =>
  Stream.suspend(() => {
    const number = ++heard.calls
    return call.provider.stream(call.request).pipe(
      Stream.mapArray((parts) => {
        heard.call = call
        return parts
      }),
      Stream.tapError((error) =>
        Effect.sync(() => {
          const model = `${call.provider.name}/${call.request.model.id}`
          const { message, reason } = error
          tell(run, { type: "model_call_failed", model, call: number, reason, error: redact(message) })
        })
      )
    )
  })

const listener = (run: Run, turn: Turn): Dialects.Listener => {
  const { depth, rootRunId, runId, taskId } = run.state
  const step = turn.turn - 1
  const { tell } = run
  // The event of every token is written out: it is the hot path.
  const text: Dialects.Listener["text"] = (type, text) =>
    tell?.({ type, runId, rootRunId, step, depth, taskId, at: now(run), text })
  const block: Dialects.Listener["block"] = (part) => {
    if (part.type !== "block_unclosed") tell?.({ ...part, runId, rootRunId, step, depth, taskId, at: now(run) })
  }
  const part = run.parts ? () => {} : (part: StreamPart) => tellParts(run, turn, [part])
  return { text, block, part }
}

const tellParts = (run: Run, turn: Turn, parts: ReadonlyArray<StreamPart>) => {
  for (const part of parts) {
    tell(run, { type: "stream_part", turnId: turn.turnId, turn: turn.turn, attempt: turn.attempt, part })
  }
}
