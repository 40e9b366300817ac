/**
 * Reads the result of a call from the state of a run, as a program receives it.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { CallResult } from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import * as Bounds from "../../kit/bounds.ts"
import { parseJson } from "../../kit/json.ts"
import type { MediaLookup } from "../../Provider.ts"

/** The result of a call: its contents, and the value that they hold. */
export interface Recorded {
  readonly content: ReadonlyArray<Content>
  readonly value: unknown
}

/** A call of a program failed, or was not run. */
export class CallFailed extends Schema.TaggedError<CallFailed>()("CallFailed", {
  /** The name of the skill, the agent or the step. */
  call: Schema.String,
  /** The tag of the failure, such as `CardDeclined`, `Denied` or `Timeout`. */
  error: Schema.String,
  detail: Schema.String,
  /** The fields of a failure that its skill declares, in their encoded form. */
  fields: Schema.optionalKey(Schema.Json)
}) {
  override get message() {
    return `${this.call}: ${this.detail}`
  }
}

/** Reads the result of a call, the whole of it even if a model would see it cut. */
export const read = (
  call: string,
  result: CallResult,
  media: MediaLookup
): Effect.Effect<Exit.Exit<Recorded, CallFailed>> => {
  const failed = (error: string, detail: string) => Exit.fail(new CallFailed({ call, error, detail }))
  if (result.error !== undefined) {
    const { fields, message, name } = result.error
    const failure = { call, error: name, detail: message, ...(fields === undefined ? {} : { fields }) }
    return Effect.succeed(Exit.fail(new CallFailed(failure)))
  }
  const content = result.message?.content ?? result.output ?? []
  const value = result.value === undefined ? valueOf(content) : result.value
  const { full_result: id, shows, truncated } = result.metadata ?? {}
  if (truncated !== true) return Effect.succeed(Exit.succeed({ content, value }))
  if (typeof id !== "string") return Effect.succeed(failed("ResultLost", "its result was too long to be kept"))
  if (shows === "list")
    return Effect.succeed(failed("ResultLost", "its list is too long: return it as a field of an object"))
  return Effect.match(media.bytes(id), {
    onFailure: ({ message }) => failed("ResultLost", message),
    onSuccess: (bytes) => Exit.succeed({ content, value: ofText(new TextDecoder().decode(bytes), shows === "object") })
  })
}

const valueOf = (content: ReadonlyArray<Content>): unknown => {
  const [first] = content
  if (content.length === 1 && first?.type === "data") return first.data
  return content.flatMap((part) => (Contents.isMedia(part) ? [] : [Contents.toText(part)])).join("")
}

/** Returns the value of a long result, whose contents are cut. */
const ofText = (text: string, isJson: boolean): unknown =>
  isJson ? Result.getOrElse(parseJson(text, Bounds.jsonDepth), () => text) : text
