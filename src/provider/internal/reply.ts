/**
 * Collects what a vendor says into stream parts.
 *
 * A decoder only reports what it reads; the reply opens and closes text and
 * thinking, joins the fragments of native calls, gives every call its own id
 * and counts what was said against the reply limit.
 *
 * @since 0.1.0
 */
import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import * as Snapshot from "../../internal/snapshot.ts"
import { isDeeper } from "../../internal/untrusted.ts"
import type * as StreamPart from "../../StreamPart.ts"
import type { FinishReason, Metadata, ReportedUsage } from "../../StreamPart.ts"
import type { Limits } from "../../Limits.ts"
import { type Fault, limitFault } from "./fault.ts"
import { parse } from "./read.ts"

/** One reply being read. `out` is emptied by whoever delivers the parts. */
export interface Reply {
  out: Array<StreamPart.StreamPart>
  readonly isFinished: boolean
  /** The limit the reply broke. */
  readonly fault: Fault | undefined
  /** Whether the model asked for anything. */
  readonly hasCalls: boolean
  readonly about: (id: string | undefined, modelId: string | undefined) => void
  readonly text: (delta: string) => void
  readonly thinking: (delta: string) => void
  /** Counts what is kept of a reply beside what is said: what its vendor wants back, until it can be told. */
  readonly keep: (length: number) => void
  /** Ends the thinking that is open, with what its vendor wants back. */
  readonly endThinking: (metadata: Metadata) => void
  /**
   * Begins a native call and gives its id; `key` tells those apart that are open. One that has it already ends, since
   * nothing more can come of it. Its name may follow (`name`).
   */
  readonly call: (key: string, given: string | undefined, name: string | undefined) => string
  /** Names a call that has no name yet. */
  readonly name: (key: string, name: string) => void
  /** The key of the call last begun. */
  readonly lastCall: () => string | undefined
  readonly callCount: () => number
  /** Our id of a call. */
  readonly ownId: (key: string) => string
  /** The vendor's id of a call. */
  readonly callId: (key: string) => string | undefined
  readonly callName: (key: string) => string | undefined
  /** The key of the call last begun under a vendor's id. */
  readonly keyOfId: (given: string) => string | undefined
  /** Whether the parameters of a call are a whole object, or a list: what follows belongs to another. */
  readonly isWhole: (key: string) => boolean
  /** Whether they are an empty object: where more follows, no more than a beginning, which some gateways write. */
  readonly hasNoParams: (key: string) => boolean
  /** Whether the parameters of a call are these, as text, however it is spelled, or as a JSON value. */
  readonly hasParams: (key: string, params: unknown) => boolean
  readonly params: (key: string, fragment: string) => void
  /** The parameters of a call as a JSON value. */
  readonly input: (key: string, value: unknown) => void
  readonly endCall: (key: string) => void
  readonly finish: (reason: FinishReason, usage: ReportedUsage, metadata?: Metadata) => void
}

interface Call {
  readonly id: string
  readonly given: string | undefined
  braces: Braces
  name: string | undefined
  params: string
  /** Its arguments as they were read last; text where they are whole and no JSON, which they stay. */
  value: unknown
  isOpen: boolean
}

/** A reply of which nothing was read yet. */
export const make = (limits: Limits): Reply => {
  const calls = new Map<string, Call>()
  const seen = new Map<string, number>()
  const keys = new Map<string, string>()
  let last: string | undefined
  let open: { readonly isText: boolean; readonly id: string } | undefined
  let opened = 0
  let size = 0
  let isFinished = false
  let isTooDeep = false

  const uniqueId = (given: string | undefined): string => {
    const id = given ?? `call_${calls.size}`
    const times = (seen.get(id) ?? 0) + 1
    seen.set(id, times)
    return times === 1 ? id : uniqueId(`${id}#${times}`)
  }

  const close = (metadata?: Metadata) => {
    if (open === undefined) return
    reply.out.push(
      metadata === undefined
        ? { type: open.isText ? "text-end" : "reasoning-end", id: open.id }
        : { type: open.isText ? "text-end" : "reasoning-end", id: open.id, metadata }
    )
    open = undefined
  }

  const begin = (isText: boolean): string => {
    if (open !== undefined && open.isText === isText) return open.id
    close()
    const id = String(opened++)
    open = { isText, id }
    reply.out.push({ type: isText ? "text-start" : "reasoning-start", id })
    return id
  }

  // What is no JSON, or nests too deeply to be handled as such, stays text.
  const read = (params: string): unknown => {
    const value = parse(params)
    return value === undefined || isDeeper(value, limits.jsonDepth) ? params : value
  }

  const nameCall = (call: Call, name: string): string => {
    size += name.length
    call.name = name
    reply.out.push({ type: "tool-params-start", id: call.id, name })
    if (call.params !== "") reply.out.push({ type: "tool-params-delta", id: call.id, delta: call.params })
    return name
  }

  const endCall = (call: Call) => {
    if (!call.isOpen) return
    call.isOpen = false
    const name = call.name ?? nameCall(call, "")
    // Some vendors say null where there are none.
    const params = call.params.trim() === "" ? {} : (read(call.params) ?? {})
    reply.out.push({ type: "tool-params-end", id: call.id }, { type: "tool-call", id: call.id, name, params })
  }

  const reply: Reply = {
    out: [],
    get isFinished() {
      return isFinished
    },
    get fault() {
      if (isTooDeep) return limitFault("jsonDepth", limits.jsonDepth)
      return size > limits.replyBytes ? limitFault("replyBytes", limits.replyBytes) : undefined
    },
    get hasCalls() {
      return calls.size > 0
    },
    about: (id, modelId) => {
      if (id === undefined && modelId === undefined) return
      reply.out.push({
        type: "response-metadata",
        ...(id === undefined ? {} : { id }),
        ...(modelId === undefined ? {} : { modelId })
      })
    },
    text: (delta) => {
      if (delta === "") return
      size += delta.length
      reply.out.push({ type: "text-delta", id: begin(true), delta })
    },
    thinking: (delta) => {
      if (delta === "") return
      size += delta.length
      reply.out.push({ type: "reasoning-delta", id: begin(false), delta })
    },
    keep: (length) => {
      size += length
    },
    endThinking: (metadata) => {
      begin(false)
      close(metadata)
    },
    call: (key, given, name) => {
      close()
      reply.endCall(key)
      const id = uniqueId(given)
      size += id.length
      const call: Call = {
        id,
        given,
        braces: new Braces(),
        name: undefined,
        params: "",
        value: undefined,
        isOpen: true
      }
      calls.set(key, call)
      if (given !== undefined) keys.set(given, key)
      last = key
      if (name !== undefined) nameCall(call, name)
      return id
    },
    name: (key, name) => {
      const call = calls.get(key)
      if (call?.isOpen === true && call.name === undefined) nameCall(call, name)
    },
    lastCall: () => last,
    callCount: () => calls.size,
    ownId: (key) => calls.get(key)?.id ?? key,
    callId: (key) => calls.get(key)?.given,
    callName: (key) => calls.get(key)?.name,
    keyOfId: (given) => keys.get(given),
    isWhole: (key) => calls.get(key)?.braces.areClosed === true,
    hasNoParams: (key) => isNone(calls.get(key)?.params ?? ""),
    hasParams: (key, params) => {
      const call = calls.get(key)
      const told = typeof params === "string" || isDeeper(params, limits.jsonDepth) ? params : textOf(params, limits)
      if (call === undefined || typeof told !== "string" || told === call.params) return told === call?.params
      // A value told again may be spelled in another way; neither a piece of one nor what goes on is read.
      if (!call.braces.areClosed || typeof call.value === "string" || !told.trimEnd().endsWith("}")) return false
      return Equal.equals(read(told), (call.value ??= read(call.params)))
    },
    params: (key, fragment) => {
      const call = calls.get(key)
      if (call === undefined || !call.isOpen || fragment === "") return
      size += fragment.length
      if (isNone(call.params) && fragment.trim() !== "") {
        call.params = ""
        call.braces = new Braces()
      }
      call.params += fragment
      call.braces.push(fragment)
      if (typeof call.value !== "string") call.value = undefined
      if (call.name !== undefined) reply.out.push({ type: "tool-params-delta", id: call.id, delta: fragment })
    },
    input: (key, value) => {
      if (isDeeper(value, limits.jsonDepth)) isTooDeep = true
      else reply.params(key, textOf(value, limits))
    },
    endCall: (key) => {
      const call = calls.get(key)
      if (call !== undefined) endCall(call)
    },
    finish: (reason, usage, metadata) => {
      if (isFinished) return
      isFinished = true
      close()
      for (const call of calls.values()) endCall(call)
      reply.out.push(
        metadata === undefined ? { type: "finish", reason, usage } : { type: "finish", reason, usage, metadata }
      )
    }
  }
  return reply
}

// It is asked before every fragment: a long text is none without a look at it.
const isNone = (params: string): boolean => params.length < 16 && /^\s*\{\s*\}\s*$/.test(params)

/** The braces of an object that comes in pieces, or the brackets of a list; each character is looked at once. */
class Braces {
  #depth = 0
  #hasBegun = false
  #isText = false
  #isEscaped = false

  get areClosed(): boolean {
    return this.#hasBegun && this.#depth === 0
  }

  push(piece: string): void {
    for (let at = 0; at < piece.length; at++) {
      const character = piece[at]
      if (this.#isEscaped) this.#isEscaped = false
      else if (character === "\\") this.#isEscaped = true
      else if (character === '"') this.#isText = !this.#isText
      else if (this.#isText) continue
      else if (character === "}" || character === "]") this.#depth--
      else if (character === "{" || character === "[") {
        this.#depth++
        this.#hasBegun = true
      }
    }
  }
}

/** Arguments as text. JavaScript would write a number too large for a double as null: as a whole they are no JSON then. */
const textOf = (value: unknown, limits: Limits): string =>
  value === undefined || Result.isSuccess(Snapshot.take(value, limits)) ? (JSON.stringify(value) ?? "") : "out of range"

/** Whether a part says anything; until then a failed call may be made again unnoticed. */
export const isSubstance = (part: StreamPart.StreamPart): boolean =>
  part.type !== "response-metadata" && part.type !== "text-start" && part.type !== "reasoning-start"
