/**
 * Makes a request one that its vendor accepts, whatever a model, a skill, a person or an older history wrote.
 *
 * Names of tools and calls fit the vendor's alphabet, and names in its reply are mapped back. Each call has its results
 * right after it: results that stand elsewhere are moved, a call without one gets one that says so, and a result without
 * a call becomes a text. A request that needs no change is returned as it is, and so is every message, so that each is
 * encoded once.
 */

import * as Arr from "effect/Array"
import * as Stream from "effect/Stream"
import type { Content, ToolResult } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { isJsonObject } from "../../kit/json.ts"
import { perObject } from "../../kit/perObject.ts"
import type { VendorRules } from "../../kit/vendorRules.ts"
import type { ProviderError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { Request } from "../../Provider.ts"
import type { StreamPart } from "../../StreamPart.ts"
import { WireNames } from "./wireNames.ts"

/** A request as its vendor accepts it. */
export interface Fitted {
  readonly request: Request
  /** The names of offered tools by the names that were sent for them, where these differ. */
  readonly names: ReadonlyMap<string, string>
}

/** Makes the function that fits the requests of one adapter. */
export const fitting = (rules: VendorRules): ((request: Request) => Fitted) => {
  const rewritten = new WeakMap<Message, { readonly key: string; readonly message: Message }>()
  // The same message with the same names stays the same object.
  const rename = (message: Message, names: WireNames): Message => {
    const key = JSON.stringify(callsOf(message).map(({ name }) => names.of(name)))
    const known = rewritten.get(message)
    if (known?.key === key) return known.message
    const content = message.content.map((part): Content =>
      part.type === "tool_use" ? Contents.toolUse(part.callId, names.of(part.name), part.input) : part
    )
    const renamed = { ...message, content }
    rewritten.set(message, { key, message: renamed })
    return renamed
  }
  return (request) => {
    const { messages } = request
    // A request without tools has its calls and results as text.
    const isOrdered = rules.callId === undefined
    const placed =
      request.tools.length === 0 || isInPlace(messages, isOrdered) ? undefined : inPlace(messages, isOrdered)
    const first = rules.userFirst ? beginning(placed?.map(({ message }) => message) ?? messages) : undefined
    const last = placed?.at(-1)?.message ?? messages.at(-1)
    const isCalling = request.tools.length > 0 && last !== undefined && callsOf(last).length > 0
    const isOpen = rules.userLast === true && last?.role === "assistant" && !isCalling
    const names = namesFor(rules, request)
    if (placed === undefined && first === undefined && !isOpen && names === undefined) {
      return { request, names: noNames }
    }
    const all = placed ?? messages.map((message, from) => ({ message, from }))
    const at = first ?? 0
    const begun = [
      ...(first === undefined ? all : [...all.slice(0, at), { message: opening, from: undefined }, ...all.slice(at)]),
      ...(isOpen ? [{ message: closing, from: undefined }] : [])
    ]
    const back = new Map<string, string>()
    return {
      names: back,
      request: {
        ...request,
        messages: begun.map(({ message }) =>
          names !== undefined && callsOf(message).some(({ name }) => !rules.name.test(name))
            ? rename(message, names)
            : message
        ),
        tools: names === undefined ? request.tools : request.tools.map((tool) => renamedTool(tool, names, back)),
        ...(request.cacheBreakpoints && { cacheBreakpoints: movedTo(request.cacheBreakpoints, begun) })
      }
    }
  }
}

/** Gives the calls of a reply the names of the tools that were offered. */
export const namedBack = (
  parts: Stream.Stream<StreamPart, ProviderError>,
  names: ReadonlyMap<string, string>
): Stream.Stream<StreamPart, ProviderError> => {
  if (names.size === 0) return parts
  const named = (part: StreamPart): StreamPart => {
    if (part.type !== "tool-params-start" && part.type !== "tool-call") return part
    const name = names.get(part.name)
    return name === undefined ? part : { ...part, name }
  }
  return Stream.mapArray(parts, Arr.map(named))
}

const noNames: ReadonlyMap<string, string> = new Map()

// ---------------------------------------------------------------- names

/** Returns the names of a request, or undefined if all fit. */
const namesFor = (rules: VendorRules, { messages, tools }: Request): WireNames | undefined => {
  if (tools.length === 0) return undefined
  const isOdd = ({ name }: { readonly name: string }) => !rules.name.test(name)
  if (!tools.some(isOdd) && !messages.some((message) => callsOf(message).some(isOdd))) return undefined
  const all = [...tools, ...messages.flatMap(callsOf)]
  return new WireNames(
    rules,
    all.flatMap(({ name }) => (rules.name.test(name) ? [name] : []))
  )
}

const renamedTool = (tool: Request["tools"][number], names: WireNames, back: Map<string, string>): typeof tool => {
  const name = names.of(tool.name)
  if (name === tool.name) return tool
  back.set(name, tool.name)
  return { ...tool, name }
}

// ---------------------------------------------------------------- places

interface Parts {
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string }>
  readonly results: ReadonlyArray<string>
  /** Whether there is anything else in the message. */
  readonly hasMore: boolean
}

/** Returns the calls and results of a message, read once. */
const partsOf = perObject(({ content }: Message): Parts => {
  const calls = content.flatMap((part) => (part.type === "tool_use" ? [{ id: part.callId, name: part.name }] : []))
  const results = content.flatMap((part) => (part.type === "tool_result" ? [part.callId] : []))
  return { calls, results, hasMore: content.length > calls.length + results.length }
})

const callsOf = (message: Message): Parts["calls"] => partsOf(message).calls

/**
 * Returns whether every call has its one result right after it, in the order of the calls if `isOrdered` is set. Calls of
 * the last message have none yet.
 */
const isInPlace = (messages: ReadonlyArray<Message>, isOrdered: boolean): boolean => {
  const seen = new Set<string>()
  const open = new Set<string>()
  for (const message of messages) {
    const { calls, hasMore, results } = partsOf(message)
    if (open.size > 0 && results.length === 0) return false
    for (const id of results) {
      if (isOrdered && open.values().next().value !== id) return false
      if (!open.delete(id)) return false
    }
    if (open.size > 0 && hasMore) return false
    for (const { id } of calls) {
      if (seen.has(id)) return false
      seen.add(id)
      open.add(id)
    }
  }
  const last = messages.at(-1)
  return open.size === 0 || (last !== undefined && open.size === callsOf(last).length)
}

/** A message, and its index in the request. Undefined if it was added. */
interface Placed {
  readonly message: Message
  readonly from: number | undefined
}

/** Puts the results of each message right after it, in the order of its calls if `isOrdered` is set. */
const inPlace = (messages: ReadonlyArray<Message>, isOrdered: boolean): ReadonlyArray<Placed> => {
  const placed: Array<Placed> = []
  const seen = new Set<string>()
  let at = 0
  while (at < messages.length) {
    const message = messages[at]
    if (message === undefined) break
    const { calls } = partsOf(message)
    if (calls.length === 0) {
      const alone = withoutResults(message)
      placed.push({ message: alone, from: at++ })
      continue
    }
    const end = nextCalls(messages, at + 1)
    const { calling, rest, results } = turnOf(message, messages, at, end, seen)
    placed.push(calling, ...(isOrdered ? inOrder(calling, results) : results), ...rest)
    at = end
  }
  return placed
}

const nextCalls = (messages: ReadonlyArray<Message>, from: number): number => {
  const next = messages.findIndex((message, index) => index >= from && callsOf(message).length > 0)
  return next === -1 ? messages.length : next
}

/** Puts results in the order of their calls, for formats that tell results by their place. */
const inOrder = ({ message }: Placed, results: ReadonlyArray<Placed>): ReadonlyArray<Placed> => {
  const single = results.flatMap((placed) => {
    const { content } = placed.message
    return content.length === 1 ? [placed] : content.map((part) => ({ message: resultAlone(part), from: undefined }))
  })
  return callsOf(message).flatMap(({ id }) => single.filter(({ message }) => partsOf(message).results[0] === id))
}

const resultAlone = perObject((part: Content): Message => ({ role: "tool", content: [part] }))

/** A message with calls, the results of these, and what stands before the next message with calls. */
interface CallTurn {
  readonly calling: Placed
  readonly results: ReadonlyArray<Placed>
  readonly rest: ReadonlyArray<Placed>
}

/** Sorts the messages from one with calls up to the next one with calls. */
const turnOf = (
  first: Message,
  messages: ReadonlyArray<Message>,
  at: number,
  end: number,
  seen: Set<string>
): CallTurn => {
  const ids = new Map<string, string>()
  const calling = withOwnIds(first, seen, ids)
  const open = new Set(ids.keys())
  const results: Array<Placed> = []
  const rest: Array<Placed> = []
  for (let index = at + 1; index < end; index++) {
    const message = messages[index]
    if (message === undefined) continue
    const own = message.content.filter(
      (part): part is ToolResult => part.type === "tool_result" && open.delete(part.callId)
    )
    if (own.length === 0) {
      rest.push({ message: withoutResults(message), from: index })
      continue
    }
    const isWhole = own.length === message.content.length && own.every(({ callId }) => ids.get(callId) === callId)
    const answering = isWhole ? message : Messages.tool(own.map((part) => withId(part, ids.get(part.callId))))
    results.push({ message: answering, from: index })
    const others = message.content.filter((part) => part.type !== "tool_result" || !own.includes(part))
    if (others.length > 0) rest.push({ message: withoutResults({ role: "user", content: others }), from: undefined })
  }
  const isLast = at === messages.length - 1
  for (const id of isLast ? [] : open) results.push({ message: unanswered(ids.get(id) ?? id), from: undefined })
  return { calling: { message: calling, from: at }, results, rest }
}

/** Gives calls whose ids were used before other ids. `ids` receives the new ids by the old ones. */
const withOwnIds = (message: Message, seen: Set<string>, ids: Map<string, string>): Message => {
  const content: Array<Content> = []
  for (const part of message.content) {
    if (part.type !== "tool_use") {
      content.push(part)
      continue
    }
    // A second call with the same id in one message cannot have a result of its own.
    if (ids.has(part.callId)) {
      content.push(Contents.text(Contents.toText(part)))
      continue
    }
    const own = unusedId(part.callId, seen)
    seen.add(own)
    ids.set(part.callId, own)
    content.push(own === part.callId ? part : Contents.toolUse(own, part.name, part.input))
  }
  const isSame = content.every((part, index) => part === message.content[index])
  return isSame ? message : { ...message, content: content.map((part) => signedBy(part, ids)) }
}

const unusedId = (id: string, seen: ReadonlySet<string>): string => {
  let own = id
  for (let times = 2; seen.has(own); times++) own = `${id}#${times}`
  return own
}

/** Renames the call that a thought signs. */
const signedBy = (part: Content, ids: ReadonlyMap<string, string>): Content => {
  if (part.type !== "thinking" || !isJsonObject(part.signature)) return part
  const { callId } = part.signature
  const own = typeof callId === "string" ? ids.get(callId) : undefined
  return own === undefined || own === callId ? part : { ...part, signature: { ...part.signature, callId: own } }
}

const withId = (result: ToolResult, id = result.callId): ToolResult =>
  id === result.callId ? result : Contents.toolResult(id, result.content, { isError: result.isError })

const unanswered = (id: string): Message =>
  Messages.tool(Contents.toolResult(id, "This call was not run.", { isError: true }))

/** Writes the results of a message as text, since their calls are not in the conversation. */
const withoutResults = (message: Message): Message =>
  partsOf(message).results.length === 0 ? message : asText(message)

const asText = perObject(({ content, role, ...message }: Message): Message => ({
  ...message,
  role: role === "tool" ? "user" : role,
  content: content.flatMap((part): ReadonlyArray<Content> =>
    part.type === "tool_result"
      ? [Contents.text(Contents.toText(part)), ...part.content.filter(Contents.isMedia)]
      : [part]
  )
}))

// ---------------------------------------------------------------- the beginning and the end

/** Returns where a message of the user is missing before the first one of the model. */
const beginning = (messages: ReadonlyArray<Message>): number | undefined => {
  const first = messages.findIndex(({ role }) => role !== "system")
  return messages[first]?.role === "assistant" ? first : undefined
}

const opening: Message = Messages.user("(The conversation begins here.)")

const closing: Message = Messages.user("Continue.")

const movedTo = (breakpoints: ReadonlyArray<number>, placed: ReadonlyArray<Placed>): ReadonlyArray<number> =>
  breakpoints.flatMap((index) => {
    const at = placed.findIndex(({ from }) => from === index)
    return at === -1 ? [] : [at]
  })
