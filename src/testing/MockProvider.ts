/**
 * Replies with prepared replies in tests.
 *
 * A mock replies, keeps the requests it received, and makes no assertions. It is mutable and belongs to one test.
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import type { Generation } from "../Generation.ts"
import { ProviderError, type ProviderReason } from "../KernelError.ts"
import type { Message } from "../Message.ts"
import { Provider, type ProviderShape, type Request } from "../Provider.ts"
import type { FinishReason, ReportedUsage, StreamPart } from "../StreamPart.ts"
import { unreported } from "../StreamPart.ts"

/**
 * One reply of the mock: a text, a reply by its pieces, the stream parts themselves, or an error to fail with.
 *
 * @category models
 * @since 0.1.0
 */
export type Reply = string | Pieces | ReadonlyArray<StreamPart> | ProviderError

/**
 * A reply by its pieces. `calls` are native calls; missing ids are generated, and the default input is `{}`. A call with
 * any other key is refused.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pieces {
  readonly thinking?: string | undefined
  readonly text?: string | undefined
  readonly calls?:
    | ReadonlyArray<{ readonly name: string; readonly input?: unknown; readonly id?: string | undefined }>
    | undefined
  /** Default: `tool-calls` with calls, otherwise `stop`. */
  readonly reason?: FinishReason | undefined
  readonly usage?: ReportedUsage | undefined
}

/**
 * How a text is cut: not at all, into pieces of a number of code points, or into pieces of these sizes and the rest.
 *
 * @category models
 * @since 0.1.0
 */
export type Chunking = "whole" | number | ReadonlyArray<number>

/**
 * A provider under the control of a test. The setters change it and return it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Mock extends ProviderShape {
  /** Adds replies, one for each call; the last one repeats. */
  readonly respondWith: (...replies: ReadonlyArray<Reply>) => Mock
  /** Sets the reply of each call by its index, in place of all replies. The indexes begin at 0 and have no gap. */
  readonly respondWithScript: (script: { readonly [call: number]: Reply }) => Mock
  /**
   * Sets a function that replies to a call instead of a prepared reply. It returns undefined to use the prepared reply.
   */
  readonly onCall: (
    answer: (request: Request, call: number) => Reply | Effect.Effect<Reply, ProviderError> | undefined
  ) => Mock
  /** Fails one call by its index. It counts as a call, so later replies keep their index. */
  readonly failOnStep: (call: number, error?: ProviderError | ProviderReason, message?: string) => Mock
  /** Reports usage for replies that have none. */
  readonly withTokenCounter: (
    count: (messages: ReadonlyArray<Message>, text: string) => { readonly input: number; readonly output: number }
  ) => Mock
  readonly withChunking: (chunking: Chunking) => Mock
  /** Waits on the Clock before the first part, and before each piece of a text. */
  readonly withDelay: (delay: {
    readonly first?: Duration.Input | undefined
    readonly between?: Duration.Input | undefined
  }) => Mock
  /** Whether requests are kept. Default: true. */
  readonly keepCalls: (keep: boolean) => Mock
  readonly reset: () => Mock
  readonly calls: ReadonlyArray<Request>
  readonly callCount: number
  readonly lastCall: Request | undefined
  readonly messagesAt: (call: number) => ReadonlyArray<Message> | undefined
  readonly generationAt: (call: number) => Generation | undefined
}

/**
 * Creates a mock with these replies, of which the last repeats. Without replies it replies with an empty text.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (...replies: ReadonlyArray<Reply>): Mock => new MockProvider("mock", replies)

/**
 * Creates a mock with another name, to distinguish several mocks.
 *
 * @category constructors
 * @since 0.1.0
 */
export const named = (name: string, ...replies: ReadonlyArray<Reply>): Mock => new MockProvider(name, replies)

/**
 * Provides a new mock as the provider.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (...replies: ReadonlyArray<Reply>): Layer.Layer<Provider> =>
  Layer.sync(Provider, () => make(...replies))

/**
 * Provides this mock as the provider, so that a test can inspect it afterwards.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerOf = (mock: Mock): Layer.Layer<Provider> => Layer.succeed(Provider, mock)

const textStart: StreamPart = Object.freeze({ type: "text-start", id: "0" })
const textEnd: StreamPart = Object.freeze({ type: "text-end", id: "0" })

type PartsPull = Pull.Pull<Arr.NonEmptyReadonlyArray<StreamPart>, ProviderError>

class MockProvider implements Mock {
  readonly name: string
  readonly stream: ProviderShape["stream"]
  readonly calls: Array<Request> = []
  callCount = 0
  #replies: Array<Reply>
  #answer: Parameters<Mock["onCall"]>[0] | undefined
  #failures = new Map<number, ProviderError>()
  #counter: Parameters<Mock["withTokenCounter"]>[0] | undefined
  #chunking: Chunking = "whole"
  #delay: Parameters<Mock["withDelay"]>[0] = {}
  #keeps = true

  constructor(name: string, replies: ReadonlyArray<Reply>) {
    this.name = name
    this.#replies = replies.slice()
    this.stream = (request) => Stream.fromPull(Effect.sync(() => this.#call(request)))
  }

  get lastCall() {
    return this.calls.at(-1)
  }

  messagesAt(call: number) {
    return this.calls[call]?.messages
  }

  generationAt(call: number) {
    return this.calls[call]?.generation
  }

  respondWith(...replies: ReadonlyArray<Reply>) {
    this.#replies.push(...replies)
    return this
  }

  respondWithScript(script: { readonly [call: number]: Reply }) {
    const calls = Object.keys(script).map(Number)
    const replies = calls.map((_, call) => script[call])
    if (replies.some((reply) => reply === undefined)) {
      throw new RangeError(`a script has the calls 0 to ${calls.length - 1}, this one has ${calls.join(", ")}`)
    }
    this.#replies = replies.filter((reply) => reply !== undefined)
    return this
  }

  onCall(answer: Parameters<Mock["onCall"]>[0]) {
    this.#answer = answer
    return this
  }

  failOnStep(call: number, error: ProviderError | ProviderReason = "server_error", message = "mock provider failure") {
    this.#failures.set(
      call,
      typeof error === "string"
        ? new ProviderError({ provider: this.name, reason: error, detail: message, attempts: 1 })
        : error
    )
    return this
  }

  withTokenCounter(count: Parameters<Mock["withTokenCounter"]>[0]) {
    this.#counter = count
    return this
  }

  withChunking(chunking: Chunking) {
    this.#chunking = chunking
    return this
  }

  withDelay(delay: Parameters<Mock["withDelay"]>[0]) {
    this.#delay = delay
    return this
  }

  keepCalls(keep: boolean) {
    this.#keeps = keep
    return this
  }

  reset() {
    this.calls.length = 0
    this.callCount = 0
    this.#replies = []
    this.#answer = undefined
    this.#failures.clear()
    this.#counter = undefined
    this.#chunking = "whole"
    this.#delay = {}
    return this
  }

  #call(request: Request): PartsPull {
    const call = this.callCount++
    if (this.#keeps) this.calls.push(request)
    const failure = this.#failures.get(call)
    if (failure !== undefined) return Effect.fail(failure)
    const answered = this.#answer?.(request, call)
    if (answered === undefined) return this.#say(request, this.#replies[Math.min(call, this.#replies.length - 1)] ?? "")
    if (!Effect.isEffect(answered)) return this.#say(request, answered)
    let said: PartsPull | undefined
    return Effect.suspend(() => said ?? Effect.flatMap(answered, (reply) => (said = this.#say(request, reply))))
  }

  #say(request: Request, reply: Reply): PartsPull {
    if (reply instanceof ProviderError) return Effect.fail(reply)
    const wrong = typeof reply === "string" || isParts(reply) ? undefined : unknownKey(reply)
    if (wrong !== undefined) {
      const detail = `a call of a mock has name, input and id, not '${wrong}'`
      return Effect.fail(new ProviderError({ provider: this.name, reason: "invalid_request", detail, attempts: 1 }))
    }
    const parts = isParts(reply) ? reply : this.#parts(request, typeof reply === "string" ? { text: reply } : reply)
    const first = Duration.toMillis(this.#delay.first ?? 0)
    const between = Duration.toMillis(this.#delay.between ?? 0)
    if (first > 0 || between > 0) return slowly(parts, first, between)
    let isSaid = false
    return Effect.suspend(() => {
      if (isSaid || !Arr.isReadonlyArrayNonEmpty(parts)) return Cause.done()
      isSaid = true
      return Effect.succeed(parts)
    })
  }

  #parts(request: Request, { calls = [], reason, text = "", thinking = "", usage }: Pieces): ReadonlyArray<StreamPart> {
    const parts: Array<StreamPart> = []
    if (thinking !== "") {
      parts.push(
        { type: "reasoning-start", id: "thinking" },
        { type: "reasoning-delta", id: "thinking", delta: thinking },
        { type: "reasoning-end", id: "thinking" }
      )
    }
    if (text !== "") {
      parts.push(textStart)
      if (this.#chunking === "whole") parts.push({ type: "text-delta", id: "0", delta: text })
      else for (const delta of cut(text, this.#chunking)) parts.push({ type: "text-delta", id: "0", delta })
      parts.push(textEnd)
    }
    calls.forEach(({ id, input: params = {}, name }, index) => {
      const callId = id ?? `call_${this.callCount}_${index}`
      parts.push(
        { type: "tool-params-start", id: callId, name },
        { type: "tool-params-delta", id: callId, delta: JSON.stringify(params) ?? "" },
        { type: "tool-params-end", id: callId },
        { type: "tool-call", id: callId, name, params }
      )
    })
    parts.push({
      type: "finish",
      reason: reason ?? (calls.length > 0 ? "tool-calls" : "stop"),
      usage: usage ?? this.#counted(request, text)
    })
    return parts
  }

  #counted(request: Request, text: string): ReportedUsage {
    if (this.#counter === undefined) return unreported
    const { input, output } = this.#counter(request.messages, text)
    return { inputTokens: { total: input }, outputTokens: { total: output } }
  }
}

// One part at a time, with a pause before the first and before each further piece of text.
const slowly = (parts: ReadonlyArray<StreamPart>, first: number, between: number): PartsPull => {
  let at = 0
  return Effect.suspend((): PartsPull => {
    const part = parts[at]
    if (part === undefined) return Cause.done()
    const pause = at++ === 0 ? first : part.type === "text-delta" ? between : 0
    return pause === 0 ? Effect.succeed(Arr.of(part)) : Effect.as(Effect.sleep(pause), Arr.of(part))
  })
}

/** Returns a key that no call has, which untyped code may have written. */
const unknownKey = ({ calls = [] }: Pieces): string | undefined =>
  calls.flatMap((call) => Object.keys(call)).find((key) => key !== "name" && key !== "input" && key !== "id")

const isParts = (reply: Exclude<Reply, ProviderError>): reply is ReadonlyArray<StreamPart> => Array.isArray(reply)

// By code points, so that no piece ends inside a character.
const cut = (text: string, chunking: number | ReadonlyArray<number>): ReadonlyArray<string> => {
  const characters = Array.from(text)
  const sizes = typeof chunking === "number" ? [] : chunking
  const usual = typeof chunking === "number" ? Math.max(1, chunking) : characters.length
  const pieces: Array<string> = []
  for (let from = 0, index = 0; from < characters.length; index++) {
    const size = Math.max(1, sizes[index] ?? usual)
    pieces.push(characters.slice(from, from + size).join(""))
    from += size
  }
  return pieces
}
