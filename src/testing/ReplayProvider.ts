/**
 * Plays a recorded run through a real adapter, and fails if the run sends another conversation.
 *
 * The adapter encodes each request and reads each recorded response as it would over the network. Before a response is
 * played, the recorded conversation is compared with the current one: roles, blocks and results. The first difference
 * fails the call and names the message. The text of instructions and corrections comes from the kernel and is not
 * compared.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Block from "../Block.ts"
import * as BlockParser from "../BlockParser.ts"
import { isJsonObject, type Json, type JsonObject } from "../kit/json.ts"
import { ProviderError } from "../KernelError.ts"
import { Provider, type ProviderShape, type Request } from "../Provider.ts"
import * as Cassette from "./Cassette.ts"
import * as Redaction from "./internal/anonymize.ts"

/**
 * A message for comparison: its role and its content.
 *
 * @category models
 * @since 0.1.0
 */
export interface Turn {
  readonly role: string
  readonly text: string
}

/**
 * The first difference of two conversations. The index counts messages after the instructions.
 *
 * @category models
 * @since 0.1.0
 */
export interface Difference {
  readonly index: number
  readonly what: "length" | "role" | "blocks" | "result" | "text"
  readonly expected: string
  readonly actual: string
}

/**
 * A provider that plays a recording.
 *
 * @category models
 * @since 0.1.0
 */
export interface Playing extends ProviderShape {
  /** The number of recorded replies that were not played yet. At the end of a run, more than none is a difference. */
  readonly left: Effect.Effect<number>
}

/**
 * Options of a replay.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** How the bodies of responses are cut. Default: at their frames. */
  readonly cut?: Cassette.Cut | undefined
  /** Whether conversations are compared. Default: true. */
  readonly compare?: boolean | undefined
}

/**
 * Creates a provider that plays a cassette through an adapter, such as `AnthropicProvider.make({ apiKey })`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <E>(
  cassette: Cassette.Cassette,
  adapter: Effect.Effect<ProviderShape, E, HttpClient.HttpClient>,
  options?: Options
): Effect.Effect<Playing, E> =>
  Effect.suspend(() => {
    let left = cassette.interactions.length
    let refused: string | undefined
    const asked = (provider: ProviderShape, request: Request) =>
      Stream.suspend(() => {
        refused = undefined
        return provider.stream(request)
      })
    const client = Cassette.player(cassette.interactions, {
      ...(options?.cut === undefined ? {} : { cut: options.cut }),
      check: (recorded, asked, index) => {
        left -= 1
        const difference =
          options?.compare === false ? undefined : firstDifference(turns(recorded.request.body), turns(asked))
        if (difference === undefined) return Effect.void
        refused = `request ${index} differs from the recording: ${describe(difference)}`
        return Effect.fail(refused)
      }
    })
    return Effect.map(Effect.provideService(adapter, HttpClient.HttpClient, client), (provider) => ({
      name: provider.name,
      left: Effect.sync(() => left),
      stream: (request) =>
        Stream.mapError(asked(provider, request), (error) =>
          // A recorded refusal has a status; a refusal of this provider has none.
          error.reason !== "invalid_request" || error.status !== undefined
            ? error
            : new ProviderError({
                provider: provider.name,
                reason: "invalid_request",
                detail: refused ?? "the recording holds no further answer"
              })
        )
    }))
  })

/**
 * Provides this recording as the provider. When it is released, replies that were not played are logged as a warning.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E>(
  cassette: Cassette.Cassette,
  adapter: Effect.Effect<ProviderShape, E, HttpClient.HttpClient>,
  options?: Options
): Layer.Layer<Provider, E> =>
  Layer.effect(
    Provider,
    Effect.acquireRelease(make(cassette, adapter, options), ({ left }) =>
      Effect.flatMap(left, (count) =>
        count === 0
          ? Effect.void
          : Effect.logWarning(`${count} of ${cassette.interactions.length} recorded replies were not played`)
      )
    )
  )

/**
 * Returns the conversation in a request body of any vendor, without instructions.
 *
 * @category comparing
 * @since 0.1.0
 */
export const turns = (body: Json): ReadonlyArray<Turn> => spoken(document(body)).filter(({ role }) => role !== "system")

/**
 * Returns the instructions in a request body of any vendor.
 *
 * @category comparing
 * @since 0.1.0
 */
export const instructions = (body: Json): string => {
  const whole = document(body)
  const beside = ["system", "systemInstruction", "system_instruction"].map((key) => textOf(fieldOf(whole, key)))
  const [first] = spoken(whole)
  return beside.find((text) => text !== "") ?? (first?.role === "system" ? first.text : "")
}

const spoken = (whole: Json): ReadonlyArray<Turn> => {
  const found: Array<Turn> = []
  const lists = ["messages", "contents", "input"].map((key) => fieldOf(whole, key))
  for (const item of lists.find((list) => Array.isArray(list)) ?? []) {
    if (isJsonObject(item)) found.push({ role: roleOf(item), text: textOf(item) })
  }
  return found
}

// Other recorders store a body as text.
const document = (body: Json): Json => (typeof body === "string" ? Redaction.parsed(body) : body)

/**
 * Returns the first difference between two conversations.
 *
 * Blocks are compared by type and name, results also by content, and text outside blocks as it is. A message in which
 * the kernel reports ignored blocks may be missing from the recording.
 *
 * @category comparing
 * @since 0.1.0
 */
export const firstDifference = (recorded: ReadonlyArray<Turn>, asked: ReadonlyArray<Turn>): Difference | undefined => {
  let index = 0
  for (const turn of asked) {
    const expected = recorded[index]
    const difference =
      expected === undefined
        ? { index, what: "length" as const, expected: `${recorded.length} messages`, actual: excerpt(turn.text) }
        : turnDifference(index, expected, turn)
    if (difference === undefined) index++
    else if (!isNote(turn)) return difference
  }
  const missing = recorded[index]
  return missing === undefined
    ? undefined
    : { index, what: "length", expected: excerpt(missing.text), actual: `${index} messages` }
}

const describe = (difference: Difference): string =>
  `message ${difference.index}, ${difference.what}: expected ${difference.expected}, got ${difference.actual}`

const turnDifference = (index: number, expected: Turn, actual: Turn): Difference | undefined => {
  if (expected.role !== actual.role) return { index, what: "role", expected: expected.role, actual: actual.role }
  const before = BlockParser.parse(expected.text)
  const now = BlockParser.parse(actual.text)
  const kinds = [before, now].map((parsed) => parsed.blocks.map(label).join(", "))
  if (kinds[0] !== kinds[1]) {
    return { index, what: "blocks", expected: `[${kinds[0]}]`, actual: `[${kinds[1]}]` }
  }
  for (let at = 0; at < before.blocks.length; at++) {
    const left = before.blocks[at]
    const right = now.blocks[at]
    if (left?.type !== "result" || right === undefined) continue
    if (Block.unescape(left.content) !== Block.unescape(right.content)) {
      return { index, what: "result", expected: excerpt(left.content), actual: excerpt(right.content) }
    }
  }
  return before.text === now.text
    ? undefined
    : { index, what: "text", expected: excerpt(before.text), actual: excerpt(now.text) }
}

const label = (block: Block.Block): string => (block.name === null ? block.type : `${block.type} ${block.name}`)

const isNote = (turn: Turn): boolean => {
  if (turn.role !== "user") return false
  const { blocks, text } = BlockParser.parse(turn.text)
  return Block.isBlank(text) && blocks.length === 1 && blocks[0]?.type === "error" && blocks[0].name === null
}

const excerpt = (text: string): string => {
  const short = Array.from(text.slice(0, 400)).slice(0, 120).join("")
  return JSON.stringify(short.length < text.length ? `${short}…` : short)
}

const roleOf = (item: JsonObject): string => {
  const role = item["role"]
  if (role === "model" || stepsOfModel.some((type) => type === item["type"])) return "assistant"
  if (typeof role === "string") return role === "developer" ? "system" : role
  return item["type"] === "function_result" ? "tool" : "user"
}

const stepsOfModel = ["model_output", "function_call", "thought"]

// Returns the text of content in any vendor's format, with calls and results as blocks, so that formats can be
// compared.
const textOf = (value: Json | undefined): string => {
  if (typeof value === "string") return value
  if (Array.isArray(value)) return value.map(textOf).join("")
  if (value === undefined || !isJsonObject(value)) return ""
  switch (value["type"]) {
    case "tool_use":
    case "function_call":
      return call(value["name"], value["input"] ?? value["arguments"])
    case "tool_result":
    case "function_result":
      return Block.render(Block.result(null, textOf(value["content"] ?? value["result"])))
    case "thinking":
    case "redacted_thinking":
    case "thought":
      return ""
  }
  if (value["function"] !== undefined) {
    return call(fieldOf(value["function"], "name"), fieldOf(value["function"], "arguments"))
  }
  if (value["functionCall"] !== undefined) {
    return call(fieldOf(value["functionCall"], "name"), fieldOf(value["functionCall"], "args"))
  }
  if (value["functionResponse"] !== undefined) {
    return Block.render(Block.result(null, JSON.stringify(fieldOf(value["functionResponse"], "response"))))
  }
  return [value["text"], value["content"], value["parts"], value["tool_calls"]].map(textOf).join("")
}

const call = (name: Json | undefined, input: Json | undefined): string =>
  Block.render(
    Block.command(
      typeof name === "string" ? name : null,
      typeof input === "string" ? input : JSON.stringify(input ?? {})
    )
  )

const fieldOf = (value: Json | undefined, key: string): Json | undefined =>
  value !== undefined && isJsonObject(value) ? value[key] : undefined
