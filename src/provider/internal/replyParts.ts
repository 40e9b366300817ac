/**
 * Collects the parts of a reply.
 *
 * A decoder only reports what it reads. The reply opens and closes text and thinking, joins the fragments of native
 * calls, gives every call a unique id, and counts its size against the reply limit.
 */

import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Bounds from "../../kit/bounds.ts"
import { isDeeper, jsonObject, type JsonObject } from "../../kit/json.ts"
import type { Limits } from "../../Limits.ts"
import type * as StreamPart from "../../StreamPart.ts"
import type { FinishReason, Metadata, ReportedUsage } from "../../StreamPart.ts"
import { madeOf, unknownType } from "./messageParts.ts"
import { type Fault, limitFault } from "./providerFault.ts"
import { NativeCall, textOf } from "./nativeCall.ts"
import type { Fields } from "./readFields.ts"

/** A call that a vendor ran. */
export interface Ran {
  readonly id?: string | undefined
  readonly name: string
  readonly input: JsonObject
  readonly isError?: boolean
  readonly sources?: ReadonlyArray<{ readonly url: string | undefined; readonly title: string | undefined }>
  /** The part of the call that this reply holds, if its vendor paused before the result. Default: both. */
  readonly only?: "call" | "result"
}

/** A passage that a reply cites. */
export interface Cited {
  readonly url: string | undefined
  readonly title: string | undefined
  readonly quote?: string | undefined
}

/** A reply that is being read. */
export class Reply {
  /** Parts that are not delivered yet. The caller that delivers them empties the list. */
  out: Array<StreamPart.StreamPart> = []
  readonly #limits: Limits
  readonly #calls = new Map<string, NativeCall>()
  /** The number of calls with each id. */
  readonly #seen = new Map<string, number>()
  readonly #keys = new Map<string, string>()
  readonly #cited = new Set<string>()
  #last: string | undefined
  #open: { readonly isText: boolean; readonly id: string } | undefined
  #opened = 0
  #size = 0
  #mediaSize = 0
  #isFinished = false
  #isTooDeep = false

  constructor(limits: Limits) {
    this.#limits = limits
  }

  get isFinished(): boolean {
    return this.#isFinished
  }

  /** The limit that the reply exceeded. */
  get fault(): Fault | undefined {
    const { replyLength } = this.#limits
    if (this.#isTooDeep) return limitFault("jsonDepth", Bounds.jsonDepth)
    return this.#size > replyLength ? limitFault("replyLength", replyLength) : undefined
  }

  // -------------------------------------------------------------- text and thinking

  about(id: string | undefined, modelId: string | undefined, usage?: ReportedUsage): void {
    const reports = usage?.inputTokens.total !== undefined
    if (id === undefined && modelId === undefined && !reports) return
    this.out.push({
      type: "response-metadata",
      ...(id === undefined ? {} : { id }),
      ...(modelId === undefined ? {} : { modelId }),
      ...(reports ? { usage } : {})
    })
  }

  text(delta: string): void {
    if (delta === "") return
    this.#size += delta.length
    this.out.push({ type: "text-delta", id: this.#begin(true), delta })
  }

  /** Ends the open text, so that the next one stays apart. */
  endText(): void {
    if (this.#open?.isText === true) this.#close()
  }

  thinking(delta: string): void {
    if (delta === "") return
    this.#size += delta.length
    this.out.push({ type: "reasoning-delta", id: this.#begin(false), delta })
  }

  /** A source that the reply cites. One that is cited in the same words again is reported once. */
  source({ quote, title, url }: Cited): void {
    const key = JSON.stringify([url, title, quote])
    if ((url ?? title) === undefined || this.#cited.has(key)) return
    this.#cited.add(key)
    this.#size += key.length
    const facts = {
      type: "source",
      id: `source_${this.#cited.size}`,
      ...(quote === undefined ? {} : { quote })
    } as const
    this.out.push(
      url === undefined
        ? { ...facts, sourceType: "document", mediaType: unknownType, title: title ?? "" }
        : { ...facts, sourceType: "url", url, title: title ?? "" }
    )
  }

  /** A medium that the model made, as base64. Invalid or oversized media are replaced by a text. */
  file(mediaType: string | undefined, data: string | Uint8Array): void {
    this.#mediaSize += data.length
    const isKept = data.length > 0 && this.#mediaSize <= 2 * this.#limits.mediaBytes && bytesOf(data) !== undefined
    if (!isKept) return this.text(madeOf(mediaType))
    this.#close()
    const encoded = typeof data === "string" ? data : Base64.encode(data)
    this.out.push({ type: "file", mediaType: mediaType ?? unknownType, data: encoded })
  }

  /** Counts vendor data that is kept apart from the text of a reply until it can be reported. */
  keep(length: number): void {
    this.#size += length
  }

  /** Ends the open thinking, with the vendor data to send back. */
  endThinking(metadata: Metadata): void {
    this.#begin(false)
    this.#close(metadata)
  }

  finish(reason: FinishReason, usage: ReportedUsage, metadata?: Metadata): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.#close()
    for (const call of this.#calls.values()) this.#end(call)
    this.out.push({ type: "finish", reason, usage, ...(metadata === undefined ? {} : { metadata }) })
  }

  #begin(isText: boolean): string {
    if (this.#open?.isText === isText) return this.#open.id
    this.#close()
    const id = String(this.#opened++)
    this.#open = { isText, id }
    this.out.push({ type: isText ? "text-start" : "reasoning-start", id })
    return id
  }

  #close(metadata?: Metadata): void {
    if (this.#open === undefined) return
    const { id, isText } = this.#open
    this.#open = undefined
    this.out.push({
      type: isText ? "text-end" : "reasoning-end",
      id,
      ...(metadata === undefined ? {} : { metadata })
    })
  }

  /** Reports a call that the vendor ran itself, and the items of its format to send back. */
  hosted(ran: Ran, provider: string, items: ReadonlyArray<Fields>): void {
    const { id = `hosted_${this.#opened++}`, input, isError = false, name } = ran
    if (isDeeper(input, Bounds.jsonDepth) || isDeeper(items, Bounds.jsonDepth)) {
      this.#isTooDeep = true
      return
    }
    const sources = (ran.sources ?? []).flatMap(({ title, url }) =>
      url === undefined ? [] : [{ url, ...(title === undefined ? {} : { title }) }]
    )
    this.#size += JSON.stringify([input, items, sources]).length
    this.#close()
    if (ran.only !== "result") {
      this.out.push({ type: "tool-call", id, name, params: input, providerExecuted: true })
    }
    if (ran.only !== "call") {
      this.out.push({
        type: "tool-result",
        id,
        name,
        result: { sources },
        isFailure: isError,
        providerExecuted: true
      })
    }
    if (items.length > 0) this.endThinking({ [provider]: { items: items.map(jsonObject) } })
  }

  // -------------------------------------------------------------- native calls

  /** Returns true if the model made any call. */
  get hasCalls(): boolean {
    return this.#calls.size > 0
  }

  get callCount(): number {
    return this.#calls.size
  }

  /** The key of the last call begun. */
  get lastCall(): string | undefined {
    return this.#last
  }

  /**
   * Begins a native call and returns its id. `key` identifies an open call. An open call with the same key ends, since
   * nothing more can arrive for it. The name may follow (`name`).
   */
  call(key: string, given: string | undefined, name: string | undefined): string {
    this.#close()
    this.endCall(key)
    const call = new NativeCall(this.#uniqueId(given), given)
    this.#size += call.id.length
    this.#calls.set(key, call)
    if (given !== undefined) this.#keys.set(given, key)
    this.#last = key
    if (name !== undefined) this.#name(call, name)
    return call.id
  }

  /** Names a call that has no name yet. */
  name(key: string, name: string): void {
    const call = this.#calls.get(key)
    if (call?.isOpen === true && call.name === undefined) this.#name(call, name)
  }

  params(key: string, fragment: string): void {
    const call = this.#calls.get(key)
    if (call === undefined || !call.isOpen || fragment === "") return
    this.#size += fragment.length
    call.push(fragment)
    if (call.name !== undefined) this.out.push({ type: "tool-params-delta", id: call.id, delta: fragment })
  }

  /** Sets the parameters of a call to a JSON value. */
  input(key: string, value: unknown): void {
    if (isDeeper(value, Bounds.jsonDepth)) this.#isTooDeep = true
    else this.params(key, textOf(value))
  }

  endCall(key: string): void {
    const call = this.#calls.get(key)
    if (call !== undefined) this.#end(call)
  }

  /** Returns our id of a call. */
  ownId(key: string): string {
    return this.#calls.get(key)?.id ?? key
  }

  /** Returns the vendor's id of a call. */
  callId(key: string): string | undefined {
    return this.#calls.get(key)?.given
  }

  callName(key: string): string | undefined {
    return this.#calls.get(key)?.name
  }

  /** Returns the key of the last call begun with this id of the vendor. */
  keyOfId(given: string): string | undefined {
    return this.#keys.get(given)
  }

  /** Returns true if the parameters of a call are a whole object or list. */
  isWhole(key: string): boolean {
    return this.#calls.get(key)?.isWhole === true
  }

  /** Returns true if the parameters of a call are an empty object. */
  hasNoParams(key: string): boolean {
    return this.#calls.get(key)?.hasNone === true
  }

  /** Returns true if the parameters of a call equal these, as text or as a JSON value. */
  hasParams(key: string, params: unknown): boolean {
    return this.#calls.get(key)?.has(params) === true
  }

  #uniqueId(given: string | undefined): string {
    const id = given ?? `call_${this.#calls.size}`
    const times = (this.#seen.get(id) ?? 0) + 1
    this.#seen.set(id, times)
    return times === 1 ? id : this.#uniqueId(`${id}#${times}`)
  }

  #name(call: NativeCall, name: string): void {
    this.#size += name.length
    call.name = name
    this.out.push({ type: "tool-params-start", id: call.id, name })
    if (call.text !== "") this.out.push({ type: "tool-params-delta", id: call.id, delta: call.text })
  }

  #end(call: NativeCall): void {
    if (!call.isOpen) return
    call.isOpen = false
    if (call.name === undefined) this.#name(call, "")
    const { id, name = "", params } = call
    this.out.push({ type: "tool-params-end", id }, { type: "tool-call", id, name, params })
  }
}

/** Returns a vendor's reason of the end that is unknown here, as metadata of `finish`: it must not be lost. */
export const unknownReason = (provider: string, reason: FinishReason, given: string | undefined) =>
  reason === "other" && given !== undefined ? { [provider]: { finishReason: given.slice(0, 200) } } : undefined

/** Returns the bytes of a medium, or undefined for text that is not base64. */
export const bytesOf = (data: string | Uint8Array): Uint8Array | undefined =>
  typeof data === "string" ? Result.getOrUndefined(Base64.decode(data)) : data

/** Returns true if a part has content. Until one has, a failed call can be retried unnoticed. */
export const isSubstance = (part: StreamPart.StreamPart): boolean =>
  part.type !== "response-metadata" && part.type !== "text-start" && part.type !== "reasoning-start"
